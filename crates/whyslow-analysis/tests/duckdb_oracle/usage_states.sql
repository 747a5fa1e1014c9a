-- time of each thread in each state inside the measured time
SELECT comm, pid, tid,
    sum(CASE WHEN state = 'running' THEN inside(ts, ts_end) ELSE 0 END)::BIGINT AS running_ns,
    sum(CASE WHEN state = 'runnable' THEN inside(ts, ts_end) ELSE 0 END)::BIGINT AS runnable_ns,
    sum(CASE WHEN state = 'uninterruptible' THEN inside(ts, ts_end) ELSE 0 END)::BIGINT AS uninterruptible_ns,
    sum(CASE WHEN state = 'sleeping' THEN inside(ts, ts_end) ELSE 0 END)::BIGINT AS sleeping_ns,
    sum(CASE WHEN state NOT IN ('running', 'runnable', 'uninterruptible', 'sleeping')
        THEN inside(ts, ts_end) ELSE 0 END)::BIGINT AS other_ns,
    sum(CASE WHEN state = 'running' THEN inside(ts, ts_end) ELSE 0 END) / 1e9 / span_s() AS running_ratio,
    count(*) AS changes
FROM states GROUP BY ALL
ORDER BY running_ns DESC, runnable_ns DESC, uninterruptible_ns DESC, sleeping_ns DESC,
    other_ns DESC, comm NULLS FIRST, pid NULLS FIRST, tid NULLS FIRST;
