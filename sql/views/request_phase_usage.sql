-- request_phase_usage: time of requests by client and phase.
--
-- client            client of the request; null if unknown
-- phase             resolve, connect, wait, request_queue, local, …
-- phases            number of phases
-- took_ns           total time of finished phases, ns
-- took_max_ns       longest phase, ns
CREATE VIEW request_phase_usage AS
SELECT
    client,
    phase,
    COUNT(*) AS phases,
    SUM(dur) AS took_ns,
    MAX(dur) AS took_max_ns
FROM request_phase
GROUP BY client, phase;
