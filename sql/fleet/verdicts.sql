-- verdicts: the number of hosts on which each verdict of `explain` holds.
--
-- A verdict consists of the mechanism, the root cause and the kind of culprit. The example is the
-- verdict with the most blamed time.
--
-- Parameters:
--   label       one row per value of label LABEL (kernel, rack, …)
--   limit = 100 show at most LIMIT rows
--
-- label         value of the label; `(none)` for hosts without it, text
-- mechanism     mechanism of the wait, text
-- root          what the culprit did, text
-- culprit_kind  own, process, kernel, device, peer, …; null if no culprit is named, text
-- hosts         hosts with this verdict, count
-- hosts_of      all hosts (with the label's value), count
-- verdicts      verdicts, count
-- operations    slow operations that they represent, count
-- high, medium, low   verdicts with that confidence, count
-- unsure        verdicts with missing evidence, count
-- blamed_ns     time attributed to the culprits; null if unknown, ns
-- host          host of the example, text
-- verdict       text of the example, text
-- recording     its recording, text
-- id            its id in the recording, for explain -w, id
WITH labelled AS (
    SELECT r.recording, r.host, CASE
        WHEN a.label IS NULL THEN ''
        ELSE COALESCE(MIN(l.value), '(none)')
    END AS label
    FROM recording AS r
    CROSS JOIN parameters AS a
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
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
