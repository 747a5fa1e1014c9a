-- lock_usage: waits for contended locks by waiting function.
--
-- kind, mode        kind of lock (mutex, rwsem, …), and read, write or null
-- function          innermost function outside of the lock code; null for short waits
-- waits             number of waits
-- waited_ns         total wait time, ns
-- waited_max_ns     longest wait, ns
CREATE VIEW lock_usage AS
SELECT
    kind,
    mode,
    function,
    COUNT(*) AS waits,
    SUM(dur) AS waited_ns,
    MAX(dur) AS waited_max_ns
FROM lock_wait
GROUP BY kind, mode, function;
