-- side: hosts before and after a rollout, with the compared measures.
--
-- After is the time from `at` on or, without it, the hosts whose label has the value. Logarithms
-- are in integer hundred-thousandths, so that sums of squares fit into 64 bits. Percentiles need a
-- hundred operations.
--
-- host      host, text
-- kind      kind of operation, text
-- op        class of operation, text
-- is_after  whether the row is after the rollout, flag
-- seconds   seconds with operations of the kind, count
-- operations   operations, count
-- p50_log, p99_log   logarithms of percentiles; null with too few operations, number
-- rate_log  logarithm of operations per second, number
WITH labelled AS (
    SELECT DISTINCT r.host
    FROM recording AS r
    JOIN label AS l ON l.recording = r.recording
    JOIN parameters AS a ON a.label = l.name AND a.value = l.value
),
bucket AS (
    SELECT
        h.host, h.kind, h.op,
        CASE WHEN a.at_ns IS NULL THEN l.host IS NOT NULL ELSE h.ts >= a.at_ns END AS is_after,
        h.middle_ns,
        CAST(SUM(h.count) AS BIGINT) AS operations
    FROM length AS h
    CROSS JOIN parameters AS a
    LEFT JOIN labelled AS l ON l.host = h.host
    WHERE
        h.dimension = 'all'
        AND (a.kind IS NULL OR h.kind = a.kind)
        AND (a.op IS NULL OR h.op = a.op)
    GROUP BY
        h.host, h.kind, h.op,
        CASE WHEN a.at_ns IS NULL THEN l.host IS NOT NULL ELSE h.ts >= a.at_ns END,
        h.middle_ns
),
cumulated AS (
    SELECT
        b.host, b.kind, b.op, b.is_after, b.middle_ns,
        SUM(b.operations) OVER (
            PARTITION BY b.host, b.kind, b.op, b.is_after
            ORDER BY b.middle_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS upto,
        SUM(b.operations) OVER (PARTITION BY b.host, b.kind, b.op, b.is_after) AS operations
    FROM bucket AS b
),
percentiled AS (
    SELECT
        c.host, c.kind, c.op, c.is_after,
        CAST(MAX(c.operations) AS BIGINT) AS operations,
        MIN(CASE WHEN c.upto * 1000 >= c.operations * 500 THEN c.middle_ns END) AS p50_ns,
        MIN(CASE WHEN c.upto * 1000 >= c.operations * 990 THEN c.middle_ns END) AS p99_ns
    FROM cumulated AS c
    GROUP BY c.host, c.kind, c.op, c.is_after
),
-- Seconds without operations of a class count as well.
watched AS (
    SELECT
        c.host, c.kind,
        CASE WHEN a.at_ns IS NULL THEN l.host IS NOT NULL ELSE c.ts >= a.at_ns END AS is_after,
        COUNT(*) AS seconds
    FROM counted AS c
    CROSS JOIN parameters AS a
    LEFT JOIN labelled AS l ON l.host = c.host
    WHERE
        c.place = 1
        AND (a.begin_ns IS NULL OR c.ts >= a.begin_ns)
        AND (a.end_ns IS NULL OR c.ts < a.end_ns)
    GROUP BY
        c.host, c.kind,
        CASE WHEN a.at_ns IS NULL THEN l.host IS NOT NULL ELSE c.ts >= a.at_ns END
)
SELECT
    t.host, t.kind, t.op, t.is_after, w.seconds, t.operations,
    CASE WHEN t.operations >= 100
        THEN CAST(ROUND(1e5 * LN(GREATEST(t.p50_ns, 1))) AS BIGINT) END AS p50_log,
    CASE WHEN t.operations >= 100
        THEN CAST(ROUND(1e5 * LN(GREATEST(t.p99_ns, 1))) AS BIGINT) END AS p99_log,
    CAST(ROUND(1e5 * LN(t.operations * 1e0 / w.seconds)) AS BIGINT) AS rate_log
FROM percentiled AS t
JOIN watched AS w ON w.host = t.host AND w.kind = t.kind AND w.is_after = t.is_after
