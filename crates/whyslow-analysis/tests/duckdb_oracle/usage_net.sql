-- packets by {keys}
WITH counted AS (
    SELECT {keys},
        coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)::BIGINT AS received_bytes,
        count(*) FILTER (WHERE kind = 'receive') AS received_packets,
        coalesce(sum(bytes) FILTER (WHERE sent), 0)::BIGINT AS sent_bytes,
        count(*) FILTER (WHERE sent) AS sent_packets,
        count(*) FILTER (WHERE kind LIKE 'retransmit%') AS retransmits,
        count(*) FILTER (WHERE kind = 'drop') AS drops
    FROM packets GROUP BY ALL)
SELECT *, received_bytes / {seconds} AS received_bytes_per_s, sent_bytes / {seconds} AS sent_bytes_per_s
FROM counted ORDER BY {first} received_bytes + sent_bytes DESC, {order};
