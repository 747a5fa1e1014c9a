-- lock_usage: waits for contended locks by who wanted them.
--
-- kind, mode        of the lock: mutex, rwsem, …; read, write or null
-- function          innermost function outside of the code of locks; null for short waits
-- waits             number
-- waited_ns         time waited together, ns
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
