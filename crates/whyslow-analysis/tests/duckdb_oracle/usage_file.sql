-- bytes and calls by {name}: a call with two objects reads the first and writes the second
WITH moved AS (
    SELECT {time} {first} AS file,
        CASE WHEN op IN ('read', 'read_write') THEN coalesce(bytes, 0) ELSE 0 END AS r,
        CASE WHEN op = 'write' THEN coalesce(bytes, 0) ELSE 0 END AS w,
        (op IN ('read', 'read_write'))::INT AS reads, (op = 'write')::INT AS writes,
        (op NOT IN ('read', 'write', 'read_write'))::INT AS others
    FROM {view}
    UNION ALL
    SELECT {time} {second}, 0, coalesce(bytes, 0), 0, 1, 0 FROM io WHERE op = 'read_write' AND {wanted})
SELECT {ts} file AS {name}, sum(r)::BIGINT AS read_bytes, sum(w)::BIGINT AS write_bytes,
    sum(reads)::BIGINT AS reads, sum(writes)::BIGINT AS writes, sum(others)::BIGINT AS other_calls
FROM moved GROUP BY ALL
ORDER BY {ts} sum(r) + sum(w) DESC, sum(reads) + sum(writes) + sum(others) DESC, file NULLS FIRST;
