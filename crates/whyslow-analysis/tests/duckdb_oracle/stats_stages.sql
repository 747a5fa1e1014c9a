-- queue and device time of block requests by device and operation
WITH grouped AS (
    SELECT dev_name AS dev, op,
        coalesce(list(queue_ns) FILTER (WHERE queue_ns IS NOT NULL), []) AS queue,
        coalesce(list(device_ns) FILTER (WHERE device_ns IS NOT NULL), []) AS device,
        sum(dur) AS total, count(*) AS n
    FROM block WHERE certain(cut) GROUP BY ALL)
SELECT dev, op,
    pct(queue, 500) AS queue_p50_ns, pct(queue, 990) AS queue_p99_ns,
    list_sum(queue)::BIGINT AS queue_total_ns,
    pct(device, 500) AS device_p50_ns, pct(device, 990) AS device_p99_ns,
    list_sum(device)::BIGINT AS device_total_ns
FROM grouped ORDER BY total DESC, n DESC, dev, op;
