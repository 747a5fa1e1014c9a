-- length: the rows of `histogram` in the window, with each second counted once.
--
-- recording   id of the recording, text
-- host        host that was recorded, text
-- ts          start of the second in which they started, ns since the epoch
-- kind, dimension, key, op   as in `rollup`, text
-- value_ns    duration, as exact as recorded, ns
-- middle_ns   middle of the bucket, ns
-- width_ns    width of the bucket, ns
-- count       operations with this duration, count
WITH shifted AS (
    SELECT
        r.recording, r.host, r.ts, r.kind, r.dimension, r.key, r.op, r.bucket, r.value_ns, r.count,
        -- The buckets of an octave have a width of two to this power.
        FLOOR(r.bucket / 32e0) - 1e0 AS shift
    FROM histogram AS r
),
placed AS (
    SELECT
        s.recording, s.host, s.ts, s.kind, s.dimension, s.key, s.op, s.value_ns, s.count,
        CASE
            WHEN s.bucket < 64 THEN CAST(s.bucket AS BIGINT)
            ELSE CAST((s.bucket - 32e0 * s.shift) * POWER(2e0, s.shift) AS BIGINT)
                + CAST(POWER(2e0, s.shift - 1e0) AS BIGINT) - 1
        END AS middle_ns,
        CASE
            WHEN s.bucket < 64 THEN CAST(1 AS BIGINT)
            ELSE CAST(POWER(2e0, s.shift) AS BIGINT)
        END AS width_ns
    FROM shifted AS s
)
SELECT
    h.recording,
    h.host,
    h.ts,
    h.kind,
    h.dimension,
    h.key,
    h.op,
    COALESCE(h.value_ns, h.middle_ns) AS value_ns,
    h.middle_ns,
    h.width_ns,
    h.count
FROM placed AS h
JOIN counted AS c
    ON c.host = h.host
    AND c.kind = h.kind
    AND c.ts = h.ts
    AND c.recording = h.recording
CROSS JOIN parameters AS a
WHERE
    (a.begin_ns IS NULL OR h.ts >= a.begin_ns)
    AND (a.end_ns IS NULL OR h.ts < a.end_ns)
