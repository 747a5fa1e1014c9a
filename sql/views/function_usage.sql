-- function_usage: function calls (uprobes), by function and process.
--
-- function, module  name, and file that contains it
-- comm, pid         thread's name and process
-- calls             number of calls
-- unfinished        calls whose return was not recorded
-- dur_ns            time in the function, including callees, ns
-- self_ns           the same, excluding recorded callees, ns
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
