-- file_usage: system calls and bytes per path.
--
-- path             object of the calls
-- fd_class         its class
-- processes        number of distinct processes that used it
-- opens            successful open calls
-- reads, bytes_read        calls of class read, and bytes returned
-- writes, bytes_written    calls of class write, and bytes returned
-- dur_total_ns, dur_max_ns total time in calls on it, and the longest call, ns
CREATE VIEW file_usage AS
SELECT
    path,
    fd_class,
    COUNT(DISTINCT upid) AS processes,
    SUM(CASE WHEN op = 'open' AND errno IS NULL THEN 1 ELSE 0 END) AS opens,
    SUM(CASE WHEN op = 'read' THEN 1 ELSE 0 END) AS reads,
    SUM(CASE WHEN op = 'read' THEN bytes ELSE 0 END) AS bytes_read,
    SUM(CASE WHEN op = 'write' THEN 1 ELSE 0 END) AS writes,
    SUM(CASE WHEN op = 'write' THEN bytes ELSE 0 END) AS bytes_written,
    SUM(dur) AS dur_total_ns,
    MAX(dur) AS dur_max_ns
FROM io
WHERE path IS NOT NULL
GROUP BY path, fd_class;
