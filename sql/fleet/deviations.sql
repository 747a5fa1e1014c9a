-- deviations: which hosts are slower than their peers, or which devices, files, processes of them.
--
-- Three tests of each: is the tail far slower (operations beyond what only one of a hundred of its
-- peers' takes), is it slower throughout (median) than its peers, and than its own other kinds of
-- operations tell? The chance that any that is like its peers is named is at most 1 %, of all tests
-- of one answer together (Holm), and the difference has to be one to speak of: the tail three
-- times as many slow operations as usual and five at least; the median one and a half times what
-- is expected, or a quarter more than the peers' with two of three operations longer than that.
--
-- Asked for by:
--   by = host   host; device, file, process, endpoint, name, outcome: what a host has under one
--               key; else the name of a label (rack, kernel, …): groups of hosts
--   kind        kind of operation (io, block, sched, …); all without
--   op          class of operation (read, write, …); all without
--   key         one value of the dimension
--   within      name of a label that peers must share, as hosts of one kind of machine
--   all = false   those that do not deviate, too
--   limit = 100 rows at most
--
-- host          host, text
-- key           what of it; empty for the host as a whole, text
-- kind          kind of operation, text
-- op            class of operation, text
-- test          tail (some are far slower) or median (slower throughout), text
-- than          what is expected: what peers have, or own, what its own other kinds tell, text
-- deviates      whether it does, flag
-- ratio         slow operations to the usual ones (tail), median to the expected one, number
-- value_ns      99th percentile (tail) or median of its operations, ns
-- peers_ns      median of the peers' percentiles, ns
-- share         its operations that are slow (tail), longer than the peers' median (median), ratio
-- peers_share   the share that is usual, ratio
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- burst         operations that count as one, since they come in bursts, number
-- deviation     standard deviations from what is expected, number
-- p             chance of any such finding in all tests together if nothing differs; 1e-12 stands
--               for less, number
-- worst_ts      begin of the second with most slow operations, ns since the epoch
-- recording     recording that counts there: explain -w tells more, text
WITH ordered AS (
    SELECT
        t.test, t.than, t.host, t.key, t.kind, t.op, t.ratio, t.peers_ratio, t.value_ns,
        t.peers_ns, t.share, t.peers_share, t.slow, t.operations, t.peers, t.burst, t.deviation,
        t.worst_ts,
        COUNT(*) OVER () AS tests,
        -- An upper bound of the normal tail (Birnbaum), at most two per cent too much from 1 on.
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
            -- What is slower for this host, but not slow among others, is not to speak of.
            WHEN d.than = 'own' THEN d.ratio >= 15e-1 AND d.peers_ratio >= 11e-1
            ELSE d.ratio >= 15e-1 OR (d.ratio >= 125e-2 AND d.share >= 665e-3)
        END AS deviates
    FROM adjusted AS d
),
-- Slower than the peers and than its own other kinds: said once, by what tells more.
told AS (
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
    FROM told AS j
    CROSS JOIN asked AS a
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
CROSS JOIN asked AS a
LEFT JOIN counted AS c
    ON c.host = p.host AND c.kind = p.kind AND c.ts = p.worst_ts AND c.place = 1
WHERE p.place <= a.row_limit
ORDER BY p.place
