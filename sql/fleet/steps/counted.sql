-- counted: the recordings that count for each second of each kind of a host.
--
-- Recordings of one host may overlap, as those of a flight recorder do, and operations in both
-- count once: of the recordings of the kind, the one that covers most of the second counts, on a
-- tie the one with the lower id. Recordings that do not overlap, such as one that ends and the next
-- that starts in the same second, both count.
--
-- host        host, text
-- kind        kind of operation, text
-- ts          start of the second, ns since the epoch
-- recording   a recording that counts, text
-- place       1 for the one that covers most of the second, higher for others, count
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
        c.host, c.kind, c.ts, c.recording,
        r.ts AS begin_ns,
        r.ts_end AS end_ns,
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
),
-- Those that do not overlap the first one. A recording that only has operations already in progress
-- at its start repeats data of another one.
apart AS (
    SELECT p.host, p.kind, p.ts, p.recording, p.begin_ns, p.end_ns, p.place
    FROM placed AS p
    JOIN placed AS f ON f.host = p.host AND f.kind = p.kind AND f.ts = p.ts AND f.place = 1
    WHERE
        p.place = 1
        OR (
            (p.begin_ns >= f.end_ns OR p.end_ns <= f.begin_ns)
            AND p.begin_ns <> f.begin_ns
            AND p.begin_ns < p.ts + 1000000000
            AND p.end_ns >= p.ts
        )
)
SELECT p.host, p.kind, p.ts, p.recording, p.place
FROM apart AS p
LEFT JOIN apart AS b
    ON b.host = p.host AND b.kind = p.kind AND b.ts = p.ts
    AND b.place < p.place
    AND ((b.begin_ns < p.end_ns AND p.begin_ns < b.end_ns) OR b.begin_ns = p.begin_ns)
WHERE b.place IS NULL
