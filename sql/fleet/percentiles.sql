-- percentiles: durations of operations over all hosts.
--
-- Percentiles are computed as for one recording: nearest rank; exact up to 64 operations, else the
-- middle of a bucket (at most 1.6 % off), clamped to the shortest and the longest duration.
--
-- Parameters:
--   kind        include only operations of KIND (io, block, sched, …)
--   op          include only operations of class OP (read, write, …)
--   dimension = all   one row per process, file, device, name, endpoint or outcome
--   key         include only value KEY of the dimension
--   label       one row per value of label LABEL (kernel, rack, …)
--   limit = 100 show at most LIMIT rows
--
-- label         value of the label; `(none)` for hosts without it, text
-- kind          kind of operation, text
-- op            class of operation, text
-- key           value of the dimension, text
-- hosts         hosts with such operations, count
-- operations    operations, count
-- finished      operations with a known duration, count
-- errors        failed operations; null if not recorded, count
-- moved_bytes   bytes moved; null for kinds without, bytes
-- dur_total_ns  sum of durations, ns
-- dur_min_ns, dur_p50_ns, dur_p90_ns, dur_p99_ns, dur_p999_ns, dur_max_ns   durations, ns
WITH labelled AS (
    SELECT l.recording, MIN(l.value) AS value
    FROM label AS l
    JOIN parameters AS a ON a.label = l.name
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
    CROSS JOIN parameters AS a
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
    CROSS JOIN parameters AS a
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
CROSS JOIN parameters AS a
WHERE p.place <= a.row_limit
ORDER BY p.place
