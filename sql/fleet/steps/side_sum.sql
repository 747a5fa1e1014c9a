-- side_sum: sums over hosts of the measures before and after.
--
-- With a point in time each host is compared with itself; with a label, with other hosts.
--
-- measure       p50, p99 or rate, text
-- kind, op      kind and class of operation, text
-- paired        whether each host is compared with itself, flag
-- before, after   hosts on each side; for pairs, those with both sides, count
-- mean_before, mean_after   means of the logarithms, number
-- difference    the mean difference, number
-- error         its standard error; null with fewer than three hosts on a side, number
-- freedom       its degrees of freedom, number
WITH measured AS (
    SELECT CAST('p50' AS STRING) AS measure, host, kind, op, is_after, p50_log AS level
    FROM side
    WHERE p50_log IS NOT NULL
    UNION ALL
    SELECT CAST('p99' AS STRING) AS measure, host, kind, op, is_after, p99_log AS level
    FROM side
    WHERE p99_log IS NOT NULL
    UNION ALL
    SELECT CAST('rate' AS STRING) AS measure, host, kind, op, is_after, rate_log AS level
    FROM side
),
paired AS (
    SELECT
        b.measure, b.kind, b.op,
        COUNT(*) AS hosts,
        CAST(SUM(b.level) AS BIGINT) AS before_sum,
        CAST(SUM(f.level) AS BIGINT) AS after_sum,
        CAST(SUM((f.level - b.level) * (f.level - b.level)) AS BIGINT) AS squares
    FROM measured AS b
    JOIN measured AS f
        ON f.measure = b.measure AND f.host = b.host AND f.kind = b.kind AND f.op = b.op
        AND f.is_after
    CROSS JOIN parameters AS a
    WHERE NOT b.is_after AND a.at_ns IS NOT NULL
    GROUP BY b.measure, b.kind, b.op
),
apart AS (
    SELECT
        m.measure, m.kind, m.op,
        CAST(SUM(CASE WHEN m.is_after THEN 0 ELSE 1 END) AS BIGINT) AS before_hosts,
        CAST(SUM(CASE WHEN m.is_after THEN 1 ELSE 0 END) AS BIGINT) AS after_hosts,
        CAST(SUM(CASE WHEN m.is_after THEN 0 ELSE m.level END) AS BIGINT) AS before_sum,
        CAST(SUM(CASE WHEN m.is_after THEN m.level ELSE 0 END) AS BIGINT) AS after_sum,
        CAST(SUM(CASE WHEN m.is_after THEN 0 ELSE m.level * m.level END) AS BIGINT)
            AS before_squares,
        CAST(SUM(CASE WHEN m.is_after THEN m.level * m.level ELSE 0 END) AS BIGINT)
            AS after_squares
    FROM measured AS m
    CROSS JOIN parameters AS a
    WHERE a.at_ns IS NULL
    GROUP BY m.measure, m.kind, m.op
),
-- Squared errors of both means.
erred AS (
    SELECT
        p.measure, p.kind, p.op, p.before_hosts, p.after_hosts, p.before_sum, p.after_sum,
        CASE WHEN p.before_hosts >= 3 AND p.after_hosts >= 3 THEN GREATEST(
            p.before_squares * 1e0 - p.before_sum * 1e0 * p.before_sum / p.before_hosts, 1e0
        ) / (p.before_hosts * (p.before_hosts - 1e0)) END AS before_error,
        CASE WHEN p.before_hosts >= 3 AND p.after_hosts >= 3 THEN GREATEST(
            p.after_squares * 1e0 - p.after_sum * 1e0 * p.after_sum / p.after_hosts, 1e0
        ) / (p.after_hosts * (p.after_hosts - 1e0)) END AS after_error
    FROM apart AS p
)
SELECT
    measure, kind, op,
    TRUE AS paired,
    hosts AS before,
    hosts AS after,
    before_sum * 1e0 / hosts AS mean_before,
    after_sum * 1e0 / hosts AS mean_after,
    (after_sum - before_sum) * 1e0 / hosts AS difference,
    CASE WHEN hosts >= 3 THEN SQRT(GREATEST(
        squares * 1e0 - (after_sum - before_sum) * 1e0 * (after_sum - before_sum) / hosts, 1e0
    ) / (hosts * (hosts - 1e0))) END AS error,
    hosts - 1e0 AS freedom
FROM paired
UNION ALL
SELECT
    measure, kind, op,
    FALSE AS paired,
    before_hosts AS before,
    after_hosts AS after,
    CASE WHEN before_hosts > 0 THEN before_sum * 1e0 / before_hosts END AS mean_before,
    CASE WHEN after_hosts > 0 THEN after_sum * 1e0 / after_hosts END AS mean_after,
    CASE WHEN before_hosts > 0 AND after_hosts > 0
        THEN after_sum * 1e0 / after_hosts - before_sum * 1e0 / before_hosts END AS difference,
    SQRT(before_error + after_error) AS error,
    -- Welch and Satterthwaite.
    POWER(before_error + after_error, 2e0) / (
        POWER(before_error, 2e0) / (before_hosts - 1e0)
        + POWER(after_error, 2e0) / (after_hosts - 1e0)
    ) AS freedom
FROM erred
