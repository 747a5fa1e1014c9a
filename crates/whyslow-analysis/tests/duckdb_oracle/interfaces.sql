-- packets by interface, in parts of {width}
SELECT begin_of(ts, {width}) AS ts_ns, netif,
    coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)::BIGINT AS received_bytes,
    count(*) FILTER (WHERE kind = 'receive') AS received_packets,
    coalesce(sum(bytes) FILTER (WHERE sent), 0)::BIGINT AS sent_bytes,
    count(*) FILTER (WHERE sent) AS sent_packets
FROM packets WHERE kind = 'receive' OR sent GROUP BY ALL ORDER BY ts_ns, netif;
