-- bytes and calls by {keys}, with those of block requests
WITH sorted AS (
    SELECT {keys}, op, coalesce(bytes, 0) AS b,
        CASE WHEN fd_class IN ('file', 'directory', 'block', 'memfd') THEN 'file'
             WHEN fd_class IN ('inet', 'inet6') THEN 'net'
             WHEN fd_class IS NULL OR fd_class IN ('unknown', 'socket') THEN 'unknown'
             ELSE 'other' END AS sort,
        CASE WHEN path2 LIKE '/proc/%' OR path2 LIKE '/sys/%' OR path2 LIKE '/dev/%' THEN 'other'
             WHEN path2 LIKE '/%' THEN 'file'
             WHEN regexp_full_match(path2, '\d+\.\d+\.\d+\.\d+:\d+') THEN 'net'
             WHEN path2 LIKE 'pipe:%' OR path2 LIKE 'anon_inode:%' THEN 'other'
             ELSE 'unknown' END AS sort2
    FROM io),
calls AS (
    SELECT {names},
        sum(CASE WHEN op IN ('read', 'read_write') AND sort = 'file' THEN b ELSE 0 END) AS file_read_bytes,
        sum(CASE WHEN op = 'write' AND sort = 'file' OR op = 'read_write' AND sort2 = 'file' THEN b ELSE 0 END) AS file_write_bytes,
        sum(CASE WHEN op IN ('read', 'read_write') AND sort = 'net' THEN b ELSE 0 END) AS net_read_bytes,
        sum(CASE WHEN op = 'write' AND sort = 'net' OR op = 'read_write' AND sort2 = 'net' THEN b ELSE 0 END) AS net_write_bytes,
        sum(CASE WHEN op IN ('read', 'read_write') AND sort = 'other' THEN b ELSE 0 END) AS other_read_bytes,
        sum(CASE WHEN op = 'write' AND sort = 'other' OR op = 'read_write' AND sort2 = 'other' THEN b ELSE 0 END) AS other_write_bytes,
        sum(CASE WHEN op IN ('read', 'read_write') AND sort = 'unknown' THEN b ELSE 0 END) AS unknown_read_bytes,
        sum(CASE WHEN op = 'write' AND sort = 'unknown' OR op = 'read_write' AND sort2 = 'unknown' THEN b ELSE 0 END) AS unknown_write_bytes,
        count(*) FILTER (WHERE op IN ('read', 'read_write')) AS reads,
        count(*) FILTER (WHERE op IN ('write', 'read_write')) AS writes,
        count(*) FILTER (WHERE op NOT IN ('read', 'write', 'read_write')) AS other_calls
    FROM sorted GROUP BY ALL),
disk AS (
    SELECT {keys},
        coalesce(sum(bytes) FILTER (WHERE op = 'read'), 0) AS block_read_bytes,
        coalesce(sum(bytes) FILTER (WHERE op = 'write'), 0) AS block_write_bytes
    FROM block WHERE layer <> 'bio' GROUP BY ALL
    HAVING block_read_bytes + block_write_bytes > 0),
joined AS (
    SELECT {either},
        coalesce(file_read_bytes, 0)::BIGINT AS file_read_bytes,
        coalesce(file_write_bytes, 0)::BIGINT AS file_write_bytes,
        coalesce(net_read_bytes, 0)::BIGINT AS net_read_bytes,
        coalesce(net_write_bytes, 0)::BIGINT AS net_write_bytes,
        coalesce(other_read_bytes, 0)::BIGINT AS other_read_bytes,
        coalesce(other_write_bytes, 0)::BIGINT AS other_write_bytes,
        coalesce(unknown_read_bytes, 0)::BIGINT AS unknown_read_bytes,
        coalesce(unknown_write_bytes, 0)::BIGINT AS unknown_write_bytes,
        coalesce(block_read_bytes, 0)::BIGINT AS block_read_bytes,
        coalesce(block_write_bytes, 0)::BIGINT AS block_write_bytes,
        coalesce(reads, 0) AS reads, coalesce(writes, 0) AS writes,
        coalesce(other_calls, 0) AS other_calls
    FROM calls FULL JOIN disk ON {on})
SELECT {shown} FROM joined {with}
ORDER BY {first} file_read_bytes + file_write_bytes + net_read_bytes + net_write_bytes + other_read_bytes
         + other_write_bytes + unknown_read_bytes + unknown_write_bytes + block_read_bytes
         + block_write_bytes DESC,
    reads + writes + other_calls DESC, {order};
