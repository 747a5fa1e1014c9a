-- group_rank: hosts of groups, ranked by how far they are above their peers.
--
-- test      tail or median, text
-- label     value of the selected label, text
-- within, host, key, kind, op   the member, as in `member`, text
-- more      above its peers, logarithm in millionths, number
-- slow_ts   start of the second with the most slow operations, ns since the epoch
-- rank2     twice its rank among all hosts, an integer also for ties, number
-- tied      hosts with the same value, itself included, count
-- hosts_of  hosts in all, count
-- own_place, own_hosts   its place in its group, and hosts of the group, count
-- place     its place among all, count
WITH labelled AS (
    SELECT h.host, COALESCE(MIN(l.value), '(none)') AS label
    FROM (SELECT DISTINCT recording, host FROM recording) AS h
    CROSS JOIN parameters AS a
    LEFT JOIN label AS l ON l.recording = h.recording AND l.name = a.label
    GROUP BY h.host
),
measured AS (
    SELECT
        CAST('tail' AS STRING) AS test, g.label, s.within, s.host, s.key, s.kind, s.op,
        CAST(ROUND(1e6 * s.slow_more) AS BIGINT) AS more, s.slow_ts
    FROM member_spread AS s
    JOIN labelled AS g ON g.host = s.host
    UNION ALL
    SELECT
        CAST('median' AS STRING) AS test, g.label, s.within, s.host, s.key, s.kind, s.op,
        CAST(ROUND(1e6 * s.p50_more) AS BIGINT) AS more, s.slow_ts
    FROM member_spread AS s
    JOIN labelled AS g ON g.host = s.host
)
SELECT
    m.test, m.label, m.within, m.host, m.key, m.kind, m.op, m.more, m.slow_ts,
    2 * RANK() OVER (PARTITION BY m.test, m.within, m.key, m.kind, m.op ORDER BY m.more)
    + COUNT(*) OVER (PARTITION BY m.test, m.within, m.key, m.kind, m.op, m.more) - 1 AS rank2,
    COUNT(*) OVER (PARTITION BY m.test, m.within, m.key, m.kind, m.op, m.more) AS tied,
    COUNT(*) OVER (PARTITION BY m.test, m.within, m.key, m.kind, m.op) AS hosts_of,
    ROW_NUMBER() OVER (
        PARTITION BY m.test, m.label, m.within, m.key, m.kind, m.op ORDER BY m.more, m.host
    ) AS own_place,
    COUNT(*) OVER (PARTITION BY m.test, m.label, m.within, m.key, m.kind, m.op) AS own_hosts,
    ROW_NUMBER() OVER (
        PARTITION BY m.test, m.within, m.key, m.kind, m.op ORDER BY m.more, m.host
    ) AS place
FROM measured AS m
