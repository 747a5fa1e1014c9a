-- CPU time of slices by {keys}, in intervals of {width}
WITH cut AS (
    SELECT *, coalesce(ts_end, getvariable('rec_end')) - ts AS whole,
        least(coalesce(ts_end, getvariable('rec_end')), part_end) - greatest(ts, part) AS inside_ns,
        greatest(ts, getvariable('span_begin')) BETWEEN part AND part_end - 1
            OR (greatest(ts, getvariable('span_begin')) = getvariable('span_end')
                AND part_end = getvariable('span_end')) AS begins
    FROM slices, parts({width})),
shared AS (
    SELECT *, share(system_ns, inside_ns, whole) AS s, share(hardirq_ns, inside_ns, whole) AS h,
        share(softirq_ns, inside_ns, whole) AS i
    FROM cut WHERE inside_ns > 0 OR begins)
SELECT {time} {keys},
    sum(greatest(inside_ns, 0))::BIGINT AS cpu_ns,
    sum(greatest(inside_ns, 0)) / (min(part_end) - min(part)) AS cpu_ratio,
    sum(greatest(inside_ns - s - h - i, 0))::BIGINT AS user_ns,
    sum(s)::BIGINT AS system_ns, sum(h)::BIGINT AS hardirq_ns, sum(i)::BIGINT AS softirq_ns,
    count(*) FILTER (WHERE begins) AS slices,
    coalesce(sum(migrations) FILTER (WHERE begins AND ts >= part), 0)::BIGINT AS migrations
FROM shared GROUP BY part, {groups}
ORDER BY part, cpu_ns DESC, {order};
