-- file_fills: bytes of files that came into the page cache, per path.
--
-- path               file; `inode:[…]` or `device:[…]` where no name is known
-- has_name           whether a name of it is known
-- filled_bytes       for whoever wanted to read them, bytes
-- read_fill_bytes    of these, for calls that read, with what was read ahead
-- mapped_fill_bytes  of these, for mappings
-- write_fill_bytes   for calls that write: most of these were not read, bytes
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
