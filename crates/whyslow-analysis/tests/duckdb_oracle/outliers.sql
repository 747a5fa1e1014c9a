-- devices of `block outliers`: device times, and requests in flight
WITH held AS (
    SELECT *, ts_issue AS issue,
        CASE WHEN dur IS NOT NULL AND certain(cut) THEN coalesce(ts_issue + device_ns, ts_end)
             ELSE known_until(ts_issue, NULL, ts_end, 'lost') END AS done
    FROM block),
depths AS (
    SELECT r.id, 1 + count(q.id) AS depth
    FROM held r LEFT JOIN held q ON q.dev_name = r.dev_name AND q.done > r.issue
        AND (q.issue < r.issue OR q.issue = r.issue AND q.id < r.id)
    WHERE r.ts_issue IS NOT NULL AND r.device_ns IS NOT NULL AND certain(r.cut)
        AND r.issue >= coalesce(getvariable('win_begin'), r.issue)
        AND r.issue < coalesce(getvariable('win_end'), r.issue + 1)
    GROUP BY r.id),
grouped AS (
    SELECT dev_name AS dev, count(*) AS count,
        count(*) FILTER (WHERE coalesce(dur, known_until(ts, dur, ts_end, cut) - ts) >= {min}) AS over,
        count(*) - count(dur) AS unfinished,
        coalesce(list(device_ns) FILTER (WHERE device_ns IS NOT NULL), []) AS ds,
        coalesce(list(depth) FILTER (WHERE depth IS NOT NULL), []) AS depths
    FROM block LEFT JOIN depths USING (id) WHERE {where} AND certain(cut) GROUP BY ALL)
SELECT dev, count, over, unfinished, list_min(ds) AS device_min_ns, pct(ds, 500) AS device_p50_ns,
    pct(ds, 900) AS device_p90_ns, pct(ds, 990) AS device_p99_ns, list_max(ds) AS device_max_ns,
    pct(depths, 500) AS in_flight_p50, pct(depths, 990) AS in_flight_p99
FROM grouped ORDER BY over DESC, device_max_ns DESC NULLS LAST, dev;
