-- Definitions for all queries of this directory. The runner first creates one view per table, and
-- sets the variables win_begin and win_end (null without a window), span_begin, span_end,
-- rec_begin, rec_end.

CREATE MACRO touches(ts, ts_end) AS
    getvariable('win_begin') IS NULL
    OR (ts < getvariable('win_end')
        AND (ts_end IS NULL
             OR ts_end > getvariable('win_begin')
             OR (ts_end = ts AND ts >= getvariable('win_begin'))));

CREATE MACRO span_s() AS (getvariable('span_end') - getvariable('span_begin')) / 1e9;

-- Part of an interval inside the window; intervals without an end extend to the end of the
-- recording.
CREATE MACRO inside(ts, ts_end) AS
    greatest(0, least(coalesce(ts_end, getvariable('rec_end')), getvariable('span_end'))
                - greatest(ts, getvariable('span_begin')));

-- Middle of the bucket of a value: 32 buckets per power of two from 64 on.
CREATE MACRO mid(v) AS
    CASE WHEN v < 64 THEN v
         ELSE ((v >> (length(bin(v)) - 6)) << (length(bin(v)) - 6))
              + ((1::BIGINT << (length(bin(v)) - 6)) - 1) // 2 END;

-- Nearest rank, in parts of a thousand: exact up to 64 values, then the middle of the bucket.
CREATE MACRO ranked(xs, permille) AS
    list_sort(xs)[greatest(1, (len(xs) * permille + 999) // 1000)];
CREATE MACRO pct(xs, permille) AS
    CASE WHEN len(xs) = 0 THEN NULL
         WHEN len(xs) <= 64 THEN ranked(xs, permille)
         ELSE greatest(list_min(xs), least(list_max(xs), mid(ranked(xs, permille)))) END;

-- Number of the half octave of a size or count: 0, 1, 2, 3, 4, 5-6, 7-8, 9-12, 13-16, ...
CREATE MACRO half_octave(v) AS
    CASE WHEN v <= 2 THEN v
         ELSE 2 * length(bin(v - 1)) - 1 + (((v - 1) >> (length(bin(v - 1)) - 2)) & 1) END;

-- The edges that cut a row.
CREATE MACRO cut_of(ts, ts_end, recorded) AS
    CASE WHEN coalesce(recorded, '') = 'lost' THEN 'lost'
         WHEN (coalesce(recorded, '') = 'begin' OR coalesce(ts < getvariable('win_begin'), false))
          AND (coalesce(recorded, '') = 'end' OR coalesce(ts_end > getvariable('win_end'), false)) THEN 'both'
         WHEN coalesce(recorded, '') = 'begin' OR coalesce(ts < getvariable('win_begin'), false) THEN 'begin'
         WHEN coalesce(recorded, '') = 'end' OR coalesce(ts_end > getvariable('win_end'), false) THEN 'end' END;

-- In a subquery of a macro, its parameter `ts` would be the column of that name.
SET VARIABLE lost_ranges =
    (SELECT coalesce(list({'b': ts, 'e': coalesce(ts_end, ts)}), []) FROM lost_events);

-- Until when an operation is known to have been in progress. Its end is unknown if it was not
-- recorded, or may be that of another operation (cut `lost`): it may be among the events lost first
-- after its start. An end alone does not show a start.
CREATE MACRO known_until(ts, dur, ts_end, cut) AS
    CASE WHEN dur IS NOT NULL AND coalesce(cut, '') <> 'lost' THEN ts_end
         WHEN ts_end IS NOT NULL AND coalesce(cut, '') <> 'lost' THEN ts
         ELSE least(coalesce(ts_end, getvariable('rec_end')), getvariable('rec_end'),
             coalesce(list_min(list_transform(
                 list_filter(getvariable('lost_ranges'), lambda lost: lost.e > ts),
                 lambda lost: greatest(lost.b, ts))), getvariable('rec_end'))) END;
CREATE MACRO certain(cut) AS coalesce(cut, '') <> 'lost';

-- Attributes of processes.
CREATE MACRO cgroup_of(id) AS (SELECT p.cgroup FROM process p WHERE p.upid = id);
CREATE MACRO container_of(id) AS (SELECT p.container FROM process p WHERE p.upid = id);
CREATE MACRO mount_ns_of(id) AS (SELECT p.mount_ns FROM process p WHERE p.upid = id);
CREATE MACRO uid_of(id) AS (SELECT p.uid FROM process p WHERE p.upid = id);

CREATE VIEW io AS
SELECT *, coalesce(path, 'unknown (' || unknown_reason || ')') AS object
FROM syscall
WHERE op IN ('open', 'connect', 'close', 'read', 'write', 'read_write', 'sync', 'metadata', 'submit')
  AND touches(ts, ts_end);
CREATE VIEW files AS SELECT * FROM io WHERE path LIKE '/%';
CREATE VIEW block AS SELECT * FROM block_io WHERE touches(ts, ts_end);
CREATE VIEW states AS SELECT *, NULL AS cut FROM thread_state WHERE touches(ts, ts_end);
CREATE VIEW syscalls AS SELECT * FROM syscall WHERE touches(ts, ts_end);
CREATE VIEW waits AS SELECT *, NULL AS cut FROM thread_state WHERE state = 'runnable' AND touches(ts, ts_end);
CREATE VIEW lookups AS SELECT *, NULL AS cut FROM dns_lookup WHERE touches(ts, ts_end);
CREATE VIEW requests AS SELECT *, CASE WHEN ts_end IS NULL THEN 'end' END AS cut FROM request WHERE touches(ts, ts_end);
CREATE VIEW phases AS SELECT *, NULL AS cut FROM request_phase WHERE touches(ts, ts_end);
CREATE VIEW locks AS SELECT *, NULL AS cut FROM lock_wait WHERE touches(ts, ts_end);
CREATE VIEW stacks AS SELECT *, NULL AS cut FROM stack_sample WHERE touches(ts, ts_end);
CREATE VIEW irqs AS SELECT *, NULL AS cut FROM irq WHERE touches(ts, ts_end);
CREATE VIEW slices AS SELECT *, NULL AS cut FROM sched_slice WHERE touches(ts, ts_end);
-- Sent packets are those accepted by the driver; if a recording has none of these, those queued for
-- it.
CREATE VIEW packets AS SELECT *, NULL AS cut,
    kind = CASE WHEN EXISTS (SELECT 1 FROM net_packet WHERE kind = 'transmit')
                THEN 'transmit' ELSE 'queue' END AS sent
FROM net_packet
WHERE getvariable('win_begin') IS NULL
    OR (ts >= getvariable('win_begin') AND ts < getvariable('win_end'));

CREATE VIEW reclaims AS SELECT *, NULL AS cut FROM reclaim WHERE touches(ts, ts_end);

-- Equal parts of the window, the last one shorter.
CREATE MACRO parts(width) AS TABLE
    SELECT part, least(part + width, getvariable('span_end')) AS part_end
    FROM (SELECT unnest(range(getvariable('span_begin'), getvariable('span_end'), width)) AS part);
-- Start of the part that contains a time; times outside belong to the first or last part.
CREATE MACRO begin_of(ts, width) AS
    getvariable('span_begin') + ((least(greatest(ts, getvariable('span_begin')),
        greatest(getvariable('span_end'), getvariable('span_begin') + 1) - 1)
        - getvariable('span_begin')) // width) * width;
-- The same for parts that start at a full second.
CREATE MACRO second_of(ts) AS ts // 1000000000 * 1000000000;
CREATE MACRO parts_of_seconds(width) AS TABLE
    SELECT part, least(part + width, getvariable('span_end')) AS part_end
    FROM (SELECT unnest(range(second_of(getvariable('span_begin')), getvariable('span_end'), width)) AS part);
CREATE MACRO begin_in_seconds(ts, width) AS
    second_of(getvariable('span_begin')) + ((least(greatest(ts, second_of(getvariable('span_begin'))),
        greatest(getvariable('span_end'), getvariable('span_begin') + 1) - 1)
        - second_of(getvariable('span_begin'))) // width) * width;
-- Times at which only slices show what ran on a CPU: before its first event, and where events were
-- lost.
CREATE VIEW doubts AS
    SELECT cpu, getvariable('rec_begin') AS ts, ts_first AS te FROM cpu
    UNION ALL
    SELECT cpu.cpu, lost.ts, coalesce(lost.ts_end, getvariable('rec_end'))
    FROM lost_events lost JOIN cpu ON lost.cpu IS NULL OR lost.cpu = cpu.cpu;
-- A share of a time, in proportion to a part of the whole.
CREATE MACRO share(t, part, whole) AS CASE WHEN part = whole THEN t ELSE (t * part) // greatest(whole, 1) END;
