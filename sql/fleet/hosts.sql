-- hosts: the data in the lake for each host, and what is missing.
--
-- Parameters:
--   limit = 1000 show at most LIMIT rows
--
-- host          host, text
-- recordings    recordings of it, count
-- first_ts      start of the first one, ns since the epoch
-- last_ts       end of the last one, ns since the epoch
-- covered_ns    whole seconds with operations, each counted once, ns
-- operations    operations of all kinds, count
-- findings      verdicts of `explain`, count
-- lost_events   lost events, as far as the number is known, count
-- losses        time ranges with lost events, count
-- missing       kinds that none of its recordings has, text
-- redacted      redacted recordings, count
-- kernel        kernel release in the last recording, text
-- recording     the last recording, text
-- origin        its path when it was pushed, path
WITH latest AS (
    SELECT
        r.host, r.recording, r.kernel, r.origin,
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
-- Number of recordings that lack each kind.
lacking AS (
    SELECT
        host,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,io,%' THEN 1 ELSE 0 END) AS io,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,block,%' THEN 1 ELSE 0 END) AS block,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,sched,%' THEN 1 ELSE 0 END) AS sched,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,cpu,%' THEN 1 ELSE 0 END) AS cpu,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,locks,%' THEN 1 ELSE 0 END) AS locks,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,mem,%' THEN 1 ELSE 0 END) AS mem,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,dns,%' THEN 1 ELSE 0 END) AS dns,
        SUM(CASE WHEN CONCAT(',', missing, ',') LIKE '%,requests,%' THEN 1 ELSE 0 END) AS requests
    FROM recording
    GROUP BY host
),
counted_second AS (
    SELECT host, COUNT(DISTINCT ts) AS seconds, CAST(SUM(count) AS BIGINT) AS operations
    FROM operation
    WHERE dimension = 'all'
    GROUP BY host
),
explained AS (
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
    CONCAT_WS(
        ',',
        CASE WHEN m.io = p.recordings THEN 'io' END,
        CASE WHEN m.block = p.recordings THEN 'block' END,
        CASE WHEN m.sched = p.recordings THEN 'sched' END,
        CASE WHEN m.cpu = p.recordings THEN 'cpu' END,
        CASE WHEN m.locks = p.recordings THEN 'locks' END,
        CASE WHEN m.mem = p.recordings THEN 'mem' END,
        CASE WHEN m.dns = p.recordings THEN 'dns' END,
        CASE WHEN m.requests = p.recordings THEN 'requests' END
    ) AS missing,
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
CROSS JOIN parameters AS a
JOIN latest AS l ON l.host = p.host AND l.place = 1
JOIN lacking AS m ON m.host = p.host
LEFT JOIN counted_second AS s ON s.host = p.host
LEFT JOIN explained AS t ON t.host = p.host
WHERE p.place <= a.row_limit
ORDER BY p.host
