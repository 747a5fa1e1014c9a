-- heat: operations and their durations by host and time, for a heat map.
--
-- Parameters:
--   kind        include only operations of KIND (io, block, sched, …)
--   op          include only operations of class OP (read, write, …)
--   bin = 10s   cell length, in whole seconds
--   limit = 100000 show at most LIMIT rows
--
-- host          host, text
-- ts            start of the cell, ns since the epoch
-- operations    operations that started in it, count
-- dur_total_ns  sum of their durations, ns
-- dur_p50_ns, dur_p99_ns   percentiles of their durations, from bucket middles, ns
-- dur_max_ns    longest duration, ns
-- recording     the recording with the most seconds of the cell, text
WITH part AS (
    SELECT
        o.host,
        CAST(floor(o.ts / a.bin_ns) AS BIGINT) AS cell,
        CAST(SUM(o.count) AS BIGINT) AS operations,
        CAST(SUM(o.dur_total_ns) AS BIGINT) AS dur_total_ns,
        MIN(o.dur_min_ns) AS dur_min_ns,
        MAX(o.dur_max_ns) AS dur_max_ns
    FROM operation AS o
    CROSS JOIN parameters AS a
    WHERE
        o.dimension = 'all'
        AND (a.kind IS NULL OR o.kind = a.kind)
        AND (a.op IS NULL OR o.op = a.op)
    GROUP BY 1, 2
),
taken AS (
    SELECT
        h.host,
        CAST(floor(h.ts / a.bin_ns) AS BIGINT) AS cell,
        h.middle_ns,
        CAST(SUM(h.count) AS BIGINT) AS operations
    FROM length AS h
    CROSS JOIN parameters AS a
    WHERE
        h.dimension = 'all'
        AND (a.kind IS NULL OR h.kind = a.kind)
        AND (a.op IS NULL OR h.op = a.op)
    GROUP BY 1, 2, 3
),
cumulated AS (
    SELECT
        t.host,
        t.cell,
        t.middle_ns,
        SUM(t.operations) OVER (
            PARTITION BY t.host, t.cell
            ORDER BY t.middle_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS upto,
        SUM(t.operations) OVER (PARTITION BY t.host, t.cell) AS all_of_them
    FROM taken AS t
),
ranked AS (
    SELECT
        c.host,
        c.cell,
        MIN(CASE WHEN upto * 1000 >= all_of_them * 500 THEN middle_ns END) AS p50_ns,
        MIN(CASE WHEN upto * 1000 >= all_of_them * 990 THEN middle_ns END) AS p99_ns
    FROM cumulated AS c
    GROUP BY c.host, c.cell
),
seconds AS (
    SELECT
        c.host,
        CAST(floor(c.ts / a.bin_ns) AS BIGINT) AS cell,
        c.recording,
        COUNT(*) AS seconds
    FROM counted AS c
    CROSS JOIN parameters AS a
    WHERE a.kind IS NULL OR c.kind = a.kind
    GROUP BY 1, 2, 3
),
source AS (
    SELECT
        host, cell, recording,
        ROW_NUMBER() OVER (PARTITION BY host, cell ORDER BY seconds DESC, recording) AS place
    FROM seconds
),
placed AS (
    SELECT
        p.host,
        p.cell * a.bin_ns AS ts,
        p.operations,
        p.dur_total_ns,
        LEAST(GREATEST(r.p50_ns, p.dur_min_ns), p.dur_max_ns) AS dur_p50_ns,
        LEAST(GREATEST(r.p99_ns, p.dur_min_ns), p.dur_max_ns) AS dur_p99_ns,
        p.dur_max_ns,
        s.recording,
        ROW_NUMBER() OVER (ORDER BY p.host, p.cell) AS place
    FROM part AS p
    CROSS JOIN parameters AS a
    LEFT JOIN ranked AS r ON r.host = p.host AND r.cell = p.cell
    LEFT JOIN source AS s ON s.host = p.host AND s.cell = p.cell AND s.place = 1
)
SELECT
    p.host, p.ts, p.operations, p.dur_total_ns, p.dur_p50_ns, p.dur_p99_ns, p.dur_max_ns,
    p.recording
FROM placed AS p
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
