-- request_phase_usage: time of requests by client and phase.
--
-- client            who asked; null where it is not known
-- phase             resolve, connect, wait, request_queue, local, …
-- phases            number
-- took_ns           time of those that ended, ns
-- took_max_ns       longest, ns
CREATE VIEW request_phase_usage AS
SELECT
    client,
    phase,
    COUNT(*) AS phases,
    SUM(dur) AS took_ns,
    MAX(dur) AS took_max_ns
FROM request_phase
GROUP BY client, phase;
