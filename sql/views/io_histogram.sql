-- io_histogram: latency of I/O calls in power-of-two buckets; histograms merge by addition.
--
-- op               class of operation
-- bucket           b holds durations from 2^b to 2^(b+1) - 1 ns; 0 holds 0 and 1 ns
-- calls            calls in the bucket
-- dur_total_ns     their total time, ns
CREATE VIEW io_histogram AS
SELECT
    op,
    CASE
        WHEN dur < 2 THEN 0
        ELSE CAST(FLOOR(LOG2(dur)) AS BIGINT)
    END AS bucket,
    COUNT(*) AS calls,
    SUM(dur) AS dur_total_ns
FROM io
WHERE dur IS NOT NULL
GROUP BY 1, 2;
