-- packets sent and bytes read from network sockets by {keys}
WITH sent AS (
    SELECT {keys},
        CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
             THEN sum(bytes) FILTER (WHERE kind = 'transmit')
             ELSE coalesce(sum(bytes) FILTER (WHERE kind = 'queue'), 0) END::BIGINT AS sent_bytes,
        CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
             THEN count(*) FILTER (WHERE kind = 'transmit')
             ELSE count(*) FILTER (WHERE kind = 'queue') END AS sent_packets
    FROM packets GROUP BY ALL),
read AS (
    SELECT {keys}, sum(bytes)::BIGINT AS received_bytes FROM syscalls
    WHERE op IN ('read', 'read_write') AND fd_class IN ('inet', 'inet6') GROUP BY ALL),
both_of AS (
    SELECT {keys}, max(received_bytes) AS r, max(sent_bytes) AS s, max(sent_packets) AS p
    FROM (SELECT * FROM sent UNION ALL BY NAME SELECT * FROM read) GROUP BY ALL)
SELECT {keys}, coalesce(r, 0) AS received_bytes, NULL AS received_packets,
    coalesce(s, 0) AS sent_bytes, coalesce(p, 0) AS sent_packets
FROM both_of WHERE coalesce(r, 0) > 0 OR coalesce(p, 0) > 0
ORDER BY coalesce(r, 0) + coalesce(s, 0) DESC, {order};
