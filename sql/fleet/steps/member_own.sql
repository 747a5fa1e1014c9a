-- member_own: how much slower a member is than its own other kinds of operations predict.
--
-- Healthy hosts differ: one with a slower CPU is slower in everything. Then the distance of a
-- host's other kinds from their peers predicts this kind, and the residual shows much better
-- whether something is wrong with it. The slope of the prediction comes from the hosts themselves
-- (a line through the origin, from hosts within a third of their peers); it is zero if kinds are
-- uncorrelated.
--
-- within, alike, host, key, kind, op   the member, as in `member`, text
-- more       its median relative to that of its peers, logarithm in millionths, number
-- own_more   the residual, logarithm in millionths; null without other kinds, number
WITH raised AS (
    SELECT
        l.within, l.alike, l.host, l.key, l.kind, l.op, l.p50_log - l.peer_p50_log AS more,
        l.operations >= 500 AS is_sure,
        ROW_NUMBER() OVER (
            PARTITION BY l.within, l.alike, l.host, l.key, l.kind, l.operations >= 500
            ORDER BY l.p50_log - l.peer_p50_log, l.op
        ) AS place,
        COUNT(*) OVER (
            PARTITION BY l.within, l.alike, l.host, l.key, l.kind, l.operations >= 500
        ) AS ops
    FROM member_limit AS l
),
-- With a few hundred operations the median is too uncertain to predict other kinds.
by_kind AS (
    SELECT
        within, alike, host, key, kind,
        MIN(CASE WHEN place * 2 >= ops THEN more END) AS more
    FROM raised
    WHERE is_sure
    GROUP BY within, alike, host, key, kind
),
elsewhere AS (
    SELECT
        k.within, k.alike, k.host, k.key, k.kind, o.more,
        ROW_NUMBER() OVER (
            PARTITION BY k.within, k.alike, k.host, k.key, k.kind ORDER BY o.more, o.kind
        ) AS place,
        COUNT(*) OVER (PARTITION BY k.within, k.alike, k.host, k.key, k.kind) AS kinds
    FROM (SELECT DISTINCT within, alike, host, key, kind FROM raised) AS k
    JOIN by_kind AS o
        ON o.within = k.within AND o.alike = k.alike AND o.host = k.host AND o.key = k.key
        AND o.kind <> k.kind
),
general AS (
    SELECT
        within, alike, host, key, kind,
        MIN(CASE WHEN place * 2 >= kinds THEN more END) AS more
    FROM elsewhere
    GROUP BY within, alike, host, key, kind
),
slope AS (
    SELECT
        r.within, r.alike, r.kind, r.op,
        CAST(SUM(r.more * g.more) AS BIGINT) AS products,
        CAST(SUM(g.more * g.more) AS BIGINT) AS squares
    FROM raised AS r
    JOIN general AS g
        ON g.within = r.within AND g.alike = r.alike AND g.host = r.host AND g.key = r.key
        AND g.kind = r.kind
    WHERE ABS(r.more) <= 300000 AND ABS(g.more) <= 300000
    GROUP BY r.within, r.alike, r.kind, r.op
)
SELECT
    r.within, r.alike, r.host, r.key, r.kind, r.op, r.more,
    r.more - CAST(ROUND(
        g.more * CASE
            WHEN s.squares > 0 THEN LEAST(GREATEST(s.products * 1e0 / s.squares, 0e0), 1e0)
            ELSE 0e0
        END
    ) AS BIGINT) AS own_more
FROM raised AS r
LEFT JOIN general AS g
    ON g.within = r.within AND g.alike = r.alike AND g.host = r.host AND g.key = r.key
    AND g.kind = r.kind
LEFT JOIN slope AS s
    ON s.within = r.within AND s.alike = r.alike AND s.kind = r.kind AND s.op = r.op
