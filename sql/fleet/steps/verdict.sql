-- verdict: the rows of `finding` in the window, without duplicates.
--
-- Overlapping recordings contain the same slow operation twice; it is the same if start, duration
-- and mechanism are equal.
--
-- recording, host, nr   where it was found, text
-- ts            start of the slow operation, ns since the epoch
-- dur           its duration, ns
-- source, target, operation, victim, mechanism, root   as in `finding`, text
-- culprit_kind, culprit, object_kind, object   as in `finding`, text
-- grade, confidence, missing, verdict   as in `finding`, text
-- id            its id in the recording, for explain -w, id
-- blamed_ns     time attributed to the culprit, ns
-- count         slow operations that it represents, count
WITH placed AS (
    SELECT
        f.recording, f.host, f.nr, f.ts, f.dur, f.source, f.target, f.operation, f.victim,
        f.mechanism, f.root, f.culprit_kind, f.culprit, f.object_kind, f.object, f.blamed_ns,
        f.count, f.grade, f.confidence, f.missing, f.verdict, f.id,
        ROW_NUMBER() OVER (
            PARTITION BY f.host, f.ts, f.dur, f.source, f.mechanism, f.target, f.operation,
                COALESCE(f.victim, '')
            ORDER BY f.recording, f.nr
        ) AS place
    FROM finding AS f
    CROSS JOIN parameters AS a
    WHERE
        (a.begin_ns IS NULL OR f.ts + f.dur > a.begin_ns)
        AND (a.end_ns IS NULL OR f.ts < a.end_ns)
)
SELECT
    recording, host, nr, ts, dur, source, target, operation, victim, mechanism, root,
    culprit_kind, culprit, object_kind, object, blamed_ns, count, grade, confidence, missing,
    verdict, id
FROM placed
WHERE place = 1
