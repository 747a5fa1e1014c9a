-- io_stats: latency of I/O system calls by class of operation.
--
-- op               class of operation
-- calls            finished calls
-- errors           calls that failed
-- bytes            bytes moved
-- dur_min_ns, dur_avg_ns, dur_max_ns, dur_stddev_ns, dur_total_ns   latency, ns
CREATE VIEW io_stats AS
SELECT
    op,
    COUNT(*) AS calls,
    COUNT(errno) AS errors,
    SUM(bytes) AS bytes,
    MIN(dur) AS dur_min_ns,
    AVG(dur) AS dur_avg_ns,
    MAX(dur) AS dur_max_ns,
    STDDEV_SAMP(dur) AS dur_stddev_ns,
    SUM(dur) AS dur_total_ns
FROM io
WHERE dur IS NOT NULL
GROUP BY op;
