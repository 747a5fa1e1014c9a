-- thread_time: time of each thread in each state.
--
-- utid, tid, comm  thread
-- state            running, runnable, sleeping, uninterruptible, …
-- times            number of intervals
-- dur_total_ns, dur_max_ns   total and longest interval, ns
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
