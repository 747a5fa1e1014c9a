-- time of interrupt handlers by {keys}
SELECT {time} {keys},
    coalesce(sum(self_ns), 0)::BIGINT AS total_ns,
    coalesce(sum(self_ns), 0) / {length} AS window_ratio,
    coalesce(sum(self_ns) FILTER (WHERE kind = 'hard'), 0)::BIGINT AS hard_ns,
    coalesce(sum(self_ns) FILTER (WHERE kind = 'soft'), 0)::BIGINT AS soft_ns,
    coalesce(sum(self_ns) FILTER (WHERE kind = 'hrtimer'), 0)::BIGINT AS hrtimer_ns,
    count(*) AS count, count(*) - count(self_ns) AS unfinished
FROM irqs GROUP BY ALL
ORDER BY {time_order} total_ns DESC, {order};
