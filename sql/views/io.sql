-- io: system calls that do I/O, one row a call.
--
-- id               id of the call; `whyslow io log REC -w op:ID` shows what ran with it
-- ts               begin, ns since the epoch
-- dur              length in ns; NULL where the recording cuts it
-- op               class: open, close, read, write, read_write, sync, metadata, submit
-- name             system call
-- comm, pid, tid   who
-- fd, path         on what
-- fd_class         class of the object: file, pipe, inet, unix, …
-- bytes            moved, as returned
-- errno            of a failed call
-- cut              begin or end where the recording cuts it
CREATE VIEW io AS
SELECT
    id, ts, dur, ts_end, op, name, comm, pid, tid, upid, utid, fd, path, fd_class,
    bytes_requested, bytes, errno, cut
FROM syscall
WHERE op IN (
    'open', 'close', 'read', 'write', 'read_write', 'sync', 'metadata', 'submit'
);
