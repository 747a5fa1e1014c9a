-- member: the unit that is compared with its peers: a host, or one key of a host.
--
-- Peers are members with the same `alike` (the same key, for devices the same driver) and, with the
-- parameter `within`, the same value of that label. Members with too few operations are not tested
-- and do not count as peers.
--
-- within      value of the label that peers share; empty without one, text
-- alike       key or driver that peers share, text
-- host        host, text
-- key         value of the dimension; empty for hosts as a whole, text
-- kind        kind of operation, text
-- op          class of operation, text
-- operations  finished operations, count
-- p25_ns, p50_ns, p75_ns, p99_ns   percentiles of their durations, ns
-- p50_log     logarithm of the median, in millionths, number
WITH grouped AS (
    SELECT h.host, MIN(l.value) AS value
    FROM (SELECT DISTINCT recording, host FROM recording) AS h
    JOIN label AS l ON l.recording = h.recording
    JOIN parameters AS a ON a.within = l.name
    GROUP BY h.host
),
bucket AS (
    SELECT
        h.host,
        h.key,
        h.kind,
        h.op,
        h.middle_ns,
        h.width_ns,
        CAST(SUM(h.count) AS BIGINT) AS operations
    FROM length AS h
    CROSS JOIN parameters AS a
    WHERE
        h.dimension = a.dimension
        AND h.key NOT IN ('(others)', '(none)')
        AND (a.kind IS NULL OR h.kind = a.kind)
        AND (a.op IS NULL OR h.op = a.op)
        AND (a.key IS NULL OR h.key = a.key)
    GROUP BY h.host, h.key, h.kind, h.op, h.middle_ns, h.width_ns
),
cumulated AS (
    SELECT
        b.host,
        b.key,
        b.kind,
        b.op,
        b.middle_ns,
        b.width_ns,
        b.operations AS here,
        SUM(b.operations) OVER (
            PARTITION BY b.host, b.key, b.kind, b.op
            ORDER BY b.middle_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS upto,
        SUM(b.operations) OVER (PARTITION BY b.host, b.key, b.kind, b.op) AS operations
    FROM bucket AS b
),
percentiled AS (
    SELECT
        c.host,
        c.key,
        c.kind,
        c.op,
        CAST(MAX(c.operations) AS BIGINT) AS operations,
        MIN(CASE WHEN c.upto * 1000 >= c.operations * 250 THEN c.middle_ns END) AS p25_ns,
        MIN(CASE WHEN c.upto * 1000 >= c.operations * 500 THEN c.middle_ns END) AS p50_ns,
        MIN(CASE WHEN c.upto * 1000 >= c.operations * 750 THEN c.middle_ns END) AS p75_ns,
        MIN(CASE WHEN c.upto * 1000 >= c.operations * 990 THEN c.middle_ns END) AS p99_ns,
        -- Medians are compared at a finer scale than a bucket: its operations are assumed to be
        -- spread evenly over it.
        MIN(
            CASE
                WHEN c.upto * 2 >= c.operations AND (c.upto - c.here) * 2 < c.operations THEN
                    CAST(ROUND(1e6 * LN(GREATEST(
                        c.middle_ns - c.width_ns / 2e0
                        + c.width_ns * (c.operations / 2e0 - (c.upto - c.here)) / c.here,
                        1e0
                    ))) AS BIGINT)
            END
        ) AS p50_log
    FROM cumulated AS c
    GROUP BY c.host, c.key, c.kind, c.op
)
SELECT
    CASE
        WHEN a.within IS NULL THEN ''
        ELSE COALESCE(g.value, '(none)')
    END AS within,
    CASE
        WHEN a.dimension <> 'device' THEN t.key
        WHEN t.key LIKE 'nvme%' THEN 'nvme'
        WHEN t.key LIKE 'dm-%' THEN 'dm-'
        WHEN t.key LIKE 'loop%' THEN 'loop'
        WHEN t.key LIKE 'mmcblk%' THEN 'mmcblk'
        WHEN t.key LIKE 'xvd%' THEN 'xvd'
        WHEN t.key LIKE 'sd%' THEN 'sd'
        WHEN t.key LIKE 'vd%' THEN 'vd'
        WHEN t.key LIKE 'md%' THEN 'md'
        ELSE t.key
    END AS alike,
    t.host,
    t.key,
    t.kind,
    t.op,
    t.operations,
    t.p25_ns,
    t.p50_ns,
    t.p75_ns,
    t.p99_ns,
    t.p50_log
FROM percentiled AS t
CROSS JOIN parameters AS a
LEFT JOIN grouped AS g ON g.host = t.host
