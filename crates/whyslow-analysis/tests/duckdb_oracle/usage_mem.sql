-- pages and faults by {keys}, counted per second, so a window is extended to whole seconds; and the
-- time of reclaim inside the intervals of {width}, which start at a full second
WITH pages AS (
    SELECT {time} {keys}, sum(allocated)::BIGINT AS allocated_pages, sum(freed)::BIGINT AS freed_pages,
        sum(faults_user)::BIGINT AS faults_user, sum(faults_kernel)::BIGINT AS faults_kernel,
        sum(cache_added)::BIGINT AS cache_added_pages, sum(kswapd_wakeups)::BIGINT AS kswapd_wakeups
    FROM page_count
    WHERE getvariable('win_begin') IS NULL
        OR (ts >= getvariable('win_begin') // 1000000000 * 1000000000 AND ts < getvariable('win_end'))
    GROUP BY ALL),
inside AS (
    SELECT *, greatest(0, least(coalesce(ts_end, getvariable('rec_end')), part_end)
            - greatest(ts, part, getvariable('span_begin'))) AS inside_ns,
        greatest(ts, getvariable('span_begin')) BETWEEN part AND part_end - 1
            OR (greatest(ts, getvariable('span_begin')) = getvariable('span_end')
                AND part_end = getvariable('span_end')) AS begins
    FROM reclaims, parts_of_seconds({width}) WHERE kind IN ('direct', 'cgroup', 'node')),
stalled AS (
    SELECT {part} {keys}, sum(inside_ns)::BIGINT AS stalled_ns, count(*) FILTER (WHERE begins) AS stalls
    FROM inside WHERE inside_ns > 0 OR begins GROUP BY ALL),
joined AS (
    SELECT {either}, coalesce(allocated_pages, 0) AS allocated_pages,
        coalesce(freed_pages, 0) AS freed_pages,
        coalesce(allocated_pages, 0) - coalesce(freed_pages, 0) AS kept_pages,
        coalesce(faults_user, 0) AS faults_user, coalesce(faults_kernel, 0) AS faults_kernel,
        coalesce(cache_added_pages, 0) AS cache_added_pages,
        coalesce(kswapd_wakeups, 0) AS kswapd_wakeups,
        NULL AS reclaim_written_pages,
        coalesce(stalls, 0) AS stalls, coalesce(stalled_ns, 0) AS stalled_ns
    FROM pages FULL JOIN stalled ON {on})
SELECT * FROM joined
ORDER BY {first} allocated_pages DESC, freed_pages DESC, faults_user DESC, faults_kernel DESC,
    cache_added_pages DESC, kswapd_wakeups DESC, stalled_ns DESC, {order};
