-- deviations: members that could not be judged, and what else makes peers differ.
--
-- gap       what is not known, with {hosts}, {what} and {example} in it, text
-- kind, op  of what, text
-- hosts     on how many hosts, count
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
said AS (
    SELECT
        CAST('not judged for less than 100 operations of `{what}`: {hosts} of the hosts ({example})'
            AS STRING) AS gap,
        kind, op, hosts, example
    FROM small
    UNION ALL
    SELECT
        CAST('not judged for fewer than 3 peers with `{what}`: {hosts} of the hosts ({example})'
            AS STRING) AS gap,
        kind, op, hosts, example
    FROM alone
    UNION ALL
    SELECT
        CAST('of `{what}` fewer than 20 peers tell what is usual: only great differences are found'
            AS STRING) AS gap,
        kind, op, hosts, example
    FROM few
)
SELECT s.gap, s.kind, s.op, s.hosts, s.example
FROM said AS s
ORDER BY s.gap, s.kind, s.op
