-- member_limit: the duration above which an operation of a member is slow, from its peers.
--
-- Uses the median of the peers' medians and of their 99th percentiles, with each peer counted once
-- and without the member itself. A member that is slower throughout would have its whole tail above
-- the peers' 99th percentile; therefore an operation is slow only if it also exceeds the member's
-- own median times the peers' ratio of the two percentiles. Logarithms are in integer millionths,
-- so that sums and medians are exact and equal on every engine.
--
-- within, alike, host, key, kind, op   the member, as in `member`, text
-- operations    finished operations, count
-- peers         members that it is compared with, count
-- p50_ns        its median, ns
-- p99_ns        its 99th percentile, ns
-- p50_log       logarithm of its median, number
-- spread_log    logarithm of its 75th minus that of its 25th percentile, number
-- peer_p50_log, peer_p99_log   medians of the peers' percentiles, logarithm, number
-- peer_p50_ns   the peers' median; longer operations are above it, ns
-- slow_ns       limit above which an operation is slow, ns
WITH logged AS (
    SELECT
        m.within, m.alike, m.host, m.key, m.kind, m.op, m.operations, m.p50_ns, m.p99_ns,
        m.p50_log,
        CAST(ROUND(1000000 * LN(GREATEST(m.p25_ns, 1))) AS BIGINT) AS p25_log,
        CAST(ROUND(1000000 * LN(GREATEST(m.p75_ns, 1))) AS BIGINT) AS p75_log,
        CAST(ROUND(1000000 * LN(GREATEST(m.p99_ns, 1))) AS BIGINT) AS p99_log
    FROM member AS m
    WHERE m.operations >= 100
),
placed AS (
    SELECT
        l.within, l.alike, l.host, l.key, l.kind, l.op, l.operations, l.p50_ns, l.p99_ns,
        l.p50_log, l.p99_log, l.p75_log - l.p25_log AS spread_log,
        l.p99_log - l.p50_log AS tail_log,
        COUNT(*) OVER (PARTITION BY l.within, l.alike, l.kind, l.op) AS members,
        ROW_NUMBER() OVER (
            PARTITION BY l.within, l.alike, l.kind, l.op ORDER BY l.p50_log, l.host, l.key
        ) AS p50_place,
        ROW_NUMBER() OVER (
            PARTITION BY l.within, l.alike, l.kind, l.op ORDER BY l.p99_log, l.host, l.key
        ) AS p99_place,
        ROW_NUMBER() OVER (
            PARTITION BY l.within, l.alike, l.kind, l.op
            ORDER BY l.p99_log - l.p50_log, l.host, l.key
        ) AS tail_place
    FROM logged AS l
),
-- Of n members, n - 1 are peers; their median is the k-th of all members, or the next one if the
-- member itself is among the first k.
middled AS (
    SELECT
        within, alike, kind, op,
        MIN(CASE WHEN p50_place = CAST(floor(members / 2) AS BIGINT) THEN p50_log END) AS p50_k,
        MIN(CASE WHEN p50_place = CAST(floor(members / 2) AS BIGINT) + 1 THEN p50_log END)
            AS p50_next,
        MIN(CASE WHEN p99_place = CAST(floor(members / 2) AS BIGINT) THEN p99_log END) AS p99_k,
        MIN(CASE WHEN p99_place = CAST(floor(members / 2) AS BIGINT) + 1 THEN p99_log END)
            AS p99_next,
        MIN(CASE WHEN tail_place = CAST(floor(members / 2) AS BIGINT) THEN tail_log END) AS tail_k,
        MIN(CASE WHEN tail_place = CAST(floor(members / 2) AS BIGINT) + 1 THEN tail_log END)
            AS tail_next
    FROM placed
    GROUP BY within, alike, kind, op
),
left_out AS (
    SELECT
        p.within, p.alike, p.host, p.key, p.kind, p.op, p.operations, p.p50_ns, p.p99_ns,
        p.p50_log, p.spread_log, p.members - 1 AS peers,
        CASE WHEN p.p50_place <= CAST(floor(p.members / 2) AS BIGINT)
            THEN m.p50_next ELSE m.p50_k END AS peer_p50_log,
        CASE WHEN p.p99_place <= CAST(floor(p.members / 2) AS BIGINT)
            THEN m.p99_next ELSE m.p99_k END AS peer_p99_log,
        CASE WHEN p.tail_place <= CAST(floor(p.members / 2) AS BIGINT)
            THEN m.tail_next ELSE m.tail_k END AS peer_tail_log
    FROM placed AS p
    JOIN middled AS m
        ON m.within = p.within AND m.alike = p.alike AND m.kind = p.kind AND m.op = p.op
    WHERE p.members >= 4
)
SELECT
    within, alike, host, key, kind, op, operations, peers, p50_ns, p99_ns, p50_log, spread_log,
    peer_p50_log, peer_p99_log,
    -- Neighbouring buckets are three per cent apart: adding a thousandth keeps the middle of a
    -- bucket from exceeding itself.
    CAST(ROUND(EXP((peer_p50_log + 1000) / 1e6)) AS BIGINT) AS peer_p50_ns,
    CAST(
        ROUND(EXP((GREATEST(peer_p99_log, p50_log + peer_tail_log) + 1000) / 1e6)) AS BIGINT
    ) AS slow_ns
FROM left_out
