-- files by {key}
WITH acted AS (
    SELECT path, bytes, dur,
        op = 'open' AND name IN ('open', 'openat', 'openat2', 'creat', 'open_by_handle_at')
            AND errno IS NULL AS is_open,
        op IN ('read', 'read_write') AS is_read, op = 'write' AS is_write
    FROM files
    UNION ALL
    SELECT path2, bytes, dur, false, false, true
    FROM io WHERE op = 'read_write' AND path2 LIKE '/%'),
by_path AS (
    SELECT path, count(*) FILTER (WHERE is_open) AS opens,
        count(*) FILTER (WHERE is_read) AS reads, count(*) FILTER (WHERE is_write) AS writes,
        count(*) FILTER (WHERE NOT is_open AND NOT is_read AND NOT is_write) AS others,
        coalesce(sum(bytes) FILTER (WHERE is_read), 0) AS r,
        coalesce(sum(bytes) FILTER (WHERE is_write), 0) AS w,
        coalesce(sum(dur), 0) AS time_ns
    FROM acted GROUP BY path),
lives AS (
    SELECT path,
        count(*) FILTER (WHERE coalesce(created, bytes_written > 0) AND {starts}) AS created,
        count(*) FILTER (WHERE deleted AND {ends}) AS deleted,
        list(dur) FILTER (WHERE coalesce(created, bytes_written > 0) AND deleted) AS lives
    FROM file_life WHERE touches(ts, ts_end) GROUP BY path),
grouped AS (
    SELECT {key} AS k, count(*) AS files, sum(opens)::BIGINT AS opens,
        sum(reads)::BIGINT AS reads, sum(writes)::BIGINT AS writes, sum(others)::BIGINT AS other_calls,
        sum(r)::BIGINT AS read_bytes, sum(w)::BIGINT AS write_bytes, sum(time_ns)::BIGINT AS time_ns,
        coalesce(sum(created), 0)::BIGINT AS created, coalesce(sum(deleted), 0)::BIGINT AS deleted,
        flatten(list(coalesce(lives, []))) AS lives
    FROM by_path LEFT JOIN lives USING (path) GROUP BY k)
SELECT k AS {name}, files, pct(lives, 500) AS life_p50_ns, opens, writes, write_bytes, reads,
    read_bytes, created, deleted, other_calls, time_ns
FROM grouped
ORDER BY read_bytes + write_bytes DESC, opens + reads + writes + other_calls DESC, k;
