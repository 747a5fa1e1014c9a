-- packets by the other side
WITH packet AS (
    SELECT *, CASE WHEN kind = 'receive' THEN source ELSE destination END AS peer FROM packets)
SELECT peer,
    coalesce(sum(bytes) FILTER (WHERE kind = 'receive'), 0)::BIGINT AS received_bytes,
    count(*) FILTER (WHERE kind = 'receive') AS received_packets,
    CASE WHEN count(*) FILTER (WHERE kind = 'transmit') > 0
         THEN sum(bytes) FILTER (WHERE kind = 'transmit')
         ELSE coalesce(sum(bytes) FILTER (WHERE kind = 'queue'), 0) END::BIGINT AS sent_bytes
FROM packet GROUP BY ALL
ORDER BY received_bytes + sent_bytes DESC, peer NULLS FIRST;
