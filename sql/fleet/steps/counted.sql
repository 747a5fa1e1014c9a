-- counted: which recording counts, for each second of each kind of a host.
--
-- Recordings of one host may overlap, as those of a flight recorder do, and what both saw counts
-- once: of those that recorded the kind it is the one that covers most of the second, of equal
-- ones the one with the lesser id.
--
-- host        host, text
-- kind        kind of operation, text
-- ts          begin of the second, ns since the epoch
-- recording   the recording that counts, text
WITH seen AS (
    SELECT DISTINCT host, kind, ts, recording
    FROM rollup
    WHERE dimension = 'all'
),
candidate AS (
    SELECT host, kind, ts, recording
    FROM seen
    UNION
    SELECT s.host, s.kind, s.ts, r.recording
    FROM (SELECT DISTINCT host, kind, ts FROM seen) AS s
    JOIN recording AS r
        ON r.host = s.host
        AND r.ts < s.ts + 1000000000
        AND r.ts_end > s.ts
    WHERE CONCAT(',', r.missing, ',') NOT LIKE CONCAT('%,', s.kind, ',%')
),
placed AS (
    SELECT
        c.host,
        c.kind,
        c.ts,
        c.recording,
        ROW_NUMBER() OVER (
            PARTITION BY c.host, c.kind, c.ts
            ORDER BY
                GREATEST(
                    LEAST(r.ts_end, c.ts + 1000000000) - GREATEST(r.ts, c.ts),
                    CAST(0 AS BIGINT)
                ) DESC,
                c.recording
        ) AS place
    FROM candidate AS c
    JOIN recording AS r ON r.recording = c.recording AND r.host = c.host
)
SELECT host, kind, ts, recording
FROM placed
WHERE place = 1
