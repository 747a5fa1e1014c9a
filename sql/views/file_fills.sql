-- file_fills: page-cache fills per path.
--
-- path               file; `inode:[…]` or `device:[…]` if its name is unknown
-- has_name           whether its name is known
-- filled_bytes       filled for reading, bytes
-- read_fill_bytes    of these, by read calls, including readahead, bytes
-- mapped_fill_bytes  of these, by memory mappings, bytes
-- write_fill_bytes   filled by write calls; most of these were not read from disk, bytes
CREATE VIEW file_fills AS
SELECT
    path,
    has_name,
    SUM(CASE WHEN cause <> 'write' THEN bytes ELSE 0 END) AS filled_bytes,
    SUM(CASE WHEN cause = 'read' THEN bytes ELSE 0 END) AS read_fill_bytes,
    SUM(CASE WHEN cause = 'mapped' THEN bytes ELSE 0 END) AS mapped_fill_bytes,
    SUM(CASE WHEN cause = 'write' THEN bytes ELSE 0 END) AS write_fill_bytes
FROM cache_fill
GROUP BY path, has_name;
