-- deviations: members that were not tested, and tests with low power.
--
-- gap       caveat with the placeholders {hosts}, {what} and {example}, text
-- kind, op  kind and class of operation, text
-- hosts     affected hosts, count
-- example   one of them, text
WITH small AS (
    SELECT m.kind, m.op, COUNT(DISTINCT m.host) AS hosts, MIN(m.host) AS example
    FROM member AS m
    WHERE m.operations < 100
    GROUP BY m.kind, m.op
),
alone AS (
    SELECT m.kind, m.op, COUNT(DISTINCT m.host) AS hosts, MIN(m.host) AS example
    FROM member AS m
    LEFT JOIN member_limit AS l
        ON l.host = m.host AND l.key = m.key AND l.kind = m.kind AND l.op = m.op
    WHERE m.operations >= 100 AND l.host IS NULL
    GROUP BY m.kind, m.op
),
few AS (
    SELECT l.kind, l.op, COUNT(DISTINCT l.host) AS hosts, MIN(l.host) AS example
    FROM member_limit AS l
    WHERE l.peers < 20
    GROUP BY l.kind, l.op
),
caveat AS (
    SELECT
        CAST('{hosts} hosts not tested: fewer than 100 operations of `{what}` ({example})'
            AS STRING) AS gap,
        kind, op, hosts, example
    FROM small
    UNION ALL
    SELECT
        CAST('{hosts} hosts not tested: fewer than 3 peers with `{what}` ({example})'
            AS STRING) AS gap,
        kind, op, hosts, example
    FROM alone
    UNION ALL
    SELECT
        CAST('fewer than 20 peers with `{what}`: only large differences are detectable'
            AS STRING) AS gap,
        kind, op, hosts, example
    FROM few
)
SELECT s.gap, s.kind, s.op, s.hosts, s.example
FROM caveat AS s
ORDER BY s.gap, s.kind, s.op
