-- slowest: the longest operations of all hosts.
--
-- The lake has the longest of each kind and class of each recording. Operations that several
-- recordings of a host tell are one. Of a window they are those that begin in it, to the ns.
--
-- Asked for by:
--   kind        kind of operation (io, block, sched, …); all without
--   op          class of operation (read, write, …); all without
--   limit = 50  rows at most
--
-- host        host, text
-- ts          begin, ns since the epoch
-- dur         length, ns
-- kind        kind of operation, text
-- op          class of operation, text
-- process     name of the thread, text
-- tid         its kernel id, count
-- object      what it was about: path, device, endpoint, host, text
-- recording   its recording, text
-- id          its id there: explain -w, id
WITH once AS (
    SELECT
        s.host, s.ts, s.dur, s.kind, s.op, s.process, s.tid, s.object, s.recording, s.id,
        ROW_NUMBER() OVER (
            PARTITION BY s.host, s.ts, s.dur, s.kind, s.op, COALESCE(s.tid, CAST(-1 AS BIGINT)),
                COALESCE(s.object, '')
            ORDER BY s.recording, s.id
        ) AS telling
    FROM slowest AS s
    CROSS JOIN asked AS a
    WHERE
        (a.exact_begin_ns IS NULL OR s.ts >= a.exact_begin_ns)
        AND (a.exact_end_ns IS NULL OR s.ts < a.exact_end_ns)
        AND (a.kind IS NULL OR s.kind = a.kind)
        AND (a.op IS NULL OR s.op = a.op)
),
placed AS (
    SELECT
        o.host, o.ts, o.dur, o.kind, o.op, o.process, o.tid, o.object, o.recording, o.id,
        ROW_NUMBER() OVER (
            ORDER BY o.dur DESC, o.ts, o.host, o.kind, o.op, o.recording, o.id
        ) AS place
    FROM once AS o
    WHERE o.telling = 1
)
SELECT
    p.host, p.ts, p.dur, p.kind, p.op, p.process, p.tid, p.object, p.recording, p.id
FROM placed AS p
CROSS JOIN asked AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
