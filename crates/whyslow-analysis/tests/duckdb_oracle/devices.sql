-- iostat: requests by the interval in which they complete, busy as union of the times in flight
WITH parts AS (
    SELECT unnest(generate_series(0, greatest(1,
        (getvariable('span_end') - getvariable('span_begin') + {width} - 1) // {width}) - 1)) AS part),
bounds AS (
    SELECT part, getvariable('span_begin') + part * {width} AS b,
        least(getvariable('span_end'), getvariable('span_begin') + (part + 1) * {width}) AS e
    FROM parts),
requests AS (
    SELECT * REPLACE (CASE WHEN certain(cut) THEN dur END AS dur),
        coalesce(ts_end, getvariable('rec_end')) AS stop,
        known_until(ts, dur, ts_end, cut) AS known FROM block),
completed AS (
    SELECT r.* EXCLUDE (part), least(greatest(stop - getvariable('span_begin'), 0) // {width},
        (SELECT max(part) FROM parts)) AS part
    FROM requests r),
counted AS (
    SELECT part, dev_name AS dev, count(*) AS requests, sum(sectors)::BIGINT AS sectors,
        coalesce(sum(bytes) FILTER (WHERE op = 'read'), 0)::BIGINT AS read_bytes,
        coalesce(sum(bytes) FILTER (WHERE op = 'write'), 0)::BIGINT AS write_bytes,
        count(*) FILTER (WHERE op = 'read') AS r, count(*) FILTER (WHERE op = 'write') AS w,
        avg(dur) FILTER (WHERE op = 'read') AS r_await_ns,
        avg(dur) FILTER (WHERE op = 'write') AS w_await_ns,
        avg(dur) AS await_ns,
        pct(coalesce(list(dur) FILTER (WHERE dur IS NOT NULL), []), 990) AS p99_ns
    FROM completed GROUP BY ALL),
clipped AS (
    SELECT bounds.part, dev_name AS dev, greatest(ts, b) AS f, least(known, e) AS t
    FROM requests JOIN bounds ON ts < e AND known > b AND known > ts),
islands AS (
    SELECT *, max(t) OVER (PARTITION BY part, dev ORDER BY f, t
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM clipped WHERE t > f),
flight AS (
    SELECT part, dev, sum(t - f) AS total,
        sum(greatest(0, t - greatest(f, coalesce(before, f))))::BIGINT AS busy_ns
    FROM islands GROUP BY ALL)
SELECT {time} coalesce(c.dev, f.dev) AS dev, coalesce(requests, 0) AS requests,
    coalesce(sectors, 0) AS sectors,
    coalesce(read_bytes, 0) AS read_bytes, coalesce(write_bytes, 0) AS write_bytes,
    coalesce(r, 0) / ((e - b) / 1e9) AS r_per_s, coalesce(w, 0) / ((e - b) / 1e9) AS w_per_s,
    r_await_ns, w_await_ns, await_ns, p99_ns,
    coalesce(total, 0) / (e - b) AS aqu_sz, coalesce(busy_ns, 0) AS busy_ns,
    coalesce(busy_ns, 0) / (e - b) AS util_ratio
FROM counted c FULL JOIN flight f ON c.part = f.part AND c.dev = f.dev
JOIN bounds ON bounds.part = coalesce(c.part, f.part)
ORDER BY {order};
