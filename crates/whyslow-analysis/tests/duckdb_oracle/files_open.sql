-- file descriptors open at {at}
SELECT comm, pid, fd, fd_class, coalesce(path, 'unknown (' || unknown_reason || ')') AS path,
    deleted, ts AS ts_ns, origin
FROM fd_life WHERE ts <= {at} AND (ts_end IS NULL OR ts_end > {at} OR ts_end = ts AND ts = {at})
ORDER BY pid NULLS FIRST, upid, fd, id;
