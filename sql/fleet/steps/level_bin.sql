-- level_bin: deviation of each group of hosts from its usual level, per bin.
--
-- From each host its own median level is subtracted; a group is represented by its median host.
-- With a label, the median of all other hosts at the same time is subtracted as well.
--
-- label, kind, op   the group; an empty label means all hosts, text
-- bin       number of the bin since the epoch, count
-- hosts     hosts of the group with operations in it, count
-- level     difference from the usual level, logarithm in millionths, number
WITH placed AS (
    SELECT
        l.label, l.host, l.kind, l.op, l.bin, l.level,
        ROW_NUMBER() OVER (PARTITION BY l.host, l.kind, l.op ORDER BY l.level, l.bin) AS place,
        COUNT(*) OVER (PARTITION BY l.host, l.kind, l.op) AS bins
    FROM level AS l
),
usual AS (
    SELECT host, kind, op, MIN(CASE WHEN place * 2 >= bins THEN level END) AS level
    FROM placed
    GROUP BY host, kind, op
),
above AS (
    SELECT
        p.label, p.host, p.kind, p.op, p.bin, p.level - u.level AS above,
        ROW_NUMBER() OVER (
            PARTITION BY p.label, p.kind, p.op, p.bin ORDER BY p.level - u.level, p.host
        ) AS own_place,
        COUNT(*) OVER (PARTITION BY p.label, p.kind, p.op, p.bin) AS own_hosts,
        ROW_NUMBER() OVER (PARTITION BY p.kind, p.op, p.bin ORDER BY p.level - u.level, p.host)
            AS place
    FROM placed AS p
    JOIN usual AS u ON u.host = p.host AND u.kind = p.kind AND u.op = p.op
    WHERE p.bins >= 8
),
grouped AS (
    SELECT
        label, kind, op, bin,
        COUNT(*) AS hosts,
        MIN(CASE WHEN own_place * 2 >= own_hosts THEN above END) AS level
    FROM above
    GROUP BY label, kind, op, bin
),
elsewhere AS (
    SELECT
        g.label, g.kind, g.op, g.bin, b.above,
        ROW_NUMBER() OVER (PARTITION BY g.label, g.kind, g.op, g.bin ORDER BY b.place) AS place,
        COUNT(*) OVER (PARTITION BY g.label, g.kind, g.op, g.bin) AS others
    FROM grouped AS g
    JOIN above AS b
        ON b.kind = g.kind AND b.op = g.op AND b.bin = g.bin AND b.label <> g.label
),
others AS (
    SELECT label, kind, op, bin, MIN(CASE WHEN place * 2 >= others THEN above END) AS level
    FROM elsewhere
    GROUP BY label, kind, op, bin
)
SELECT
    g.label, g.kind, g.op, g.bin, g.hosts,
    g.level - COALESCE(o.level, CAST(0 AS BIGINT)) AS level
FROM grouped AS g
LEFT JOIN others AS o
    ON o.label = g.label AND o.kind = g.kind AND o.op = g.op AND o.bin = g.bin
