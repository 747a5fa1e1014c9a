-- member_spread: distance of a member from its peers, and the spread of healthy members.
--
-- Both tests compare a logarithm (of the share of slow operations, of the median) with the median
-- of the peers. The spread of healthy members is estimated from the upper quartile of all members,
-- so that a few bad ones do not matter, and combined with a prior that has the weight of ten
-- members, because a few hosts are little evidence. The sampling error of a member is added, with
-- bursts of operations counted as one.
--
-- within, alike, host, key, kind, op   the member, as in `member`, text
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- p50_ns, p99_ns   its percentiles, ns
-- peer_p50_log, peer_p99_log   medians of the peers' percentiles, logarithm in millionths, number
-- slow          operations longer than `slow_ns`, count
-- longer        operations longer than the median of its peers, count
-- slow_ts       start of the second with the most slow ones, ns since the epoch
-- slow_burst, upper_burst   operations that count as one, number
-- usual_log     usual share of slow operations, logarithm, number
-- slow_more, p50_more   its logarithms minus those of its peers, number
-- own_more      the same for the median, minus the prediction of its other kinds (`member_own`);
--               null without other kinds, number
-- freedom       degrees of freedom of the variances, number
-- slow_variance, p50_variance, own_variance   of these differences for a healthy member, number
WITH joined AS (
    SELECT
        l.within, l.alike, l.host, l.key, l.kind, l.op, b.operations, l.peers, l.p50_ns, l.p99_ns,
        l.p50_log, l.spread_log, l.peer_p50_log, l.peer_p99_log, b.slow, b.longer, b.slow_ts,
        b.slow_burst, b.upper_burst,
        CAST(ROUND(1e6 * LN((b.slow + 5e-1) / (b.operations + 1e0))) AS BIGINT) AS slow_log,
        o.own_more,
        -- Sampling variance of the median of log-normal durations with this quartile distance.
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
        -- Members without other kinds come last and do not count.
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
-- Median and upper quartile of all: of four members, one bad one is above the latter.
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
        -- At least one in a hundred, the share for which the limit is defined.
        GREATEST(m.slow_middle / 1e6, LN(1e-2)) AS slow_log,
        -- A quartile is .6745 standard deviations away. The sampling variance of the share of the
        -- median member is subtracted, since it is added for each member later. Not so for medians:
        -- with bimodal durations their sampling variance exceeds what any formula gives.
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
    -- A quartile determines a variance with a fifth of the members as degrees of freedom.
    1e1 + (j.peers + 1) / 5e0 AS freedom,
    -- The share: prior standard deviation .3. Sampling: the standard deviation of a count is the
    -- square root of a value between the count and its expectation.
    (1e1 * 9e-2 + (j.peers + 1) / 5e0 * u.slow_variance) / (1e1 + (j.peers + 1) / 5e0)
    + j.slow_burst * 4e0
    / POWER(SQRT(j.slow + 5e-1) + SQRT(j.operations * EXP(u.slow_log)), 2e0) AS slow_variance,
    -- The median: prior standard deviation .1. The sampling variance is at least that of the
    -- median member's durations with as many operations.
    (1e1 * 1e-2 + (j.peers + 1) / 5e0 * u.p50_variance) / (1e1 + (j.peers + 1) / 5e0)
    + GREATEST(j.chance / 1e9, u.chance_of_one / j.operations) AS p50_variance,
    (1e1 * 1e-2 + (j.peers + 1) / 5e0 * u.own_variance) / (1e1 + (j.peers + 1) / 5e0)
    + GREATEST(j.chance / 1e9, u.chance_of_one / j.operations) AS own_variance
FROM joined AS j
JOIN usual AS u
    ON u.within = j.within AND u.alike = j.alike AND u.kind = j.kind AND u.op = j.op
