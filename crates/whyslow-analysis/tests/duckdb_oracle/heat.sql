-- counts and sums of durations of {view} by time and power of two, a map for each {keys}, greatest
-- {weight} first
WITH placed AS (
    SELECT {keys} dur,
        least(greatest(ts, getvariable('span_begin')), getvariable('span_end') - 1)
            - getvariable('span_begin') AS offset_ns,
        {width} AS width
    FROM {view} WHERE dur IS NOT NULL AND certain(cut)),
counted AS (
    SELECT * EXCLUDE (dur, offset_ns, width),
        getvariable('span_begin') + (offset_ns // width) * width AS time_ns,
        CASE WHEN dur <= 0 THEN 0 ELSE 1::BIGINT << (length(bin(dur)) - 1) END AS from_ns,
        CASE WHEN dur <= 0 THEN 1 ELSE 2::BIGINT << (length(bin(dur)) - 1) END AS to_ns,
        count(*) AS count, sum(dur)::BIGINT AS intensity_ns
    FROM placed GROUP BY ALL),
ranked AS (
    SELECT *, dense_rank() OVER (ORDER BY weight DESC {order}) AS place
    FROM (SELECT *, sum({weight}) OVER ({among}) AS weight FROM counted))
SELECT * EXCLUDE (weight, place) FROM ranked WHERE place <= {limit} ORDER BY place, time_ns, from_ns;
