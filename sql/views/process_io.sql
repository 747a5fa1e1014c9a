-- process_io: bytes and system calls per process and class of object.
--
-- upid, pid, comm        process
-- fd_class               class of the object
-- read_calls, read_bytes     calls of class read (and the read side of sendfile and splice)
-- write_calls, write_bytes   calls of class write (and the write side)
CREATE VIEW process_io AS
SELECT
    upid,
    pid,
    MAX(comm) AS comm,
    fd_class,
    SUM(CASE WHEN op IN ('read', 'read_write') THEN 1 ELSE 0 END) AS read_calls,
    SUM(CASE WHEN op IN ('read', 'read_write') THEN bytes ELSE 0 END) AS read_bytes,
    SUM(CASE WHEN op IN ('write', 'read_write') THEN 1 ELSE 0 END) AS write_calls,
    SUM(CASE WHEN op IN ('write', 'read_write') THEN bytes ELSE 0 END) AS write_bytes
FROM io
GROUP BY upid, pid, fd_class;
