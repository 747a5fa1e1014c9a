-- errors of system calls by name and errno
WITH counted AS (
    SELECT name, errno, count(*) AS n FROM syscalls WHERE certain(cut) GROUP BY ALL),
listed AS (
    SELECT name, string_agg(
        CASE errno WHEN 2 THEN 'ENOENT' WHEN 11 THEN 'EAGAIN' WHEN 13 THEN 'EACCES' END
        || ' ' || n, '; ' ORDER BY n DESC, errno) FILTER (WHERE errno > 0) AS errnos
    FROM counted GROUP BY name)
SELECT name, coalesce(errnos, '') AS errnos FROM listed ORDER BY name;
