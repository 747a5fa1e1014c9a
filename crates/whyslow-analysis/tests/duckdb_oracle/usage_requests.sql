-- requests, errors and thread time by client and role
WITH had_when AS (
    SELECT request, utid, greatest(ts, getvariable('span_begin')) AS ts,
        least(coalesce(ts_end, getvariable('rec_end')), getvariable('span_end')) AS te
    FROM request_thread),
ran AS (
    SELECT w.request, sum(least(s.ts_end, w.te) - greatest(s.ts, w.ts)) AS ran
    FROM (SELECT * FROM had_when WHERE te > ts) w
    JOIN (SELECT utid, ts, coalesce(ts_end, getvariable('rec_end')) AS ts_end FROM sched_slice) s
        ON s.utid = w.utid AND s.ts < w.te AND s.ts_end > w.ts
    GROUP BY ALL),
had AS (
    SELECT request, sum(greatest(te - ts, 0)) AS had FROM had_when GROUP BY ALL)
SELECT client, role, count(*) AS count,
    count(*) / sum(count(*)) OVER (PARTITION BY role) AS count_ratio,
    count(*) FILTER (WHERE outcome NOT IN ('ok', 'unknown', 'cut')) AS errors,
    pct(coalesce(list(dur) FILTER (WHERE dur IS NOT NULL), []), 500) AS p50_ns,
    max(dur) AS max_ns,
    sum(dur)::BIGINT AS total_ns,
    coalesce(sum(had), 0)::BIGINT AS threads_ns,
    sum(ran)::BIGINT AS running_ns,
    sum(bytes_sent)::BIGINT AS bytes_sent
FROM requests LEFT JOIN had ON had.request = requests.id LEFT JOIN ran ON ran.request = requests.id
GROUP BY client, role
ORDER BY count DESC, client NULLS FIRST, role;
