-- counts and sums of durations of {view} by time and power of two, a series for each {label}
WITH placed AS (
    SELECT {label} AS series, dur,
        least(greatest(ts, getvariable('span_begin')), getvariable('span_end') - 1)
            - getvariable('span_begin') AS offset_ns,
        {width} AS width
    FROM {view} WHERE dur IS NOT NULL),
counted AS (
SELECT series, getvariable('span_begin') + (offset_ns // width) * width AS time_ns,
    CASE WHEN dur <= 0 THEN 0 ELSE 1::BIGINT << (length(bin(dur)) - 1) END AS from_ns,
    count(*) AS count, sum(dur)::BIGINT AS intensity_ns
FROM placed GROUP BY ALL)
SELECT * FROM counted ORDER BY {order}, time_ns, from_ns;
