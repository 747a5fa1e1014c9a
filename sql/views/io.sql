-- io: system calls that do I/O, one row per call.
--
-- id               id of the call; `whyslow io log REC -w op:ID` shows what ran at the same time
-- ts               start, ns since the epoch
-- dur              duration in ns; NULL if the recording does not contain both ends
-- op               class: open, connect, close, read, write, read_write, sync, metadata, submit
-- name             system call
-- comm, pid, tid   calling thread
-- fd, path         file descriptor and path
-- fd_class         class of the object: file, pipe, inet, unix, …
-- bytes            bytes moved, as returned
-- errno            error of a failed call
-- cut              begin or end, if that end is not in the recording
CREATE VIEW io AS
SELECT
    id, ts, dur, ts_end, op, name, comm, pid, tid, upid, utid, fd, path, fd_class,
    bytes_requested, bytes, errno, cut
FROM syscall
WHERE op IN (
    'open', 'connect', 'close', 'read', 'write', 'read_write', 'sync', 'metadata', 'submit'
);
