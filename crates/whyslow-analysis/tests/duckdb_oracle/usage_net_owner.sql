-- packets sent and bytes read from network sockets by {keys}
WITH sent AS (
    SELECT {keys},
        coalesce(sum(bytes) FILTER (WHERE sent), 0)::BIGINT AS sent_bytes,
        count(*) FILTER (WHERE sent) AS sent_packets,
        count(*) FILTER (WHERE kind LIKE 'retransmit%') AS retransmits,
        count(*) FILTER (WHERE kind = 'drop') AS drops
    FROM packets GROUP BY ALL),
read AS (
    SELECT {keys}, sum(bytes)::BIGINT AS received_bytes FROM syscalls
    WHERE op IN ('read', 'read_write') AND fd_class IN ('inet', 'inet6') GROUP BY ALL),
both_of AS (
    SELECT {names}, max(received_bytes) AS r, max(sent_bytes) AS s, max(sent_packets) AS p,
        coalesce(max(retransmits), 0) AS retransmits, coalesce(max(drops), 0) AS drops
    FROM (SELECT * FROM sent UNION ALL BY NAME SELECT * FROM read) GROUP BY ALL)
SELECT {names}, coalesce(r, 0) AS received_bytes, NULL AS received_packets,
    coalesce(s, 0) AS sent_bytes, coalesce(p, 0) AS sent_packets, retransmits, drops
FROM both_of WHERE coalesce(r, 0) > 0 OR coalesce(p, 0) > 0 OR retransmits > 0 OR drops > 0
ORDER BY coalesce(r, 0) + coalesce(s, 0) DESC, {order};
