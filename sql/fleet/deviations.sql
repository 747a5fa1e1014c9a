-- deviations: hosts, or their devices, files or processes, that are slower than their peers.
--
-- Each is tested three times: whether its tail is far slower (more operations beyond the peers'
-- 99th percentile), whether its median is higher than that of its peers, and whether its median is
-- higher than its own other kinds of operations predict. If nothing deviates, the probability that
-- any is reported is at most 1 % over all tests of one result (Holm). A minimum effect is required:
-- for the tail three times as many slow operations as usual, and at least five; for the median 1.5
-- times the expected value, or 1.25 times the peers' with two of three operations longer than it.
--
-- Parameters:
--   by = host   compare hosts; or each device, file, process, endpoint, name or outcome of a host;
--               or groups of hosts by the name of a label (rack, kernel, …)
--   kind        include only operations of KIND (io, block, sched, …)
--   op          include only operations of class OP (read, write, …)
--   key         include only value KEY of the dimension
--   within      compare only hosts with the same value of label WITHIN, such as the machine type
--   all = false   show all comparisons, not only deviations
--   limit = 100 show at most LIMIT rows
--
-- host          host, text
-- key           value of the dimension; empty for the host as a whole, text
-- kind          kind of operation, text
-- op            class of operation, text
-- test          tail (some operations are far slower) or median (slower throughout), text
-- than          source of the expected value: peers, or own (its own other kinds), text
-- deviates      whether it deviates, flag
-- ratio         slow operations to the usual number (tail), median to the expected one, number
-- value_ns      99th percentile (tail) or median of its operations, ns
-- peers_ns      median of the peers' percentiles, ns
-- share         share of slow operations (tail) or of those above the peers' median (median), ratio
-- peers_share   the usual share, ratio
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- burst         operations that count as one because they come in bursts, number
-- deviation     standard deviations from the expected value, number
-- p             probability of any such finding over all tests if nothing differs; 1e-12 means
--               1e-12 or less, number
-- worst_ts      start of the second with the most slow operations, ns since the epoch
-- recording     recording of that second, for explain -w, text
WITH ordered AS (
    SELECT
        t.test, t.than, t.host, t.key, t.kind, t.op, t.ratio, t.peers_ratio, t.value_ns,
        t.peers_ns, t.share, t.peers_share, t.slow, t.operations, t.peers, t.burst, t.deviation,
        t.worst_ts,
        COUNT(*) OVER () AS tests,
        -- An upper bound of the normal tail (Birnbaum), at most two per cent too high from 1 on.
        CASE
            WHEN t.deviation <= 0 THEN 1e0
            ELSE LEAST(1e0, EXP(-t.deviation * t.deviation / 2e0) * 15957691216e-10
                / (3e0 * t.deviation + SQRT(t.deviation * t.deviation + 8e0)))
        END AS single
    FROM member_test AS t
),
ranked AS (
    SELECT
        o.test, o.than, o.host, o.key, o.kind, o.op, o.ratio, o.peers_ratio, o.value_ns,
        o.peers_ns, o.share, o.peers_share, o.slow, o.operations, o.peers, o.burst, o.deviation,
        o.worst_ts, o.tests, o.single,
        ROW_NUMBER() OVER (
            ORDER BY o.single, o.deviation DESC, o.host, o.key, o.kind, o.op, o.test, o.than
        ) AS place
    FROM ordered AS o
),
adjusted AS (
    SELECT
        o.test, o.than, o.host, o.key, o.kind, o.op, o.ratio, o.peers_ratio, o.value_ns,
        o.peers_ns, o.share, o.peers_share, o.slow, o.operations, o.peers, o.burst, o.deviation,
        o.worst_ts,
        LEAST(MAX(o.single * (o.tests - o.place + 1)) OVER (
            ORDER BY o.place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ), 1e0) AS p
    FROM ranked AS o
),
judged AS (
    SELECT
        d.test, d.than, d.host, d.key, d.kind, d.op, d.ratio, d.value_ns, d.peers_ns, d.share,
        d.peers_share, d.operations, d.peers, d.burst, d.deviation, d.worst_ts, d.p,
        d.p <= 1e-2 AND CASE
            WHEN d.test = 'tail' THEN d.slow >= 5 AND d.ratio >= 3e0
            -- Slower than this host usually is, but not slow among its peers, is not reported.
            WHEN d.than = 'own' THEN d.ratio >= 15e-1 AND d.peers_ratio >= 11e-1
            ELSE d.ratio >= 15e-1 OR (d.ratio >= 125e-2 AND d.share >= 665e-3)
        END AS deviates
    FROM adjusted AS d
),
-- Slower than the peers and than its own other kinds: reported once, by the stronger test.
strongest AS (
    SELECT
        j.test, j.than, j.host, j.key, j.kind, j.op, j.ratio, j.value_ns, j.peers_ns, j.share,
        j.peers_share, j.operations, j.peers, j.burst, j.deviation, j.worst_ts, j.p, j.deviates,
        ROW_NUMBER() OVER (
            PARTITION BY j.host, j.key, j.kind, j.op, j.test
            ORDER BY CASE WHEN j.deviates THEN 0 ELSE 1 END, j.deviation DESC, j.than DESC
        ) AS place
    FROM judged AS j
),
placed AS (
    SELECT
        j.test, j.than, j.host, j.key, j.kind, j.op, j.ratio, j.value_ns, j.peers_ns, j.share,
        j.peers_share, j.operations, j.peers, j.burst, j.deviation, j.worst_ts, j.p, j.deviates,
        ROW_NUMBER() OVER (
            ORDER BY
                CASE WHEN j.deviates THEN 0 ELSE 1 END,
                j.deviation DESC, j.host, j.key, j.kind, j.op, j.test
        ) AS place
    FROM strongest AS j
    CROSS JOIN parameters AS a
    WHERE j.place = 1 AND (j.deviates OR a.all_rows)
)
SELECT
    p.host, p.key, p.kind, p.op, p.test, p.than, p.deviates,
    p.ratio, p.value_ns, p.peers_ns, p.share, p.peers_share, p.operations, p.peers, p.burst,
    p.deviation,
    CASE WHEN p.p IS NOT NULL THEN GREATEST(ROUND(p.p, 12), 1e-12) END AS p,
    p.worst_ts,
    c.recording
FROM placed AS p
CROSS JOIN parameters AS a
LEFT JOIN counted AS c
    ON c.host = p.host AND c.kind = p.kind AND c.ts = p.worst_ts AND c.place = 1
WHERE p.place <= a.row_limit
ORDER BY p.place
