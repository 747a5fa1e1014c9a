-- culprits: the culprits with the most blamed time, over all hosts.
--
-- Parameters:
--   limit = 100 show at most LIMIT rows
--
-- culprit_kind  own, process, kernel, device, peer, timer, cgroup, interrupt, text
-- culprit       its name, with placeholders for numbers, text
-- object_kind   file, device, lock, peer, …, text
-- object        object of the wait, with placeholders, text
-- blamed_ns     time attributed to it, ns
-- hosts         hosts with verdicts that name it, count
-- verdicts      verdicts that name it, count
-- operations    slow operations that these represent, count
-- proved        verdicts of grade A or B, count
-- mechanism     mechanism in the verdict with the most time, text
-- host          host with the most time attributed to it, text
-- verdict       text of the verdict with the most time, text
-- recording     recording of that verdict, text
-- id            its id in the recording, for explain -w, id
WITH ranked AS (
    SELECT
        v.culprit_kind, v.culprit, v.object_kind, v.object, v.blamed_ns, v.host, v.count, v.grade,
        v.mechanism, v.verdict, v.recording, v.id,
        ROW_NUMBER() OVER (
            PARTITION BY v.culprit_kind, v.culprit, COALESCE(v.object_kind, ''),
                COALESCE(v.object, '')
            ORDER BY COALESCE(v.blamed_ns, CAST(0 AS BIGINT)) DESC, v.host, v.recording, v.nr
        ) AS place
    FROM verdict AS v
    WHERE v.culprit IS NOT NULL
),
grouped AS (
    SELECT
        culprit_kind, culprit, object_kind, object,
        COALESCE(CAST(SUM(blamed_ns) AS BIGINT), CAST(0 AS BIGINT)) AS blamed_ns,
        COUNT(DISTINCT host) AS hosts,
        COUNT(*) AS verdicts,
        CAST(SUM(count) AS BIGINT) AS operations,
        CAST(SUM(CASE WHEN grade IN ('A', 'B') THEN 1 ELSE 0 END) AS BIGINT) AS proved,
        MIN(CASE WHEN place = 1 THEN mechanism END) AS mechanism,
        MIN(CASE WHEN place = 1 THEN host END) AS host,
        MIN(CASE WHEN place = 1 THEN verdict END) AS verdict,
        MIN(CASE WHEN place = 1 THEN recording END) AS recording,
        MIN(CASE WHEN place = 1 THEN id END) AS id
    FROM ranked
    GROUP BY culprit_kind, culprit, object_kind, object
),
placed AS (
    SELECT
        g.culprit_kind, g.culprit, g.object_kind, g.object, g.blamed_ns, g.hosts, g.verdicts,
        g.operations, g.proved, g.mechanism, g.host, g.verdict, g.recording, g.id,
        ROW_NUMBER() OVER (
            ORDER BY
                g.blamed_ns DESC, g.hosts DESC, COALESCE(g.culprit_kind, ''), g.culprit,
                COALESCE(g.object_kind, ''), COALESCE(g.object, '')
        ) AS place
    FROM grouped AS g
)
SELECT
    p.culprit_kind, p.culprit, p.object_kind, p.object, p.blamed_ns, p.hosts, p.verdicts,
    p.operations, p.proved, p.mechanism, p.host, p.verdict, p.recording, p.id
FROM placed AS p
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
