-- operation: the rows of `rollup` in the window, with each second counted once.
--
-- recording     id of the recording, text
-- host          host that was recorded, text
-- ts            start of the second in which they started, ns since the epoch
-- kind, dimension, key, op   as in `rollup`, text
-- count         operations, count
-- finished      operations with a known duration, count
-- errors        failed operations; null if not recorded, count
-- bytes         bytes moved; null for kinds without, bytes
-- dur_total_ns  sum of durations, ns
-- dur_min_ns    shortest duration, ns
-- dur_max_ns    longest duration, ns
SELECT
    r.recording,
    r.host,
    r.ts,
    r.kind,
    r.dimension,
    r.key,
    r.op,
    r.count,
    r.finished,
    r.errors,
    r.bytes,
    r.dur_total_ns,
    r.dur_min_ns,
    r.dur_max_ns
FROM rollup AS r
JOIN counted AS c
    ON c.host = r.host
    AND c.kind = r.kind
    AND c.ts = r.ts
    AND c.recording = r.recording
CROSS JOIN parameters AS a
WHERE
    (a.begin_ns IS NULL OR r.ts >= a.begin_ns)
    AND (a.end_ns IS NULL OR r.ts < a.end_ns)
