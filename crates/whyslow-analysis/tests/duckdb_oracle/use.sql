-- utilisation, saturation and errors: CPUs, disks, interfaces
WITH edges AS (
    SELECT cpu, unnest([ts, coalesce(ts_end, getvariable('rec_end'))]) AS edge FROM slices
    UNION SELECT cpu, unnest([ts, te]) FROM doubts
    UNION SELECT cpu, unnest([getvariable('span_begin'), getvariable('span_end')]) FROM cpu),
stretches AS (
    SELECT cpu, edge AS b, lead(edge) OVER (PARTITION BY cpu ORDER BY edge) AS e FROM edges
    WHERE edge BETWEEN getvariable('span_begin') AND getvariable('span_end')),
unknown AS (
    SELECT cpu, sum(e - b) AS ns FROM stretches s
    WHERE EXISTS (SELECT 1 FROM doubts d WHERE d.cpu = s.cpu AND d.ts <= s.b AND d.te >= s.e)
        AND NOT EXISTS (SELECT 1 FROM slices r WHERE r.cpu = s.cpu AND r.ts <= s.b
            AND coalesce(r.ts_end, getvariable('rec_end')) >= s.e)
    GROUP BY cpu),
cpus AS (
    SELECT cpu.cpu, (SELECT coalesce(sum(inside(ts, ts_end)), 0) FROM slices WHERE slices.cpu = cpu.cpu)
        / (getvariable('span_end') - getvariable('span_begin') - coalesce(unknown.ns, 0)) AS used
    FROM cpu LEFT JOIN unknown ON unknown.cpu = cpu.cpu),
waited AS (
    SELECT coalesce(sum(inside(ts, ts_end)) FILTER (WHERE dur IS NOT NULL), 0) / 1e9 / span_s() AS waiting,
        pct(coalesce(list(dur) FILTER (WHERE dur IS NOT NULL), []), 990) AS p99
    FROM waits),
clipped AS (
    SELECT dev_name, greatest(ts, getvariable('span_begin')) AS f,
        least(known_until(ts, dur, ts_end, cut), getvariable('span_end')) AS t
    FROM block),
islands AS (
    SELECT *, max(t) OVER (PARTITION BY dev_name ORDER BY f, t
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM clipped WHERE t > f),
flight AS (
    SELECT dev_name, sum(t - f) AS total,
        sum(greatest(0, t - greatest(f, coalesce(before, f)))) AS busy
    FROM islands GROUP BY ALL),
disks AS (
    SELECT dev_name, coalesce(sum(bytes) FILTER (WHERE op IN ('read', 'write')), 0) AS moved,
        count(*) FILTER (WHERE error > 0) AS errors,
        pct(coalesce(list(dur) FILTER (WHERE dur IS NOT NULL AND certain(cut)), []), 990) AS p99
    FROM block GROUP BY ALL),
nets AS (
    SELECT netif, coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)
        + coalesce(sum(bytes) FILTER (WHERE sent), 0) AS moved
    FROM packets WHERE kind = 'receive' OR sent GROUP BY ALL),
all_rows AS (
    SELECT 1 AS sort, 0 AS rank, '' AS name, count(*) || ' CPUs' AS resource, avg(used) AS util_ratio,
        (SELECT waiting FROM waited) AS waiting, 'threads' AS waiting_what,
        (SELECT p99 FROM waited) AS wait_p99_ns, NULL::BIGINT AS errors, NULL::DOUBLE AS bytes_per_s
    FROM cpus
    UNION ALL
    SELECT 2, cpu, '', 'CPU ' || cpu, used, NULL, NULL, NULL, NULL, NULL FROM cpus
    UNION ALL
    SELECT 3, -moved, dev_name, dev_name, coalesce(busy, 0) / 1e9 / span_s(),
        coalesce(total, 0) / 1e9 / span_s(), 'requests', p99, errors, moved / span_s()
    FROM disks LEFT JOIN flight USING (dev_name)
    UNION ALL
    SELECT 4, 0, netif, netif, NULL, NULL, NULL, NULL, NULL, moved / span_s() FROM nets)
SELECT * EXCLUDE (sort, rank, name) FROM all_rows ORDER BY sort, rank, name;
