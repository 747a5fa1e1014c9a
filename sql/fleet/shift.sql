-- shift: since when the fleet, or each group of hosts, is slower or faster than before.
--
-- The one moment in the window that parts the level of a group best into before and after: of each
-- host against its own usual level, of groups by a label also against all other hosts at the same
-- time. What bins differ by anyway is told by neighbouring ones. All tests of one answer are
-- adjusted together (Benjamini and Hochberg, 1 %); a shift has to be a tenth of the length, of
-- two thirds of the group's hosts.
--
-- Asked for by:
--   label       name of a label (kernel, rack, …): each value against the rest; all hosts without
--   kind        kind of operation (io, block, sched, …); all without
--   op          class of operation (read, write, …); all without
--   bin = 1s    length of a bin, in whole seconds: so exactly the moment is told
--   all = false   those without a shift, too
--   limit = 100 rows at most
--
-- label         value of the label; empty for all hosts, text
-- kind          kind of operation, text
-- op            class of operation, text
-- shifted       whether there is a shift; null if there are too few bins to tell, flag
-- since_ts      begin of the first bin after it, ns since the epoch
-- ratio         of lengths after it to those before, number
-- hosts         hosts of the group with operations, count
-- moved         its hosts that became as much slower or faster, by half of that at least, count
-- bins_before   bins before it, count
-- bins_after    bins after it, count
-- deviation     standard deviations of the difference, number
-- q             chance of such a difference without a shift; 1e-12 stands for less; null if it
--               cannot be told, number
WITH ordered AS (
    SELECT
        b.label, b.kind, b.op, b.bins, b.place, b.next_bin, b.more, b.deviation,
        -- Either direction, and as many places as there are bins.
        LEAST(
            1e0,
            2e0 * b.bins * EXP(-b.deviation * b.deviation / 2e0) * 15957691216e-10
            / (3e0 * b.deviation + SQRT(b.deviation * b.deviation + 8e0))
        ) AS p
    FROM level_split AS b
    WHERE b.rank = 1
),
ranked AS (
    SELECT
        o.label, o.kind, o.op, o.bins, o.place, o.next_bin, o.more, o.deviation, o.p,
        COUNT(*) OVER () AS tests,
        ROW_NUMBER() OVER (ORDER BY o.p, o.deviation DESC, o.label, o.kind, o.op) AS p_place
    FROM ordered AS o
),
judged AS (
    SELECT
        r.label, r.kind, r.op, r.bins, r.place, r.next_bin, r.more, r.deviation,
        LEAST(MIN(r.p * r.tests / r.p_place) OVER (
            ORDER BY r.p_place ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ), 1e0) AS q
    FROM ranked AS r
),
-- How each host went, before and after the moment of its group.
own AS (
    SELECT
        j.label, j.kind, j.op, l.host,
        AVG(CASE WHEN l.bin >= j.next_bin THEN l.level * 1e0 END)
        - AVG(CASE WHEN l.bin < j.next_bin THEN l.level * 1e0 END) AS more
    FROM judged AS j
    JOIN level AS l ON l.label = j.label AND l.kind = j.kind AND l.op = j.op
    GROUP BY j.label, j.kind, j.op, l.host
),
moved AS (
    SELECT
        j.label, j.kind, j.op,
        COUNT(*) AS hosts,
        CAST(SUM(
            CASE
                WHEN ROUND(o.more) * SIGN(j.more) >= ROUND(ABS(j.more) / 2e0) THEN 1
                ELSE 0
            END
        ) AS BIGINT) AS moved
    FROM judged AS j
    JOIN own AS o ON o.label = j.label AND o.kind = j.kind AND o.op = j.op
    GROUP BY j.label, j.kind, j.op
),
series AS (
    SELECT label, kind, op, COUNT(*) AS bins, MAX(hosts) AS hosts
    FROM level_bin
    GROUP BY label, kind, op
),
placed AS (
    SELECT
        s.label, s.kind, s.op,
        -- Others that shift make those that do not differ from them: they did not move.
        j.q <= 1e-2 AND ABS(j.more) >= 95310 AND m.moved * 3 >= m.hosts * 2 AS shifted,
        j.next_bin, j.more, COALESCE(m.hosts, s.hosts) AS hosts, m.moved, j.place AS bins_before,
        j.bins - j.place AS bins_after, j.deviation, j.q,
        ROW_NUMBER() OVER (
            ORDER BY
                CASE
                    WHEN j.q <= 1e-2 AND ABS(j.more) >= 95310 AND m.moved * 3 >= m.hosts * 2 THEN 0
                    ELSE 1
                END,
                COALESCE(j.deviation, -1e0) DESC, s.label, s.kind, s.op
        ) AS place
    FROM series AS s
    LEFT JOIN judged AS j ON j.label = s.label AND j.kind = s.kind AND j.op = s.op
    LEFT JOIN moved AS m ON m.label = s.label AND m.kind = s.kind AND m.op = s.op
)
SELECT
    p.label, p.kind, p.op, p.shifted,
    p.next_bin * a.bin_ns AS since_ts,
    ROUND(EXP(p.more / 1e6), 4) AS ratio,
    p.hosts, p.moved, p.bins_before, p.bins_after,
    p.deviation,
    CASE WHEN p.q IS NOT NULL THEN GREATEST(ROUND(p.q, 12), 1e-12) END AS q
FROM placed AS p
CROSS JOIN asked AS a
WHERE p.place <= a.row_limit AND (p.shifted OR a.all_rows)
ORDER BY p.place
