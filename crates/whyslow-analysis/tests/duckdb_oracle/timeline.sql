-- the state in which each thread spent most of each part of {width}, as a letter
WITH inside AS (
    SELECT utid, part,
        coalesce(list_position(['running', 'uninterruptible', 'runnable', 'stopped', 'traced', 'sleeping'], state), 7) AS place,
        sum(greatest(0, least(coalesce(ts_end, getvariable('rec_end')), part_end) - greatest(ts, part))) AS t
    FROM states, parts({width}) GROUP BY ALL),
best AS (
    SELECT utid, part, arg_min(place, (-t, place)) AS place, max(t) AS longest,
        coalesce(sum(t) FILTER (WHERE place = 1), 0) AS running,
        coalesce(sum(t) FILTER (WHERE place <= 5), 0) AS active
    FROM inside GROUP BY ALL),
lines AS (
    SELECT utid, sum(running)::BIGINT AS running_ns, sum(active) AS active,
        string_agg(CASE WHEN longest = 0 THEN ' ' ELSE 'RDrTtS?'[place:place] END, '' ORDER BY part) AS states
    FROM best GROUP BY utid)
SELECT thread.comm, thread.tid, running_ns, states
FROM lines LEFT JOIN thread ON thread.utid = lines.utid
ORDER BY running_ns DESC, active DESC, lines.utid NULLS FIRST;
