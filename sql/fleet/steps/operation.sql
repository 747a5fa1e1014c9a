-- operation: the rows of `rollup` that count: in the window, each second once.
--
-- recording     id of the recording, text
-- host          host that was recorded, text
-- ts            begin of the second in which they began, ns since the epoch
-- kind, dimension, key, op   what they are, as in `rollup`, text
-- count         operations, count
-- finished      those of which the length is known, count
-- errors        those that failed; null where nothing tells, count
-- bytes         moved by them; null for kinds without, bytes
-- dur_total_ns  sum of their lengths, ns
-- dur_min_ns    least length, ns
-- dur_max_ns    greatest length, ns
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
CROSS JOIN asked AS a
WHERE
    (a.begin_ns IS NULL OR r.ts >= a.begin_ns)
    AND (a.end_ns IS NULL OR r.ts < a.end_ns)
