-- packets by {keys}
WITH counted AS (
    SELECT {keys},
        coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)::BIGINT AS received_bytes,
        count(*) FILTER (WHERE kind = 'receive') AS received_packets,
        CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
             THEN sum(bytes) FILTER (WHERE kind = 'transmit')
             ELSE coalesce(sum(bytes) FILTER (WHERE kind = 'queue'), 0) END::BIGINT AS sent_bytes,
        CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
             THEN count(*) FILTER (WHERE kind = 'transmit')
             ELSE count(*) FILTER (WHERE kind = 'queue') END AS sent_packets
    FROM packets GROUP BY ALL)
SELECT *, received_bytes / span_s() AS received_bytes_per_s, sent_bytes / span_s() AS sent_bytes_per_s
FROM counted ORDER BY received_bytes + sent_bytes DESC, {order};
