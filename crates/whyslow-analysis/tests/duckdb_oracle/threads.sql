-- threads that existed inside the window, with CPU time, bytes and system calls
WITH cpu AS (
    SELECT utid, sum(inside(ts, ts_end))::BIGINT AS cpu_ns
    FROM sched_slice WHERE touches(ts, ts_end) GROUP BY utid),
calls AS (
    SELECT utid,
        coalesce(sum(bytes) FILTER (WHERE op IN ('read', 'read_write')), 0)::BIGINT AS read_bytes,
        coalesce(sum(bytes) FILTER (WHERE op IN ('write', 'read_write')), 0)::BIGINT AS write_bytes,
        count(*) AS syscalls
    FROM syscalls GROUP BY utid)
SELECT tid, t.pid, t.comm, exe AS command, t.ts_start AS start_ns, t.ts_exit AS exit_ns,
    coalesce(cpu_ns, 0) AS cpu_ns, coalesce(cpu_ns, 0) / 1e9 / span_s() AS cpu_ratio,
    coalesce(read_bytes, 0) AS read_bytes, coalesce(write_bytes, 0) AS write_bytes,
    coalesce(syscalls, 0) AS syscalls
FROM thread t LEFT JOIN process USING (upid) LEFT JOIN cpu USING (utid) LEFT JOIN calls USING (utid)
WHERE getvariable('win_begin') IS NULL
   OR coalesce(t.ts_start < getvariable('win_end'), true)
      AND coalesce(t.ts_exit > getvariable('win_begin'), true)
ORDER BY coalesce(cpu_ns, 0) DESC, coalesce(read_bytes, 0) + coalesce(write_bytes, 0) DESC, utid;
