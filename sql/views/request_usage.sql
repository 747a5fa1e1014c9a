-- request_usage: requests by client, endpoint and outcome. A request that both the load generator
-- and the sockets of its client report counts once.
--
-- role              side that observed it: client, server, proxy
-- client            client of the request; null if unknown
-- endpoint          requested endpoint
-- outcome           ok, error, timeout, …
-- requests          number of requests
-- took_ns           total time of finished requests, ns
-- took_max_ns       longest request, ns
CREATE VIEW request_usage AS
SELECT
    role,
    client,
    endpoint,
    outcome,
    COUNT(*) AS requests,
    SUM(dur) AS took_ns,
    MAX(dur) AS took_max_ns
FROM request
WHERE same_as IS NULL
GROUP BY role, client, endpoint, outcome;
