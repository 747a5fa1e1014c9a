-- verdicts: which verdict of `explain` holds on how many hosts.
--
-- A verdict is what was felt (mechanism), what the culprit did (root) and of what kind the culprit
-- is. Its example is the one with most time blamed.
--
-- Asked for by:
--   label       name of a label (kernel, rack, …): a row for each value
--   limit = 100 rows at most
--
-- label         value of the label; `(none)` where a host has none, text
-- mechanism     how it was felt, text
-- root          what the culprit did, text
-- culprit_kind  own, process, kernel, device, peer, …; null if nobody is named, text
-- hosts         hosts with it, count
-- hosts_of      hosts in all (of the label's value), count
-- verdicts      how often it was told, count
-- operations    slow operations that it stands for, count
-- high, medium, low   verdicts of such confidence, count
-- unsure        verdicts for which evidence was missing, count
-- blamed_ns     time that went to the culprits; null where no verdict tells, ns
-- host          host of the example, text
-- verdict       the example, in words, text
-- recording     its recording, text
-- id            its id there: explain -w, id
WITH labelled AS (
    SELECT r.recording, r.host, CASE
        WHEN a.label IS NULL THEN ''
        ELSE COALESCE(MIN(l.value), '(none)')
    END AS label
    FROM recording AS r
    CROSS JOIN asked AS a
    LEFT JOIN label AS l ON l.recording = r.recording AND l.name = a.label
    GROUP BY r.recording, r.host, a.label
),
size AS (
    SELECT label, COUNT(DISTINCT host) AS hosts
    FROM labelled
    GROUP BY label
),
ranked AS (
    SELECT
        l.label, v.mechanism, v.root, v.culprit_kind, v.host, v.count, v.confidence, v.missing,
        v.blamed_ns, v.verdict, v.recording, v.id,
        ROW_NUMBER() OVER (
            PARTITION BY l.label, v.mechanism, COALESCE(v.root, ''), COALESCE(v.culprit_kind, '')
            ORDER BY COALESCE(v.blamed_ns, v.dur) DESC, v.host, v.recording, v.nr
        ) AS place
    FROM verdict AS v
    JOIN labelled AS l ON l.recording = v.recording AND l.host = v.host
),
grouped AS (
    SELECT
        label, mechanism, root, culprit_kind,
        COUNT(DISTINCT host) AS hosts,
        COUNT(*) AS verdicts,
        CAST(SUM(count) AS BIGINT) AS operations,
        CAST(SUM(CASE WHEN confidence = 'high' THEN 1 ELSE 0 END) AS BIGINT) AS high,
        CAST(SUM(CASE WHEN confidence = 'medium' THEN 1 ELSE 0 END) AS BIGINT) AS medium,
        CAST(SUM(CASE WHEN confidence = 'low' THEN 1 ELSE 0 END) AS BIGINT) AS low,
        COUNT(missing) AS unsure,
        CAST(SUM(blamed_ns) AS BIGINT) AS blamed_ns,
        MIN(CASE WHEN place = 1 THEN host END) AS host,
        MIN(CASE WHEN place = 1 THEN verdict END) AS verdict,
        MIN(CASE WHEN place = 1 THEN recording END) AS recording,
        MIN(CASE WHEN place = 1 THEN id END) AS id
    FROM ranked
    GROUP BY label, mechanism, root, culprit_kind
),
placed AS (
    SELECT
        g.label, g.mechanism, g.root, g.culprit_kind, g.hosts, s.hosts AS hosts_of, g.verdicts,
        g.operations, g.high, g.medium, g.low, g.unsure, g.blamed_ns, g.host, g.verdict,
        g.recording, g.id,
        ROW_NUMBER() OVER (
            ORDER BY
                g.hosts DESC, COALESCE(g.blamed_ns, CAST(0 AS BIGINT)) DESC, g.label, g.mechanism,
                COALESCE(g.root, ''), COALESCE(g.culprit_kind, '')
        ) AS place
    FROM grouped AS g
    JOIN size AS s ON s.label = g.label
)
SELECT
    p.label, p.mechanism, p.root, p.culprit_kind, p.hosts, p.hosts_of, p.verdicts, p.operations,
    p.high, p.medium, p.low, p.unsure, p.blamed_ns, p.host, p.verdict, p.recording, p.id
FROM placed AS p
CROSS JOIN asked AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
