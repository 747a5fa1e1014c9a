-- like sharers.sql, by the interval in which the calls start
WITH used AS (
    SELECT begin_of(ts, {width}) AS ts_ns, object AS file, upid, fd FROM io
    UNION ALL
    SELECT begin_of(ts, {width}), path2, upid, fd2 FROM io WHERE op = 'read_write'),
counted AS (SELECT ts_ns, file, upid, fd, count(*) AS n FROM used GROUP BY ALL),
named AS (
    SELECT ts_ns, file, n, upid, fd,
        CASE WHEN fd IS NULL THEN '' ELSE 'fd ' || fd || ' in ' END
        || coalesce(p.comm || ' (' || p.pid || ')', 'unknown process') AS sharer
    FROM counted LEFT JOIN process p USING (upid))
SELECT ts_ns || ' ' || file AS place,
    string_agg(sharer, '; ' ORDER BY n DESC, upid NULLS FIRST, fd NULLS FIRST) AS by
FROM named WHERE file IS NOT NULL GROUP BY place;
