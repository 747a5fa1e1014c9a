-- latency from raise to entry by handler
WITH grouped AS (
    SELECT kind, nr, name,
        coalesce(list(raise_ns) FILTER (WHERE raise_ns IS NOT NULL), []) AS raised,
        sum(dur) AS total, count(*) AS n
    FROM irqs GROUP BY ALL)
SELECT kind, nr, name, pct(raised, 500) AS raise_p50_ns, pct(raised, 990) AS raise_p99_ns,
    coalesce(list_sum(raised), 0)::BIGINT AS raise_total_ns,
    list_min(raised) AS raise_min_ns, list_avg(raised) AS raise_avg_ns, list_max(raised) AS raise_max_ns,
    (SELECT stddev_samp(v) FROM unnest(raised) AS u(v)) AS raise_stdev_ns, len(raised) AS raise_count
FROM grouped ORDER BY total DESC, n DESC, kind, nr, name;
