-- disk_latency: block requests per device and operation.
--
-- dev, dev_name    device (kernel dev_t) and its name
-- op               read, write, discard, flush, other
-- requests         finished requests
-- bytes            bytes moved
-- queue_avg_ns     mean time from queueing to issue, ns
-- device_min_ns, device_avg_ns, device_max_ns   issue to completion, ns
-- total_max_ns     longest time from queueing to completion, ns
CREATE VIEW disk_latency AS
SELECT
    dev,
    dev_name,
    op,
    COUNT(*) AS requests,
    SUM(bytes) AS bytes,
    AVG(queue_ns) AS queue_avg_ns,
    MIN(device_ns) AS device_min_ns,
    AVG(device_ns) AS device_avg_ns,
    MAX(device_ns) AS device_max_ns,
    MAX(dur) AS total_max_ns
FROM block_io
WHERE dur IS NOT NULL
GROUP BY dev, dev_name, op;
