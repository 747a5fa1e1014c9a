-- member_spread: how far a member is from its peers, and how far healthy ones are.
--
-- Both tests compare a logarithm (of the share of slow operations, of the median) with the median
-- of the peers. What healthy members differ by is taken from the upper half of all of them, so
-- that a few bad ones do not count, together with what is usual, worth ten members: a few hosts
-- tell little of how much hosts differ. What chance does within a member comes on top, by how
-- many operations count as one.
--
-- within, alike, host, key, kind, op   the member, as in `member`, text
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- p50_ns, p99_ns   its percentiles, ns
-- peer_p50_log, peer_p99_log   medians of the peers' percentiles, logarithm in millionths, number
-- slow          operations from `slow_ns` on, count
-- longer        operations longer than the median of its peers, count
-- slow_ts       begin of the second with most slow ones, ns since the epoch
-- slow_burst, upper_burst   operations that count as one, number
-- usual_log     share of slow operations that is usual, logarithm, number
-- slow_more, p50_more   its logarithms less those of its peers, number
-- own_more      the same of the median, less what its other kinds tell (`member_own`); null if it
--               has no other ones, number
-- freedom       degrees of freedom of the variances, number
-- slow_variance, p50_variance, own_variance   of these differences if it was like its peers, number
WITH joined AS (
    SELECT
        l.within, l.alike, l.host, l.key, l.kind, l.op, b.operations, l.peers, l.p50_ns, l.p99_ns,
        l.p50_log, l.spread_log, l.peer_p50_log, l.peer_p99_log, b.slow, b.longer, b.slow_ts,
        b.slow_burst, b.upper_burst,
        CAST(ROUND(1e6 * LN((b.slow + 5e-1) / (b.operations + 1e0))) AS BIGINT) AS slow_log,
        o.own_more,
        -- Variance of a median by chance, of log-normal lengths whose quartiles are so far apart.
        CAST(ROUND(
            b.upper_burst * 15708e-4 * POWER(l.spread_log / 1349e3, 2e0) / b.operations * 1e9
        ) AS BIGINT) AS chance
    FROM member_limit AS l
    JOIN member_burst AS b
        ON b.host = l.host AND b.key = l.key AND b.kind = l.kind AND b.op = l.op
    JOIN member_own AS o
        ON o.within = l.within AND o.alike = l.alike AND o.host = l.host AND o.key = l.key
        AND o.kind = l.kind AND o.op = l.op
),
placed AS (
    SELECT
        j.within, j.alike, j.kind, j.op, j.slow_log, j.p50_log, j.own_more, j.operations,
        j.peers, j.chance,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op ORDER BY j.chance, j.host, j.key
        ) AS chance_place,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op ORDER BY j.slow_log, j.host, j.key
        ) AS slow_place,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op ORDER BY j.p50_log, j.host, j.key
        ) AS p50_place,
        -- Those with nothing to tell from come last and do not count.
        COUNT(j.own_more) OVER (PARTITION BY j.within, j.alike, j.kind, j.op) AS owns,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op
            ORDER BY CASE WHEN j.own_more IS NULL THEN 1 ELSE 0 END, j.own_more, j.host, j.key
        ) AS own_place,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op ORDER BY j.operations, j.host, j.key
        ) AS operations_place
    FROM joined AS j
),
-- The middle and the upper quartile of all: of four, one bad member is beyond the latter.
middled AS (
    SELECT
        within, alike, kind, op,
        MIN(CASE WHEN slow_place * 2 >= peers + 1 THEN slow_log END) AS slow_middle,
        MIN(CASE WHEN slow_place * 4 >= (peers + 1) * 3 THEN slow_log END) AS slow_upper,
        MIN(CASE WHEN p50_place * 2 >= peers + 1 THEN p50_log END) AS p50_middle,
        MIN(CASE WHEN p50_place * 4 >= (peers + 1) * 3 THEN p50_log END) AS p50_upper,
        MIN(CASE WHEN own_place * 2 >= owns THEN own_more END) AS own_middle,
        MIN(CASE WHEN own_place * 4 >= owns * 3 THEN own_more END) AS own_upper,
        MIN(CASE WHEN chance_place * 2 >= peers + 1 THEN chance END) / 1e9 AS chance,
        MIN(CASE WHEN operations_place * 2 >= peers + 1 THEN operations END) AS operations_middle
    FROM placed
    GROUP BY within, alike, kind, op
),
usual AS (
    SELECT
        m.within, m.alike, m.kind, m.op,
        -- One of a hundred at least, which is what the limit was made for.
        GREATEST(m.slow_middle / 1e6, LN(1e-2)) AS slow_log,
        -- A quartile is .6745 standard deviations away. What chance alone does to the shares of
        -- the middle member is taken off, as it comes in again for each. Not so of medians: of
        -- lengths of two sorts chance does more than any formula tells.
        GREATEST(
            POWER((m.slow_upper - m.slow_middle) / 674500e0, 2e0)
            - 1e0 / (m.operations_middle * GREATEST(EXP(m.slow_middle / 1e6), 1e-2) + 1e0),
            0e0
        ) AS slow_variance,
        POWER((m.p50_upper - m.p50_middle) / 674500e0, 2e0) AS p50_variance,
        POWER((m.own_upper - m.own_middle) / 674500e0, 2e0) AS own_variance,
        m.chance * m.operations_middle AS chance_of_one,
        m.own_middle
    FROM middled AS m
)
SELECT
    j.within, j.alike, j.host, j.key, j.kind, j.op, j.operations, j.peers, j.p50_ns, j.p99_ns,
    j.peer_p50_log, j.peer_p99_log, j.slow, j.longer, j.slow_ts, j.slow_burst, j.upper_burst,
    u.slow_log AS usual_log,
    j.slow_log / 1e6 - u.slow_log AS slow_more,
    (j.p50_log - j.peer_p50_log) / 1e6 AS p50_more,
    (j.own_more - u.own_middle) / 1e6 AS own_more,
    -- A fifth of the members: so much does a quartile tell of a variance.
    1e1 + (j.peers + 1) / 5e0 AS freedom,
    -- The share: usual standard deviation .3. By chance, counts differ from those expected by
    -- the square root of something between both.
    (1e1 * 9e-2 + (j.peers + 1) / 5e0 * u.slow_variance) / (1e1 + (j.peers + 1) / 5e0)
    + j.slow_burst * 4e0
    / POWER(SQRT(j.slow + 5e-1) + SQRT(j.operations * EXP(u.slow_log)), 2e0) AS slow_variance,
    -- The median: usual standard deviation .1. By chance not less than the middle member's
    -- lengths would make of as many operations.
    (1e1 * 1e-2 + (j.peers + 1) / 5e0 * u.p50_variance) / (1e1 + (j.peers + 1) / 5e0)
    + GREATEST(j.chance / 1e9, u.chance_of_one / j.operations) AS p50_variance,
    (1e1 * 1e-2 + (j.peers + 1) / 5e0 * u.own_variance) / (1e1 + (j.peers + 1) / 5e0)
    + GREATEST(j.chance / 1e9, u.chance_of_one / j.operations) AS own_variance
FROM joined AS j
JOIN usual AS u
    ON u.within = j.within AND u.alike = j.alike AND u.kind = j.kind AND u.op = j.op
