-- member_cell: operations of a member per second.
--
-- host, key, kind, op   the member, as in `member`, text
-- ts            start of the second, ns since the epoch
-- operations    finished operations, count
-- slow          those longer than `slow_ns`, count
-- upper         those longer than the member's own median, count
-- longer        those longer than the median of its peers, count
SELECT
    m.host,
    m.key,
    m.kind,
    m.op,
    h.ts,
    CAST(SUM(h.count) AS BIGINT) AS operations,
    CAST(SUM(CASE WHEN h.middle_ns > m.slow_ns THEN h.count ELSE 0 END) AS BIGINT) AS slow,
    CAST(SUM(CASE WHEN h.middle_ns > m.p50_ns THEN h.count ELSE 0 END) AS BIGINT) AS upper,
    CAST(SUM(CASE WHEN h.middle_ns > m.peer_p50_ns THEN h.count ELSE 0 END) AS BIGINT) AS longer
FROM length AS h
JOIN member_limit AS m
    ON m.host = h.host AND m.key = h.key AND m.kind = h.kind AND m.op = h.op
CROSS JOIN parameters AS a
WHERE h.dimension = a.dimension
GROUP BY m.host, m.key, m.kind, m.op, h.ts
