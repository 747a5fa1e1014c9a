-- level: the level of each host in each time bin: the mean logarithm of its durations.
--
-- A mean of logarithms, since no single long operation moves it much. In integer millionths.
--
-- label     value of the selected label; empty without one, text
-- host      host, text
-- kind      kind of operation, text
-- op        class of operation, text
-- bin       number of the bin since the epoch, count
-- level     mean logarithm, in millionths, number
-- operations   finished operations, count
SELECT
    CASE
        WHEN a.label IS NULL THEN ''
        ELSE COALESCE(l.value, '(none)')
    END AS label,
    h.host,
    h.kind,
    h.op,
    CAST(floor(h.ts / a.bin_ns) AS BIGINT) AS bin,
    CAST(ROUND(
        SUM(h.count * CAST(ROUND(1e6 * LN(GREATEST(h.middle_ns, 1))) AS BIGINT)) * 1e0
        / SUM(h.count)
    ) AS BIGINT) AS level,
    CAST(SUM(h.count) AS BIGINT) AS operations
FROM length AS h
CROSS JOIN parameters AS a
LEFT JOIN (
    SELECT r.host, MIN(n.value) AS value
    FROM (SELECT DISTINCT recording, host FROM recording) AS r
    JOIN parameters AS w ON w.label IS NOT NULL
    JOIN label AS n ON n.recording = r.recording AND n.name = w.label
    GROUP BY r.host
) AS l ON l.host = h.host
WHERE
    h.dimension = 'all'
    AND (a.kind IS NULL OR h.kind = a.kind)
    AND (a.op IS NULL OR h.op = a.op)
GROUP BY 1, h.host, h.kind, h.op, CAST(floor(h.ts / a.bin_ns) AS BIGINT)
