-- packets by peer
WITH packet AS (
    SELECT *, CASE WHEN kind IN ('receive', 'drop') THEN source ELSE destination END AS peer FROM packets)
SELECT peer,
    coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)::BIGINT AS received_bytes,
    count(*) FILTER (WHERE kind = 'receive') AS received_packets,
    coalesce(sum(bytes) FILTER (WHERE sent), 0)::BIGINT AS sent_bytes,
    count(*) FILTER (WHERE kind LIKE 'retransmit%') AS retransmits,
    count(*) FILTER (WHERE kind = 'drop') AS drops
FROM packet GROUP BY ALL
ORDER BY received_bytes + sent_bytes DESC, peer NULLS FIRST;
