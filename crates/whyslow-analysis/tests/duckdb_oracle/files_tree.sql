-- all parent directories of files, and with {leaves} the files, with the totals below
WITH acted AS (
    SELECT path, bytes, op = 'open' AND name IN ('open', 'openat', 'openat2', 'creat', 'open_by_handle_at')
            AND errno IS NULL AS is_open,
        op IN ('read', 'read_write') AS is_read, op = 'write' AS is_write
    FROM files
    UNION ALL
    SELECT path2, bytes, false, false, true FROM io WHERE op = 'read_write' AND path2 LIKE '/%'),
by_path AS (
    SELECT path, count(*) FILTER (WHERE is_open) AS opens,
        count(*) FILTER (WHERE is_read) AS reads, count(*) FILTER (WHERE is_write) AS writes,
        coalesce(sum(bytes) FILTER (WHERE is_read), 0) AS r,
        coalesce(sum(bytes) FILTER (WHERE is_write), 0) AS w
    FROM acted GROUP BY path),
above AS (
    SELECT *, unnest([array_to_string(string_split(path, '/')[:depth], '/') || '/'
        FOR depth IN range(1, len(string_split(path, '/')))]) AS node
    FROM by_path
    UNION ALL
    SELECT *, path FROM by_path WHERE {leaves})
SELECT node AS path, count(*) AS files, sum(opens)::BIGINT AS opens, sum(reads)::BIGINT AS reads,
    sum(writes)::BIGINT AS writes, sum(r)::BIGINT AS read_bytes, sum(w)::BIGINT AS write_bytes
FROM above GROUP BY node ORDER BY node;
