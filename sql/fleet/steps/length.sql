-- length: the rows of `histogram` that count: in the window, each second once.
--
-- recording   id of the recording, text
-- host        host that was recorded, text
-- ts          begin of the second in which they began, ns since the epoch
-- kind, dimension, key, op   what they are, as in `rollup`, text
-- value_ns    how long they took, as exactly as the recording tells, ns
-- middle_ns   the middle of their bucket, ns
-- count       operations that took so long, count
SELECT
    h.recording,
    h.host,
    h.ts,
    h.kind,
    h.dimension,
    h.key,
    h.op,
    h.value_ns,
    h.middle_ns,
    h.count
FROM histogram AS h
JOIN counted AS c
    ON c.host = h.host
    AND c.kind = h.kind
    AND c.ts = h.ts
    AND c.recording = h.recording
CROSS JOIN asked AS a
WHERE
    (a.begin_ns IS NULL OR h.ts >= a.begin_ns)
    AND (a.end_ns IS NULL OR h.ts < a.end_ns)
