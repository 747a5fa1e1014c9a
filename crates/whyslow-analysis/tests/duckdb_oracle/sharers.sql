-- all users of a file (calls without an object have none), those with the most calls first
WITH used AS (
    SELECT object AS file, upid, fd FROM {view}
    UNION ALL
    SELECT path2, upid, fd2 FROM io WHERE op = 'read_write' AND {wanted}),
counted AS (SELECT file, upid, fd, count(*) AS n FROM used GROUP BY ALL),
named AS (
    SELECT file, n, upid, fd,
        CASE WHEN fd IS NULL THEN '' ELSE 'fd ' || fd || ' in ' END
        || coalesce(p.comm || ' (' || p.pid || ')', 'unknown process') AS sharer
    FROM counted LEFT JOIN process p USING (upid))
SELECT file, string_agg(sharer, '; ' ORDER BY n DESC, upid NULLS FIRST, fd NULLS FIRST) AS by
FROM named WHERE file IS NOT NULL GROUP BY file ORDER BY file;
