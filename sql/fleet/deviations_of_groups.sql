-- deviations: groups of hosts, by label, that are slower than all others.
--
-- The unit is the host, not the operation: a group deviates if its hosts rank higher than the
-- others by their medians or by their shares of slow operations (Mann-Whitney test). If nothing
-- differs, the probability that any group is reported is at most 1 % over all tests of one result
-- (Holm). The median host of the group must differ from that of the others by a quarter of the
-- median, or by three times as many slow operations. Groups with fewer than four hosts are not
-- tested.
--
-- label         value of the label, text
-- kind          kind of operation, text
-- op            class of operation, text
-- key           value of the dimension; empty for hosts as a whole, text
-- test          tail (some operations are far slower) or median (slower throughout), text
-- deviates      whether it deviates; null with too few hosts, flag
-- ratio         median host of the group to that of the others, number
-- hosts         compared hosts of the group, count
-- others        hosts of other groups, count
-- above         probability that a host of the group ranks above a host of the others, ratio
-- deviation     standard deviations of that from chance, number
-- p             probability of any such finding over all tests if nothing differs; 1e-12 means
--               1e-12 or less; null with too few hosts, number
-- host          highest host of the group, text
-- worst_ts      start of the second with the most slow operations there, ns since the epoch
-- recording     recording of that second, for explain -w, text
WITH summed AS (
    SELECT
        test, label, within, key, kind, op,
        COUNT(*) AS hosts,
        MAX(hosts_of) - COUNT(*) AS others,
        CAST(SUM(rank2) AS BIGINT) AS ranks2,
        MIN(CASE WHEN own_place * 2 >= own_hosts THEN more END) AS middle,
        MIN(CASE WHEN own_place = own_hosts THEN host END) AS host,
        MIN(CASE WHEN own_place = own_hosts THEN slow_ts END) AS worst_ts
    FROM group_rank
    GROUP BY test, label, within, key, kind, op
),
tied AS (
    SELECT test, within, key, kind, op, CAST(SUM(tied * tied - 1) AS BIGINT) AS ties
    FROM group_rank
    GROUP BY test, within, key, kind, op
),
-- The median host of all other groups, by counting in rank order.
elsewhere AS (
    SELECT
        s.test, s.label, s.within, s.key, s.kind, s.op, r.more,
        ROW_NUMBER() OVER (
            PARTITION BY s.test, s.label, s.within, s.key, s.kind, s.op ORDER BY r.place
        ) AS place,
        s.others
    FROM summed AS s
    JOIN group_rank AS r
        ON r.test = s.test AND r.within = s.within AND r.key = s.key AND r.kind = s.kind
        AND r.op = s.op AND r.label <> s.label
),
others_middle AS (
    SELECT
        test, label, within, key, kind, op,
        MIN(CASE WHEN place * 2 >= others THEN more END) AS middle
    FROM elsewhere
    GROUP BY test, label, within, key, kind, op
),
tested AS (
    SELECT
        s.test, s.label, s.key, s.kind, s.op, s.hosts, s.others, s.host, s.worst_ts,
        EXP((s.middle - o.middle) / 1e6) AS ratio,
        (s.ranks2 / 2e0 - s.hosts * (s.hosts + 1) / 2e0) / (s.hosts * s.others * 1e0) AS above,
        CASE
            WHEN s.hosts < 4 OR s.others < 4 THEN CAST(NULL AS DOUBLE)
            ELSE ROUND(
                (s.ranks2 / 2e0 - s.hosts * (s.hosts + 1) / 2e0 - s.hosts * s.others / 2e0)
                / SQRT(GREATEST(
                    s.hosts * s.others / 12e0 * (
                        s.hosts + s.others + 1e0
                        - t.ties / ((s.hosts + s.others) * (s.hosts + s.others - 1e0))
                    ),
                    1e-9
                )),
                6
            )
        END AS deviation
    FROM summed AS s
    JOIN others_middle AS o
        ON o.test = s.test AND o.label = s.label AND o.within = s.within AND o.key = s.key
        AND o.kind = s.kind AND o.op = s.op
    JOIN tied AS t
        ON t.test = s.test AND t.within = s.within AND t.key = s.key AND t.kind = s.kind
        AND t.op = s.op
),
ordered AS (
    SELECT
        t.test, t.label, t.key, t.kind, t.op, t.hosts, t.others, t.host, t.worst_ts, t.ratio,
        t.above, t.deviation,
        COUNT(t.deviation) OVER () AS tests,
        ROW_NUMBER() OVER (
            ORDER BY COALESCE(t.deviation, -1e9) DESC, t.label, t.key, t.kind, t.op, t.test, t.host
        ) AS place,
        CASE
            WHEN t.deviation <= 0 THEN 1e0
            ELSE EXP(-t.deviation * t.deviation / 2e0) * 15957691216e-10
                / (3e0 * t.deviation + SQRT(t.deviation * t.deviation + 8e0))
        END AS single
    FROM tested AS t
),
judged AS (
    SELECT
        o.test, o.label, o.key, o.kind, o.op, o.hosts, o.others, o.host, o.worst_ts, o.ratio,
        o.above, o.deviation, o.place,
        CASE WHEN o.deviation IS NOT NULL THEN LEAST(MAX(o.single * (o.tests - o.place + 1)) OVER (
            ORDER BY o.place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ), 1e0) END AS p
    FROM ordered AS o
),
placed AS (
    SELECT
        j.test, j.label, j.key, j.kind, j.op, j.hosts, j.others, j.host, j.worst_ts, j.ratio,
        j.above, j.deviation, j.p,
        CASE WHEN j.p IS NOT NULL
            THEN j.p <= 1e-2 AND j.ratio >= CASE WHEN j.test = 'tail' THEN 3e0 ELSE 125e-2 END
        END AS deviates,
        ROW_NUMBER() OVER (
            ORDER BY
                CASE
                    WHEN j.p <= 1e-2
                        AND j.ratio >= CASE WHEN j.test = 'tail' THEN 3e0 ELSE 125e-2 END THEN 0
                    ELSE 1
                END,
                j.place
        ) AS place
    FROM judged AS j
)
SELECT
    p.label, p.kind, p.op, p.key, p.test, p.deviates,
    ROUND(p.ratio, 4) AS ratio, p.hosts, p.others, p.above,
    p.deviation,
    CASE WHEN p.p IS NOT NULL THEN GREATEST(ROUND(p.p, 12), 1e-12) END AS p,
    p.host, p.worst_ts, c.recording
FROM placed AS p
CROSS JOIN parameters AS a
LEFT JOIN counted AS c
    ON c.host = p.host AND c.kind = p.kind AND c.ts = p.worst_ts AND c.place = 1
WHERE p.place <= a.row_limit AND (p.deviates OR a.all_rows)
ORDER BY p.place
