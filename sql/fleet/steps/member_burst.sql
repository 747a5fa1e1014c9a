-- member_burst: sums of a member, and how bursty its slow operations are.
--
-- A host that stalled once for a second slowed all operations of that second, and that is one
-- event, not hundreds. The number of operations that count as one is the variance of the counts per
-- time slice divided by the variance for independently slow operations (Pearson's statistic over
-- its degrees of freedom); the higher value of slices of one and of four seconds is used.
--
-- host, key, kind, op   the member, as in `member`, text
-- operations    finished operations, count
-- slow          those longer than `slow_ns`, count
-- longer        those longer than the median of its peers, count
-- slow_ts       start of the second with the most slow ones, ns since the epoch
-- slow_burst    slow operations that count as one, at least 1, number
-- upper_burst   operations above the median that count as one, at least 1, number
WITH slice AS (
    SELECT
        host, key, kind, op,
        CAST(1 AS BIGINT) AS seconds,
        ts AS slice,
        operations, slow, upper, longer
    FROM member_cell
    UNION ALL
    SELECT
        host, key, kind, op,
        CAST(4 AS BIGINT) AS seconds,
        CAST(floor(ts / 4000000000) AS BIGINT) AS slice,
        CAST(SUM(operations) AS BIGINT) AS operations,
        CAST(SUM(slow) AS BIGINT) AS slow,
        CAST(SUM(upper) AS BIGINT) AS upper,
        CAST(SUM(longer) AS BIGINT) AS longer
    FROM member_cell
    GROUP BY host, key, kind, op, CAST(floor(ts / 4000000000) AS BIGINT)
),
added AS (
    SELECT
        host, key, kind, op, seconds,
        COUNT(*) AS slices,
        CAST(SUM(operations) AS BIGINT) AS operations,
        CAST(SUM(slow) AS BIGINT) AS slow,
        CAST(SUM(upper) AS BIGINT) AS upper,
        CAST(SUM(longer) AS BIGINT) AS longer,
        -- In integer millionths: a sum of integers does not depend on the order.
        CAST(SUM(CAST(ROUND(1e6 * slow * slow / operations) AS BIGINT)) AS BIGINT)
            AS slow_squares,
        CAST(SUM(CAST(ROUND(1e6 * upper * upper / operations) AS BIGINT)) AS BIGINT)
            AS upper_squares
    FROM slice
    GROUP BY host, key, kind, op, seconds
),
dispersed AS (
    SELECT
        host, key, kind, op, seconds, operations, slow, longer,
        CASE
            WHEN slices < 2 OR slow = 0 OR slow = operations THEN 1e0
            ELSE GREATEST(
                1e0,
                (slow_squares / 1e6 - 1e0 * slow * slow / operations)
                / (1e0 * slow / operations * (1e0 - 1e0 * slow / operations)) / (slices - 1)
            )
        END AS slow_burst,
        CASE
            WHEN slices < 2 OR upper = 0 OR upper = operations THEN 1e0
            ELSE GREATEST(
                1e0,
                (upper_squares / 1e6 - 1e0 * upper * upper / operations)
                / (1e0 * upper / operations * (1e0 - 1e0 * upper / operations)) / (slices - 1)
            )
        END AS upper_burst
    FROM added
),
worst AS (
    SELECT
        host, key, kind, op, ts,
        ROW_NUMBER() OVER (PARTITION BY host, key, kind, op ORDER BY slow DESC, ts) AS place
    FROM member_cell
)
SELECT
    d.host, d.key, d.kind, d.op,
    MAX(d.operations) AS operations,
    MAX(d.slow) AS slow,
    MAX(d.longer) AS longer,
    MIN(w.ts) AS slow_ts,
    MAX(d.slow_burst) AS slow_burst,
    MAX(d.upper_burst) AS upper_burst
FROM dispersed AS d
JOIN worst AS w
    ON w.host = d.host AND w.key = d.key AND w.kind = d.kind AND w.op = d.op AND w.place = 1
GROUP BY d.host, d.key, d.kind, d.op
