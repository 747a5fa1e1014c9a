-- request_usage: requests by who asked for what, and how they ended. What load and the sockets of
-- its client both tell of counts once.
--
-- role              whose view: client, server, proxy
-- client            who asked; null where it is not known
-- endpoint          what was asked for
-- outcome           ok, error, timeout, …
-- requests          number
-- took_ns           time of those that ended, ns
-- took_max_ns       longest, ns
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
