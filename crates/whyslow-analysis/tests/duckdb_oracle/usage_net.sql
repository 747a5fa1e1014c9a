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
             ELSE count(*) FILTER (WHERE kind = 'queue') END AS sent_packets,
        count(*) FILTER (WHERE kind LIKE 'retransmit%') AS retransmits,
        count(*) FILTER (WHERE kind = 'drop') AS drops
    FROM packets GROUP BY ALL)
SELECT *, received_bytes / {seconds} AS received_bytes_per_s, sent_bytes / {seconds} AS sent_bytes_per_s
FROM counted ORDER BY {first} received_bytes + sent_bytes DESC, {order};
