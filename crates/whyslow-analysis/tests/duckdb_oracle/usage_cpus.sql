-- how each CPU spent parts of {width}
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
        OR ts = part_end AND part_end = getvariable('span_end'))
    GROUP BY ALL),
covered AS (
    SELECT part, part_end, cpu, true AS runs, ts, coalesce(ts_end, getvariable('rec_end')) AS te
    FROM slices, parts({width})
    UNION ALL
    SELECT part, part_end, cpu, false, ts, coalesce(ts_end, getvariable('rec_end'))
    FROM thread_state, parts({width}) WHERE state = 'uninterruptible'),
cut AS (
    SELECT part, cpu, runs, greatest(ts, part) AS b, least(te, part_end) AS e
    FROM covered WHERE least(te, part_end) > greatest(ts, part)),
either AS (
    SELECT part, cpu, greatest(0, e - greatest(b, coalesce(max(e) OVER (PARTITION BY part, cpu
        ORDER BY b, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), b))) AS more FROM cut),
running AS (
    SELECT part, cpu, greatest(0, e - greatest(b, coalesce(max(e) OVER (PARTITION BY part, cpu
        ORDER BY b, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), b))) AS more
    FROM cut WHERE runs),
waits_of AS (SELECT part, cpu, sum(more) AS n FROM either GROUP BY ALL),
runs_of AS (SELECT part, cpu, sum(more) AS n FROM running GROUP BY ALL),
all_of AS (
    SELECT p.part, p.part_end - p.part AS length, c.cpu,
        coalesce(s.busy, 0) AS busy, coalesce(s.user_time, 0) AS user_time, coalesce(s.nice, 0) AS nice,
        coalesce(s.system, 0) AS system,
        coalesce(s.hard, 0) + coalesce(a.hard, 0) AS hard, coalesce(s.soft, 0) + coalesce(a.soft, 0) AS soft,
        greatest(0, p.part_end - p.part - coalesce(s.busy, 0) - coalesce(a.hard, 0) - coalesce(a.soft, 0)) AS idle,
        coalesce(w.n, 0) - coalesce(r.n, 0) AS waited
    FROM parts({width}) p CROSS JOIN cpu c
    LEFT JOIN spent s ON s.part = p.part AND s.cpu = c.cpu
    LEFT JOIN alone a ON a.part = p.part AND a.cpu = c.cpu
    LEFT JOIN waits_of w ON w.part = p.part AND w.cpu = c.cpu
    LEFT JOIN runs_of r ON r.part = p.part AND r.cpu = c.cpu)
SELECT {time} cpu, user_time / length AS user_ratio, nice / length AS nice_ratio,
    system / length AS system_ratio, least(waited, idle) / length AS iowait_ratio,
    hard / length AS hardirq_ratio, soft / length AS softirq_ratio, NULL AS steal_ratio,
    (idle - least(waited, idle)) / length AS idle_ratio, busy / length AS busy_ratio,
    busy::BIGINT AS busy_ns
FROM all_of ORDER BY part, cpu;
