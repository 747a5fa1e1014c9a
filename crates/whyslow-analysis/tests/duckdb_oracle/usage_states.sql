-- time of each thread in each state inside the window, in intervals of {width}
WITH cut AS (
    SELECT *, greatest(0, least(coalesce(ts_end, getvariable('rec_end')), part_end)
            - greatest(ts, part)) AS inside_ns,
        greatest(ts, getvariable('span_begin')) BETWEEN part AND part_end - 1
            OR (greatest(ts, getvariable('span_begin')) = getvariable('span_end')
                AND part_end = getvariable('span_end')) AS begins
    FROM states, parts({width}))
SELECT {time} comm, pid, tid,
    sum(CASE WHEN state = 'running' THEN inside_ns ELSE 0 END)::BIGINT AS running_ns,
    sum(CASE WHEN state = 'runnable' THEN inside_ns ELSE 0 END)::BIGINT AS runnable_ns,
    sum(CASE WHEN state = 'uninterruptible' THEN inside_ns ELSE 0 END)::BIGINT AS uninterruptible_ns,
    sum(CASE WHEN state = 'sleeping' THEN inside_ns ELSE 0 END)::BIGINT AS sleeping_ns,
    sum(CASE WHEN state NOT IN ('running', 'runnable', 'uninterruptible', 'sleeping')
        THEN inside_ns ELSE 0 END)::BIGINT AS other_ns,
    sum(CASE WHEN state = 'running' THEN inside_ns ELSE 0 END)
        / (min(part_end) - min(part)) AS running_ratio,
    count(*) FILTER (WHERE begins) AS changes
FROM cut WHERE inside_ns > 0 OR begins
GROUP BY part, comm, pid, tid
ORDER BY part, running_ns DESC, runnable_ns DESC, uninterruptible_ns DESC, sleeping_ns DESC,
    other_ns DESC, comm NULLS FIRST, pid NULLS FIRST, tid NULLS FIRST;
