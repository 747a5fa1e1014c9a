-- member_test: two tests of each member against its peers: is its tail far slower, and is it
-- slower throughout?
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
WITH tested AS (
    SELECT
        CAST('tail' AS STRING) AS test,
        within, alike, host, key, kind, op, operations, peers,
        p99_ns AS value_ns,
        CAST(ROUND(EXP(peer_p99_log / 1e6)) AS BIGINT) AS peers_ns,
        slow * 1e0 / operations AS share,
        ROUND(EXP(usual_log), 6) AS peers_share,
        slow,
        -- Of whole numbers: one division, which every engine rounds alike.
        slow * 1e6 / (operations * ROUND(1e6 * EXP(usual_log))) AS ratio,
        slow_burst AS burst,
        slow_ts AS worst_ts,
        freedom,
        slow_more / SQRT(slow_variance) AS t
    FROM member_spread
    UNION ALL
    SELECT
        CAST('median' AS STRING) AS test,
        within, alike, host, key, kind, op, operations, peers,
        p50_ns AS value_ns,
        CAST(ROUND(EXP(peer_p50_log / 1e6)) AS BIGINT) AS peers_ns,
        longer * 1e0 / operations AS share,
        CAST(5e-1 AS DOUBLE) AS peers_share,
        longer AS slow,
        ROUND(EXP(p50_more), 4) AS ratio,
        upper_burst AS burst,
        slow_ts AS worst_ts,
        freedom,
        -- Against its peers, or against what its own other kinds tell: what tells more.
        GREATEST(p50_more / SQRT(p50_variance), own_more / SQRT(own_variance)) AS t
    FROM member_spread
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
