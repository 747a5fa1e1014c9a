-- member_test: two tests of each member against its peers: is its tail far slower, and is it
-- slower throughout?
--
-- Both compare a logarithm (of the share of slow operations, of the median) with the median of the
-- peers. What healthy members differ by is taken from the upper half of all of them, so that a few
-- bad ones do not count, together with what is usual (`prior`, worth ten members): a few hosts
-- tell little of how much hosts differ. What chance does within a member comes on top, by how
-- many operations count as one.
--
-- test          tail or median, text
-- within, alike, host, key, kind, op   the member, as in `member`, text
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- value_ns, peers_ns   its percentile (99th or 50th) and the median of the peers', ns
-- share         its operations that are slow, or longer than the peers' median, ratio
-- peers_share   the share that is usual, ratio
-- slow          number of these, count
-- ratio         of shares (tail) or of medians (median), number
-- burst         operations that count as one, number
-- worst_ts      begin of the second with most slow ones, ns since the epoch
-- deviation     standard deviations from the peers, number
WITH joined AS (
    SELECT
        l.within, l.alike, l.host, l.key, l.kind, l.op, b.operations, l.peers, l.p50_ns, l.p99_ns,
        l.p50_log, l.spread_log, l.peer_p50_log, l.peer_p99_log, b.slow, b.longer, b.slow_ts,
        b.slow_burst, b.upper_burst,
        CAST(ROUND(1e6 * LN((b.slow + 5e-1) / (b.operations + 1e0))) AS BIGINT) AS slow_log
    FROM member_limit AS l
    JOIN member_burst AS b
        ON b.host = l.host AND b.key = l.key AND b.kind = l.kind AND b.op = l.op
),
placed AS (
    SELECT
        j.within, j.alike, j.kind, j.op, j.slow_log, j.p50_log, j.operations, j.peers,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op ORDER BY j.slow_log, j.host, j.key
        ) AS slow_place,
        ROW_NUMBER() OVER (
            PARTITION BY j.within, j.alike, j.kind, j.op ORDER BY j.p50_log, j.host, j.key
        ) AS p50_place,
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
        -- the middle member is taken off, as it comes in again for each.
        GREATEST(
            POWER((m.slow_upper - m.slow_middle) / 674500e0, 2e0)
            - 1e0 / (m.operations_middle * GREATEST(EXP(m.slow_middle / 1e6), 1e-2) + 1e0),
            0e0
        ) AS slow_variance,
        POWER((m.p50_upper - m.p50_middle) / 674500e0, 2e0) AS p50_variance
    FROM middled AS m
),
spread AS (
    SELECT
        j.within, j.alike, j.host, j.key, j.kind, j.op, j.operations, j.peers, j.p50_ns, j.p99_ns,
        j.peer_p50_log, j.peer_p99_log, j.slow, j.longer, j.slow_ts, j.slow_burst, j.upper_burst,
        u.slow_log AS usual_log,
        j.slow_log / 1e6 - u.slow_log AS slow_more,
        (j.p50_log - j.peer_p50_log) / 1e6 AS p50_more,
        -- A fifth of the members: so much does a quartile tell of a variance.
        1e1 + (j.peers + 1) / 5e0 AS freedom,
        -- The share: usual standard deviation .3. By chance, counts differ from those expected by
        -- the square root of something between both.
        (1e1 * 9e-2 + (j.peers + 1) / 5e0 * u.slow_variance) / (1e1 + (j.peers + 1) / 5e0)
        + j.slow_burst * 4e0
        / POWER(SQRT(j.slow + 5e-1) + SQRT(j.operations * EXP(u.slow_log)), 2e0) AS slow_variance,
        -- The median: usual standard deviation .1. By chance, that of a median of log-normal
        -- lengths whose quartiles are so far apart.
        (1e1 * 1e-2 + (j.peers + 1) / 5e0 * u.p50_variance) / (1e1 + (j.peers + 1) / 5e0)
        + j.upper_burst * 15708e-4 * POWER(j.spread_log / 1349e3, 2e0) / j.operations
            AS p50_variance
    FROM joined AS j
    JOIN usual AS u
        ON u.within = j.within AND u.alike = j.alike AND u.kind = j.kind AND u.op = j.op
),
tested AS (
    SELECT
        CAST('tail' AS STRING) AS test,
        within, alike, host, key, kind, op, operations, peers,
        p99_ns AS value_ns,
        CAST(ROUND(EXP(peer_p99_log / 1e6)) AS BIGINT) AS peers_ns,
        slow * 1e0 / operations AS share,
        EXP(usual_log) AS peers_share,
        slow,
        slow / (operations * EXP(usual_log)) AS ratio,
        slow_burst AS burst,
        slow_ts AS worst_ts,
        freedom,
        slow_more / SQRT(slow_variance) AS t
    FROM spread
    UNION ALL
    SELECT
        CAST('median' AS STRING) AS test,
        within, alike, host, key, kind, op, operations, peers,
        p50_ns AS value_ns,
        CAST(ROUND(EXP(peer_p50_log / 1e6)) AS BIGINT) AS peers_ns,
        longer * 1e0 / operations AS share,
        CAST(5e-1 AS DOUBLE) AS peers_share,
        longer AS slow,
        EXP(p50_more) AS ratio,
        upper_burst AS burst,
        slow_ts AS worst_ts,
        freedom,
        p50_more / SQRT(p50_variance) AS t
    FROM spread
)
SELECT
    test, within, alike, host, key, kind, op, operations, peers, value_ns, peers_ns, share,
    peers_share, slow, ratio, burst, worst_ts,
    -- From Student's distribution to the normal one (Wallace 1959), rounded so that no last bit
    -- of an engine's logarithm decides an order.
    ROUND(
        SIGN(t) * (8e0 * freedom + 1e0) / (8e0 * freedom + 3e0)
        * SQRT(freedom * LN(1e0 + t * t / freedom)),
        6
    ) AS deviation
FROM tested
