-- hosts: what the lake has of each host, and what is missing of it.
--
-- Asked for by:
--   limit = 1000 rows at most
--
-- host          host, text
-- recordings    recordings of it, count
-- first_ts      begin of the first one, ns since the epoch
-- last_ts       end of the last one, ns since the epoch
-- covered_ns    time of whole seconds with operations, each once, ns
-- operations    operations, of all kinds, count
-- findings      verdicts of `explain`, count
-- lost_events   events that were lost, as far as that is known, count
-- losses        ranges of time in which events were lost, count
-- missing       kinds of which its last recording has nothing, text
-- redacted      recordings in which texts were hidden, count
-- kernel        release of its kernel, of the last recording, text
-- recording     the last recording, text
-- origin        where that was when it was pushed, path
WITH latest AS (
    SELECT
        r.host, r.recording, r.kernel, r.origin, r.missing,
        ROW_NUMBER() OVER (PARTITION BY r.host ORDER BY r.ts_end DESC, r.recording DESC) AS place
    FROM recording AS r
),
pushed AS (
    SELECT
        host,
        COUNT(*) AS recordings,
        MIN(ts) AS first_ts,
        MAX(ts_end) AS last_ts,
        CAST(SUM(lost_events) AS BIGINT) AS lost_events,
        CAST(SUM(losses) AS BIGINT) AS losses,
        COUNT(redacted) AS redacted
    FROM recording
    GROUP BY host
),
counted_second AS (
    SELECT host, COUNT(DISTINCT ts) AS seconds, CAST(SUM(count) AS BIGINT) AS operations
    FROM operation
    WHERE dimension = 'all'
    GROUP BY host
),
told AS (
    SELECT host, COUNT(*) AS findings
    FROM finding
    GROUP BY host
)
SELECT
    p.host,
    p.recordings,
    p.first_ts,
    p.last_ts,
    COALESCE(s.seconds, 0) * 1000000000 AS covered_ns,
    COALESCE(s.operations, 0) AS operations,
    COALESCE(t.findings, 0) AS findings,
    p.lost_events,
    p.losses,
    l.missing,
    p.redacted,
    l.kernel,
    l.recording,
    l.origin
FROM (
    SELECT
        host, recordings, first_ts, last_ts, lost_events, losses, redacted,
        ROW_NUMBER() OVER (ORDER BY host) AS place
    FROM pushed
) AS p
CROSS JOIN asked AS a
JOIN latest AS l ON l.host = p.host AND l.place = 1
LEFT JOIN counted_second AS s ON s.host = p.host
LEFT JOIN told AS t ON t.host = p.host
WHERE p.place <= a.row_limit
ORDER BY p.host
