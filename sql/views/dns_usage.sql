-- dns_usage: DNS lookups by thread, name and result.
--
-- comm, pid         thread's name and process
-- host              name that was looked up; null if the call had none
-- result            ok, EAI_NONAME, EAI_AGAIN, …; null if the end was not recorded
-- lookups           number of lookups
-- waited_ns         total time of finished lookups, ns
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
