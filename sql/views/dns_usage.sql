-- dns_usage: lookups of host names by who asked for which, and how they ended.
--
-- comm, pid         thread's name and process
-- host              name looked up; null where none was asked for
-- result            ok, EAI_NONAME, EAI_AGAIN, …; null if the end was not recorded
-- lookups           number
-- waited_ns         time in lookups that ended, ns
-- waited_max_ns     longest lookup, ns
CREATE VIEW dns_usage AS
SELECT
    comm,
    pid,
    host,
    result,
    COUNT(*) AS lookups,
    SUM(dur) AS waited_ns,
    MAX(dur) AS waited_max_ns
FROM dns_lookup
GROUP BY comm, pid, host, result;
