-- slowest: the longest operations of all hosts.
--
-- The lake has the longest operations of each kind and class of each recording. Operations in
-- several recordings of a host count once. A window selects those that start in it, to the ns.
--
-- Parameters:
--   kind        include only operations of KIND (io, block, sched, …)
--   op          include only operations of class OP (read, write, …)
--   limit = 50  show at most LIMIT rows
--
-- host        host, text
-- ts          start, ns since the epoch
-- dur         duration, ns
-- kind        kind of operation, text
-- op          class of operation, text
-- process     thread name, text
-- tid         kernel thread id, count
-- object      path, device, endpoint or host, text
-- recording   its recording, text
-- id          its id in the recording, for explain -w, id
WITH once AS (
    SELECT
        s.host, s.ts, s.dur, s.kind, s.op, s.process, s.tid, s.object, s.recording, s.id,
        ROW_NUMBER() OVER (
            PARTITION BY s.host, s.ts, s.dur, s.kind, s.op, COALESCE(s.tid, CAST(-1 AS BIGINT)),
                COALESCE(s.object, '')
            ORDER BY s.recording, s.id
        ) AS duplicate
    FROM slowest AS s
    CROSS JOIN parameters AS a
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
    WHERE o.duplicate = 1
)
SELECT
    p.host, p.ts, p.dur, p.kind, p.op, p.process, p.tid, p.object, p.recording, p.id
FROM placed AS p
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
