-- counts of {view} by power of two, a series for each {label}
WITH counted AS (
SELECT {label} AS series,
    CASE WHEN dur <= 0 THEN 0 ELSE 1::BIGINT << (length(bin(dur)) - 1) END AS from_ns,
    CASE WHEN dur <= 0 THEN 1 ELSE 1::BIGINT << length(bin(dur)) END AS to_ns,
    count(*) AS count
FROM {view} WHERE dur IS NOT NULL AND certain(cut)
GROUP BY ALL)
SELECT * FROM counted ORDER BY {order}, from_ns;
