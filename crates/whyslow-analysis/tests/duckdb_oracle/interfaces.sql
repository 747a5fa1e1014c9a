-- packets by interface, in parts of {width}
SELECT begin_of(ts, {width}) AS ts_ns, netif,
    coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)::BIGINT AS received_bytes,
    count(*) FILTER (WHERE kind = 'receive') AS received_packets,
    CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
         THEN sum(bytes) FILTER (WHERE kind = 'transmit')
         ELSE coalesce(sum(bytes) FILTER (WHERE kind = 'queue'), 0) END::BIGINT AS sent_bytes,
    CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
         THEN count(*) FILTER (WHERE kind = 'transmit')
         ELSE count(*) FILTER (WHERE kind = 'queue') END AS sent_packets
FROM packets WHERE kind IN ('receive', 'queue', 'transmit') GROUP BY ALL ORDER BY ts_ns, netif;
