-- counts of {view} in 20 equal parts between the minimum and the maximum duration of {among}; with
-- more parts than ns, empty parts are omitted
WITH known AS (SELECT *, {label} AS series FROM {view} WHERE dur IS NOT NULL AND certain(cut)),
ranges AS (
    SELECT series, min(min(dur)) OVER ({among}) AS lo, max(max(dur)) OVER ({among}) AS hi
    FROM known GROUP BY series),
edges AS (
    SELECT series, hi, i, lo + ((hi - lo) * i + 19) // 20 AS f,
        lo + ((hi - lo) * (i + 1) + 19) // 20 AS t
    FROM ranges, unnest(generate_series(0, 19)) AS u(i)),
counted AS (
SELECT e.series AS series, f AS from_ns, t AS to_ns, count(*) AS count
FROM edges e JOIN known k ON k.series = e.series AND dur >= f AND (dur < t OR t = hi AND dur = hi)
WHERE f < t OR f = hi AND i = 0
GROUP BY ALL)
SELECT * FROM counted ORDER BY {order}, from_ns;
