-- level_split: candidate splits of each group's level into before and after.
--
-- label, kind, op   the group, as in `level_bin`, text
-- bins        bins with operations, count
-- place       bins before the split, count
-- next_bin    the first bin after it, count
-- more        level after it minus level before, logarithm in millionths, number
-- deviation   standard deviations of that difference, number
-- rank        1 for the best split, count
WITH stepped AS (
    SELECT
        b.label, b.kind, b.op, b.bin, b.level,
        ROW_NUMBER() OVER (PARTITION BY b.label, b.kind, b.op ORDER BY b.bin) AS place,
        COUNT(*) OVER (PARTITION BY b.label, b.kind, b.op) AS bins,
        SUM(b.level) OVER (
            PARTITION BY b.label, b.kind, b.op ORDER BY b.bin
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS upto,
        SUM(b.level) OVER (PARTITION BY b.label, b.kind, b.op) AS total,
        ABS(b.level - LAG(b.level) OVER (PARTITION BY b.label, b.kind, b.op ORDER BY b.bin))
            AS step,
        LEAD(b.bin) OVER (PARTITION BY b.label, b.kind, b.op ORDER BY b.bin) AS next_bin
    FROM level_bin AS b
),
step_placed AS (
    SELECT
        label, kind, op, step, bins,
        ROW_NUMBER() OVER (PARTITION BY label, kind, op ORDER BY step, bin) AS place
    FROM stepped
    WHERE step IS NOT NULL
),
-- Differences of neighbours, whose median is .954 standard deviations; at least a thousandth.
noise AS (
    SELECT
        label, kind, op,
        GREATEST(MIN(CASE WHEN place * 2 >= bins - 1 THEN step END) / 954e-3, 1e3) AS noise
    FROM step_placed
    GROUP BY label, kind, op
),
split AS (
    SELECT
        s.label, s.kind, s.op, s.bins, s.place, s.next_bin,
        (s.total - s.upto) * 1e0 / (s.bins - s.place) - s.upto * 1e0 / s.place AS more,
        SQRT(s.place * (s.bins - s.place) * 1e0 / s.bins) / n.noise AS weight
    FROM stepped AS s
    JOIN noise AS n ON n.label = s.label AND n.kind = s.kind AND n.op = s.op
    WHERE s.place >= 3 AND s.bins - s.place >= 3
)
SELECT
    label, kind, op, bins, place, next_bin, more,
    -- The noise is estimated from a third as many independent values as there are bins.
    ROUND(SQRT(bins / 3e0 * LN(1e0 + more * weight * more * weight / (bins / 3e0))), 6)
        AS deviation,
    ROW_NUMBER() OVER (
        PARTITION BY label, kind, op ORDER BY ROUND(ABS(more * weight), 6) DESC, place
    ) AS rank
FROM split
