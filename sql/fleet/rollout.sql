-- rollout: whether hosts are slower or faster after a point in time, or with a label's value.
--
-- The unit is the host, since operations of one host are correlated: each host is compared with
-- itself before and after a point in time, or hosts with the label's value with all others. Ratios
-- are of geometric means over hosts. Intervals are Student's. All tests of one result are adjusted
-- together (Benjamini-Hochberg, 5 %).
--
-- Parameters:
--   at          time of the change, such as 2026-03-01T12:00:00Z
--   label       name of a label (version, kernel, …); needs VALUE, excludes AT
--   value       value of LABEL: hosts that have it count as after
--   kind        include only operations of KIND (io, block, sched, …)
--   op          include only operations of class OP (read, write, …)
--   least = 1.1   smallest ratio that counts as a difference
--   limit = 100 show at most LIMIT rows
--
-- kind          kind of operation, text
-- op            class of operation, text
-- measure       p50, p99 (durations) or rate (operations per second), text
-- verdict       worse, better; more, less (rate); no difference seen; cannot tell, text
-- ratio         after to before, number
-- ratio_low     lower bound of its 95 % interval; null below three hosts on a side, number
-- ratio_high    upper bound, number
-- before        value before, in ns (p50, p99) or per second (rate), number
-- after         value after, in ns (p50, p99) or per second (rate), number
-- hosts_before  hosts before, count
-- hosts_after   hosts after, count
-- q             adjusted p-value of the difference; 1e-12 means 1e-12 or less; null if unknown,
--               number
WITH tested AS (
    SELECT
        s.kind, s.op, s.measure, s.mean_before, s.mean_after, s.difference, s.before, s.after,
        -- Student's 97.5th percentile (Cornish and Fisher).
        s.error * (
            195996398e-8 + 23722712e-7 / s.freedom + 28225006e-7 / POWER(s.freedom, 2e0)
            + 25558497e-7 / POWER(s.freedom, 3e0) + 15895e-4 / POWER(s.freedom, 4e0)
        ) AS half,
        ROUND(
            (8e0 * s.freedom + 1e0) / (8e0 * s.freedom + 3e0)
            * SQRT(s.freedom * LN(1e0 + POWER(s.difference / s.error, 2e0) / s.freedom)),
            6
        ) AS deviation
    FROM side_sum AS s
),
ordered AS (
    SELECT
        t.kind, t.op, t.measure, t.mean_before, t.mean_after, t.difference, t.before, t.after,
        t.half, t.deviation,
        COUNT(t.deviation) OVER () AS tests,
        ROW_NUMBER() OVER (
            ORDER BY COALESCE(t.deviation, -1e0) DESC, t.kind, t.op, t.measure
        ) AS place,
        LEAST(1e0, 2e0 * EXP(-t.deviation * t.deviation / 2e0) * 15957691216e-10
            / (3e0 * t.deviation + SQRT(t.deviation * t.deviation + 8e0))) AS p
    FROM tested AS t
),
adjusted AS (
    SELECT
        o.kind, o.op, o.measure, o.mean_before, o.mean_after, o.difference, o.before, o.after,
        o.half,
        CASE WHEN o.deviation IS NOT NULL THEN LEAST(MIN(o.p * o.tests / o.place) OVER (
            ORDER BY o.place ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ), 1e0) END AS q
    FROM ordered AS o
),
judged AS (
    SELECT
        j.kind, j.op, j.measure, j.mean_before, j.mean_after, j.difference, j.before, j.after,
        j.half, j.q,
        CASE
            WHEN j.q IS NULL THEN 'cannot tell'
            WHEN j.q <= 5e-2 AND j.difference >= 1e5 * LN(a.least)
                THEN CASE WHEN j.measure = 'rate' THEN 'more' ELSE 'worse' END
            WHEN j.q <= 5e-2 AND j.difference <= -1e5 * LN(a.least)
                THEN CASE WHEN j.measure = 'rate' THEN 'less' ELSE 'better' END
            WHEN j.difference + j.half < 1e5 * LN(a.least)
                AND j.difference - j.half > -1e5 * LN(a.least) THEN 'no difference seen'
            ELSE 'cannot tell'
        END AS verdict
    FROM adjusted AS j
    CROSS JOIN parameters AS a
),
placed AS (
    SELECT
        j.kind, j.op, j.measure, j.mean_before, j.mean_after, j.difference, j.before, j.after,
        j.half, j.q, j.verdict,
        ROW_NUMBER() OVER (
            ORDER BY
                CASE
                    WHEN j.verdict IN ('worse', 'more') THEN 0
                    WHEN j.verdict IN ('better', 'less') THEN 1
                    WHEN j.verdict = 'cannot tell' THEN 2
                    ELSE 3
                END,
                j.kind, j.op, j.measure
        ) AS place
    FROM judged AS j
)
SELECT
    p.kind, p.op, p.measure, p.verdict,
    ROUND(EXP(p.difference / 1e5), 4) AS ratio,
    ROUND(EXP((p.difference - p.half) / 1e5), 4) AS ratio_low,
    ROUND(EXP((p.difference + p.half) / 1e5), 4) AS ratio_high,
    ROUND(EXP(p.mean_before / 1e5), 3) AS before,
    ROUND(EXP(p.mean_after / 1e5), 3) AS after,
    p.before AS hosts_before,
    p.after AS hosts_after,
    CASE WHEN p.q IS NOT NULL THEN GREATEST(ROUND(p.q, 12), 1e-12) END AS q
FROM placed AS p
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
