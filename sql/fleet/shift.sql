-- shift: the time since which the fleet, or each group of hosts, is slower or faster.
--
-- Finds the point in the window that best splits the level of a group into before and after. Each
-- host is compared with its own usual level, groups by a label also with all other hosts at the
-- same time. The noise is estimated from differences of neighbouring bins. All tests of one result
-- are adjusted together (Benjamini-Hochberg, 1 %). A shift must change durations by a tenth, and
-- two thirds of the group's hosts must have moved.
--
-- Parameters:
--   label       compare each value of label LABEL (kernel, rack, …) with the rest of the hosts
--   kind        include only operations of KIND (io, block, sched, …)
--   op          include only operations of class OP (read, write, …)
--   bin = 1s    bin length and resolution of the result, in whole seconds
--   all = false   show all series, not only shifted ones
--   limit = 100 show at most LIMIT rows
--
-- label         value of the label; empty for all hosts, text
-- kind          kind of operation, text
-- op            class of operation, text
-- shifted       whether there is a shift; null with too few bins, flag
-- since_ts      start of the first bin after it, ns since the epoch
-- ratio         durations after it to those before, number
-- hosts         hosts of the group with operations, count
-- moved         its hosts that moved in the same direction by at least half as much, count
-- bins_before   bins before it, count
-- bins_after    bins after it, count
-- deviation     standard deviations of the difference, number
-- q             adjusted p-value of the shift; 1e-12 means 1e-12 or less; null if unknown, number
WITH ordered AS (
    SELECT
        b.label, b.kind, b.op, b.bins, b.place, b.next_bin, b.more, b.deviation,
        -- Two-sided, and with as many candidate positions as bins.
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
-- Change of each host at the split of its group.
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
        -- A shift of other groups makes stable ones differ from them: the latter did not move.
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
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit AND (p.shifted OR a.all_rows)
ORDER BY p.place
