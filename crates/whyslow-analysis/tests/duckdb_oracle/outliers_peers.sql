-- each device compared with its peers, by pairs of requests: number beyond the peers' 99th
-- percentile, ratio to the expected number, and Cliff's delta to the median peer
WITH depths AS (
    SELECT r.id, r.dev_name AS dev, r.op, r.device_ns, r.bytes, 1 + count(q.id) AS depth
    FROM block r LEFT JOIN block q ON q.dev_name = r.dev_name AND q.ts_end > r.ts_issue
        AND (q.ts_issue < r.ts_issue OR q.ts_issue = r.ts_issue AND q.id < r.id)
    GROUP BY ALL),
sampled AS (
    SELECT dev, op || '/' || half_octave((bytes + 511) // 512) || '/' || half_octave(depth) AS stratum,
        mid(device_ns) AS bucket FROM depths),
own AS (SELECT dev, stratum, count(*) AS n FROM sampled GROUP BY ALL),
likes AS (
    SELECT o.dev, o.stratum, o.n, sum(p.n) AS others
    FROM own o JOIN own p ON p.stratum = o.stratum AND p.dev <> o.dev
    GROUP BY ALL HAVING count(*) >= 3 AND sum(p.n) >= 100),
beyond AS (
    SELECT l.dev, l.stratum, t.bucket, count(*) FILTER (WHERE s.bucket > t.bucket) AS above
    FROM likes l JOIN (SELECT DISTINCT * FROM sampled) t ON t.stratum = l.stratum AND t.dev <> l.dev
        JOIN sampled s ON s.stratum = l.stratum AND s.dev <> l.dev
    WHERE t.dev = (SELECT min(x.dev) FROM sampled x
                   WHERE x.stratum = t.stratum AND x.bucket = t.bucket AND x.dev <> l.dev)
    GROUP BY ALL),
thresholds AS (
    SELECT dev, stratum, n, others, min(bucket) AS threshold, max(above) AS above
    FROM beyond JOIN likes USING (dev, stratum) WHERE above * 100 <= others GROUP BY ALL),
tails AS (
    SELECT t.dev, sum(t.n)::BIGINT AS compared, count(*) AS strata, sum(t.n * (t.above + 1) / (t.others + 1)) AS expected,
        sum((SELECT count(*) FROM sampled s
             WHERE s.dev = t.dev AND s.stratum = t.stratum AND s.bucket > t.threshold))::BIGINT AS over
    FROM thresholds t GROUP BY ALL),
wins AS (
    SELECT l.dev, p.dev AS peer, l.stratum, l.n,
        avg(CASE WHEN s.bucket > p.bucket THEN 1 WHEN s.bucket < p.bucket THEN -1 ELSE 0 END) AS delta,
        count(DISTINCT p.number) AS theirs
    FROM likes l JOIN sampled s ON s.dev = l.dev AND s.stratum = l.stratum
        JOIN (SELECT *, row_number() OVER () AS number FROM sampled) p
            ON p.stratum = l.stratum AND p.dev <> l.dev
    GROUP BY ALL),
deltas AS (
    SELECT dev, peer, sum(n * delta) / sum(n) AS delta FROM wins GROUP BY ALL HAVING sum(theirs) >= 30)
SELECT dev, compared, strata, over AS tail_over, expected AS tail_expected,
    over / expected AS relative_risk, count(*) AS peers, median(delta) AS delta
FROM tails JOIN deltas USING (dev) GROUP BY ALL ORDER BY dev;
