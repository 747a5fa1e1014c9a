-- stats of {view} by {keys}
WITH grouped AS (
    SELECT {keys},
        count(*) AS count,
        count(*) / span_s() AS rate_per_s,
        {size}
        {errors}
        list(dur) FILTER (WHERE dur IS NOT NULL) AS ds,
        sum(greatest(0, least(ts_end, coalesce(getvariable('win_end'), ts_end))
            - greatest(ts, coalesce(getvariable('win_begin'), ts))))
            FILTER (WHERE dur IS NOT NULL) AS inside_ns,
        count(*) - count(dur) AS unfinished,
        stddev_samp(dur) AS stdev_ns,
        arg_min(id, (-dur, ts, id)) FILTER (WHERE dur IS NOT NULL) AS slowest
    FROM {view} WHERE certain(cut)
    GROUP BY ALL)
SELECT * EXCLUDE (ds, inside_ns, slowest),
    list_min(ds) AS min_ns,
    list_avg(ds) AS avg_ns,
    pct(coalesce(ds, []), 500) AS p50_ns,
    pct(coalesce(ds, []), 900) AS p90_ns,
    pct(coalesce(ds, []), 990) AS p99_ns,
    pct(coalesce(ds, []), 999) AS p999_ns,
    list_max(ds) AS max_ns,
    coalesce(list_sum(ds), 0)::BIGINT AS total_ns,
    coalesce(inside_ns, 0) / 1e9 / span_s() AS window_ratio,
    '{id}:' || slowest AS slowest_id
FROM grouped
ORDER BY total_ns DESC, count DESC, {order};
