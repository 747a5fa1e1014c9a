-- function_usage: calls of functions that were asked for, by function and process.
--
-- function, module  name, and the file that it is in
-- comm, pid         thread's name and process
-- calls             number
-- unfinished        those of them whose return was not recorded
-- dur_ns            time in the function, with what it calls, ns
-- self_ns           the same without recorded functions that it calls, ns
-- dur_max_ns        longest call, ns
CREATE VIEW function_usage AS
WITH inner_time AS (
    SELECT
        parent_id AS call_id,
        SUM(dur) AS dur_ns
    FROM function_call
    WHERE parent_id IS NOT NULL
    GROUP BY parent_id
)
SELECT
    function_call.function,
    function_call.module,
    function_call.comm,
    function_call.pid,
    COUNT(*) AS calls,
    COUNT(*) - COUNT(function_call.dur) AS unfinished,
    SUM(function_call.dur) AS dur_ns,
    SUM(function_call.dur - COALESCE(inner_time.dur_ns, 0)) AS self_ns,
    MAX(function_call.dur) AS dur_max_ns
FROM function_call
LEFT JOIN inner_time
    ON inner_time.call_id = function_call.id
GROUP BY
    function_call.function,
    function_call.module,
    function_call.comm,
    function_call.pid;
