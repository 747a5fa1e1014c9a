-- thread_time: how long each thread was in each state.
--
-- utid, tid, comm  thread
-- state            running, runnable, sleeping, uninterruptible, …
-- times            intervals
-- dur_total_ns, dur_max_ns   sum and longest, ns
CREATE VIEW thread_time AS
SELECT
    utid,
    tid,
    MAX(comm) AS comm,
    state,
    COUNT(*) AS times,
    SUM(dur) AS dur_total_ns,
    MAX(dur) AS dur_max_ns
FROM thread_state
GROUP BY utid, tid, state;
