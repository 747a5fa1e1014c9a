-- CPU time by state of each CPU, of the known part of intervals of {width}
WITH clipped AS (
    SELECT part, part_end, s.*, coalesce(ts_end, getvariable('rec_end')) - ts AS whole,
        greatest(0, least(coalesce(ts_end, getvariable('rec_end')), part_end) - greatest(ts, part)) AS inside_ns
    FROM slices s, parts({width})),
spent AS (
    SELECT part, cpu, sum(inside_ns) AS busy,
        sum(share(system_ns, inside_ns, whole)) AS system,
        sum(share(hardirq_ns, inside_ns, whole)) AS hard,
        sum(share(softirq_ns, inside_ns, whole)) AS soft,
        sum(CASE WHEN coalesce(prio, 0) > 120 THEN greatest(0, inside_ns
            - share(system_ns, inside_ns, whole) - share(hardirq_ns, inside_ns, whole)
            - share(softirq_ns, inside_ns, whole)) ELSE 0 END) AS nice,
        sum(CASE WHEN coalesce(prio, 0) <= 120 THEN greatest(0, inside_ns
            - share(system_ns, inside_ns, whole) - share(hardirq_ns, inside_ns, whole)
            - share(softirq_ns, inside_ns, whole)) ELSE 0 END) AS user_time
    FROM clipped WHERE inside_ns > 0 GROUP BY ALL),
alone AS (
    SELECT part, cpu, coalesce(sum(self_ns) FILTER (WHERE kind <> 'soft'), 0) AS hard,
        coalesce(sum(self_ns) FILTER (WHERE kind = 'soft'), 0) AS soft
    FROM irq, parts({width})
    WHERE utid IS NULL AND (ts BETWEEN part AND part_end - 1
        OR ts = part_end AND part_end = getvariable('rec_end'))
    GROUP BY ALL),
covered AS (
    SELECT part, part_end, cpu, 0 AS sort, ts, coalesce(ts_end, getvariable('rec_end')) AS te
    FROM slices, parts({width})
    UNION ALL
    SELECT part, part_end, cpu, 1, ts, te FROM doubts, parts({width})
    UNION ALL
    SELECT part, part_end, cpu, 2, ts, coalesce(ts_end, getvariable('rec_end'))
    FROM thread_state, parts({width}) WHERE state = 'uninterruptible'),
cut AS (
    SELECT part, cpu, least_sort, greatest(ts, part) AS b, least(te, part_end) AS e
    FROM covered JOIN (VALUES (0), (1), (2)) sorts(least_sort) ON sort <= least_sort
    WHERE least(te, part_end) > greatest(ts, part)),
more_of AS (
    SELECT part, cpu, least_sort, greatest(0, e - greatest(b, coalesce(max(e) OVER (
        PARTITION BY part, cpu, least_sort
        ORDER BY b, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), b))) AS more FROM cut),
-- Unions of slices; of these and unknown times; and of these and sleeps.
unions AS (
    SELECT part, cpu, coalesce(sum(more) FILTER (WHERE least_sort = 0), 0) AS running,
        coalesce(sum(more) FILTER (WHERE least_sort = 1), 0) AS doubted,
        coalesce(sum(more) FILTER (WHERE least_sort = 2), 0) AS slept
    FROM more_of GROUP BY ALL),
known AS (
    SELECT p.part, c.cpu, p.part_end - p.part - coalesce(u.doubted - u.running, 0) AS length,
        coalesce(u.slept - u.doubted, 0) AS waited
    FROM parts({width}) p CROSS JOIN cpu c LEFT JOIN unions u ON u.part = p.part AND u.cpu = c.cpu),
all_of AS (
    SELECT p.part, p.length, p.cpu, p.waited,
        coalesce(s.busy, 0) AS busy, coalesce(s.user_time, 0) AS user_time, coalesce(s.nice, 0) AS nice,
        coalesce(s.system, 0) AS system,
        coalesce(s.hard, 0) + coalesce(a.hard, 0) AS hard, coalesce(s.soft, 0) + coalesce(a.soft, 0) AS soft,
        greatest(0, p.length - coalesce(s.busy, 0) - coalesce(a.hard, 0) - coalesce(a.soft, 0)) AS idle
    FROM known p
    LEFT JOIN spent s ON s.part = p.part AND s.cpu = p.cpu
    LEFT JOIN alone a ON a.part = p.part AND a.cpu = p.cpu)
SELECT {time} cpu, user_time / length AS user_ratio, nice / length AS nice_ratio,
    system / length AS system_ratio, least(waited, idle) / length AS iowait_ratio,
    hard / length AS hardirq_ratio, soft / length AS softirq_ratio, NULL AS steal_ratio,
    (idle - least(waited, idle)) / length AS idle_ratio, busy / length AS busy_ratio,
    busy::BIGINT AS busy_ns
FROM all_of ORDER BY part, cpu;
