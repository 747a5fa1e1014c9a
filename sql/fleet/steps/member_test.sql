-- member_test: tests of each member: whether its tail is far slower than those of its peers,
-- whether it is slower throughout, and whether it is slower than its own other kinds predict.
--
-- test          tail or median, text
-- than          peers, or own: its own other kinds, text
-- within, alike, host, key, kind, op   the member, as in `member`, text
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- value_ns, peers_ns   its percentile (99th or 50th) and the median of the peers' ones, ns
-- share         share of slow operations, or of those above the peers' median, ratio
-- peers_share   the usual share, ratio
-- slow          number of these operations, count
-- ratio         share (tail) or median (median) to the expected value, number
-- peers_ratio   median to that of the peers, number
-- burst         operations that count as one, number
-- worst_ts      start of the second with the most slow ones, ns since the epoch
-- deviation     standard deviations from the peers, number
WITH variant AS (
    SELECT CAST('tail' AS STRING) AS test, CAST('peers' AS STRING) AS than
    UNION ALL
    SELECT CAST('median' AS STRING) AS test, CAST('peers' AS STRING) AS than
    UNION ALL
    SELECT CAST('median' AS STRING) AS test, CAST('own' AS STRING) AS than
),
tested AS (
    SELECT
        t.test, t.than, s.within, s.alike, s.host, s.key, s.kind, s.op, s.operations, s.peers,
        CASE WHEN t.test = 'tail' THEN s.p99_ns ELSE s.p50_ns END AS value_ns,
        CAST(ROUND(EXP(
            CASE WHEN t.test = 'tail' THEN s.peer_p99_log ELSE s.peer_p50_log END / 1e6
        )) AS BIGINT) AS peers_ns,
        CASE WHEN t.test = 'tail' THEN s.slow ELSE s.longer END AS slow,
        CASE WHEN t.test = 'tail' THEN ROUND(EXP(s.usual_log), 6) ELSE 5e-1 END AS peers_share,
        -- A single division of integers, which every engine rounds alike.
        CASE
            WHEN t.test = 'tail'
                THEN s.slow * 1e6 / (s.operations * ROUND(1e6 * EXP(s.usual_log)))
            ELSE ROUND(EXP(CASE WHEN t.than = 'own' THEN s.own_more ELSE s.p50_more END), 4)
        END AS ratio,
        ROUND(EXP(s.p50_more), 4) AS peers_ratio,
        CASE WHEN t.test = 'tail' THEN s.slow_burst ELSE s.upper_burst END AS burst,
        s.slow_ts AS worst_ts,
        s.freedom,
        CASE
            WHEN t.test = 'tail' THEN s.slow_more / SQRT(s.slow_variance)
            WHEN t.than = 'own' THEN s.own_more / SQRT(s.own_variance)
            ELSE s.p50_more / SQRT(s.p50_variance)
        END AS t
    FROM member_spread AS s
    CROSS JOIN variant AS t
    WHERE t.than = 'peers' OR s.own_more IS NOT NULL
)
SELECT
    test, than, within, alike, host, key, kind, op, operations, peers, value_ns, peers_ns,
    slow * 1e0 / operations AS share, peers_share, slow, ratio, peers_ratio, burst, worst_ts,
    -- From Student's distribution to the normal one (Wallace 1959), rounded so that the last bit
    -- of an engine's logarithm does not decide an order.
    ROUND(
        SIGN(t) * (8e0 * freedom + 1e0) / (8e0 * freedom + 3e0)
        * SQRT(freedom * LN(1e0 + t * t / freedom)),
        6
    ) AS deviation
FROM tested
