-- percentiles: how long operations took, over all hosts together.
--
-- Percentiles are those of one recording's answer: nearest rank; exact up to 64 operations, else
-- the middle of a bucket (at most 1.6 % off), held between the least and the greatest length.
--
-- Asked for by:
--   kind        kind of operation (io, block, sched, …); all without
--   op          class of operation (read, write, …); all without
--   dimension = all   process, file, device, name, endpoint, outcome: a row for each value
--   key         one value of the dimension
--   label       name of a label (kernel, rack, …): a row for each value
--   limit = 100 rows at most
--
-- label         value of the label; `(none)` where a host has none, text
-- kind          kind of operation, text
-- op            class of operation, text
-- key           value of the dimension, text
-- hosts         hosts with such operations, count
-- operations    operations, count
-- finished      those of which the length is known, count
-- errors        those that failed; null where nothing tells, count
-- moved_bytes   moved by them; null for kinds without, bytes
-- dur_total_ns  sum of their lengths, ns
-- dur_min_ns, dur_p50_ns, dur_p90_ns, dur_p99_ns, dur_p999_ns, dur_max_ns   their lengths, ns
WITH labelled AS (
    SELECT l.recording, MIN(l.value) AS value
    FROM label AS l
    JOIN asked AS a ON a.label = l.name
    GROUP BY l.recording
),
part AS (
    SELECT
        CASE
            WHEN a.label IS NULL THEN ''
            ELSE COALESCE(l.value, '(none)')
        END AS label,
        o.kind,
        o.op,
        o.key,
        COUNT(DISTINCT o.host) AS hosts,
        CAST(SUM(o.count) AS BIGINT) AS operations,
        CAST(SUM(o.finished) AS BIGINT) AS finished,
        CAST(SUM(o.errors) AS BIGINT) AS errors,
        CAST(SUM(o.bytes) AS BIGINT) AS moved_bytes,
        CAST(SUM(o.dur_total_ns) AS BIGINT) AS dur_total_ns,
        MIN(o.dur_min_ns) AS dur_min_ns,
        MAX(o.dur_max_ns) AS dur_max_ns
    FROM operation AS o
    CROSS JOIN asked AS a
    LEFT JOIN labelled AS l ON l.recording = o.recording
    WHERE
        o.dimension = a.dimension
        AND (a.kind IS NULL OR o.kind = a.kind)
        AND (a.op IS NULL OR o.op = a.op)
        AND (a.key IS NULL OR o.key = a.key)
    GROUP BY 1, 2, 3, 4
),
taken AS (
    SELECT
        p.label,
        h.kind,
        h.op,
        h.key,
        CASE WHEN p.finished <= 64 THEN h.value_ns ELSE h.middle_ns END AS value_ns,
        CAST(SUM(h.count) AS BIGINT) AS operations
    FROM length AS h
    CROSS JOIN asked AS a
    LEFT JOIN labelled AS l ON l.recording = h.recording
    JOIN part AS p
        ON p.kind = h.kind
        AND p.op = h.op
        AND p.key = h.key
        AND p.label = CASE
            WHEN a.label IS NULL THEN ''
            ELSE COALESCE(l.value, '(none)')
        END
    WHERE h.dimension = a.dimension
    GROUP BY 1, 2, 3, 4, 5
),
cumulated AS (
    SELECT
        t.label,
        t.kind,
        t.op,
        t.key,
        t.value_ns,
        SUM(t.operations) OVER (
            PARTITION BY t.label, t.kind, t.op, t.key
            ORDER BY t.value_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS upto,
        SUM(t.operations) OVER (
            PARTITION BY t.label, t.kind, t.op, t.key
        ) AS all_of_them
    FROM taken AS t
),
ranked AS (
    SELECT
        c.label,
        c.kind,
        c.op,
        c.key,
        MIN(CASE WHEN upto * 1000 >= all_of_them * 500 THEN value_ns END) AS p50_ns,
        MIN(CASE WHEN upto * 1000 >= all_of_them * 900 THEN value_ns END) AS p90_ns,
        MIN(CASE WHEN upto * 1000 >= all_of_them * 990 THEN value_ns END) AS p99_ns,
        MIN(CASE WHEN upto * 1000 >= all_of_them * 999 THEN value_ns END) AS p999_ns
    FROM cumulated AS c
    GROUP BY 1, 2, 3, 4
),
placed AS (
    SELECT
        p.label,
        p.kind,
        p.op,
        p.key,
        p.hosts,
        p.operations,
        p.finished,
        p.errors,
        p.moved_bytes,
        p.dur_total_ns,
        p.dur_min_ns,
        LEAST(GREATEST(r.p50_ns, p.dur_min_ns), p.dur_max_ns) AS dur_p50_ns,
        LEAST(GREATEST(r.p90_ns, p.dur_min_ns), p.dur_max_ns) AS dur_p90_ns,
        LEAST(GREATEST(r.p99_ns, p.dur_min_ns), p.dur_max_ns) AS dur_p99_ns,
        LEAST(GREATEST(r.p999_ns, p.dur_min_ns), p.dur_max_ns) AS dur_p999_ns,
        p.dur_max_ns,
        ROW_NUMBER() OVER (
            ORDER BY p.dur_total_ns DESC, p.label, p.kind, p.op, p.key
        ) AS place
    FROM part AS p
    LEFT JOIN ranked AS r
        ON r.label = p.label AND r.kind = p.kind AND r.op = p.op AND r.key = p.key
)
SELECT
    p.label, p.kind, p.op, p.key, p.hosts, p.operations, p.finished, p.errors, p.moved_bytes,
    p.dur_total_ns, p.dur_min_ns, p.dur_p50_ns, p.dur_p90_ns, p.dur_p99_ns, p.dur_p999_ns,
    p.dur_max_ns
FROM placed AS p
CROSS JOIN asked AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
