-- verdicts: hosts of which nothing was told, and evidence that was missing; of culprits, too.
--
-- gap       what is not known, with {hosts}, {what} and {example} in it, text
-- kind, op  of what; empty if that is no matter, text
-- hosts     on how many hosts, count
-- example   one of them, or what was missing, text
SELECT
    CAST(
        'without a verdict, as nothing slow was or could be found: {hosts} of the hosts ({example})'
        AS STRING
    ) AS gap,
    CAST('' AS STRING) AS kind,
    CAST('' AS STRING) AS op,
    COUNT(DISTINCT r.host) AS hosts,
    MIN(r.host) AS example
FROM recording AS r
LEFT JOIN verdict AS v ON v.host = r.host
WHERE v.host IS NULL
HAVING COUNT(DISTINCT r.host) > 0
UNION ALL
SELECT
    CAST(
        'verdicts lack evidence that was not recorded on {hosts} of the hosts: {example}' AS STRING
    ) AS gap,
    CAST('' AS STRING) AS kind,
    CAST('' AS STRING) AS op,
    COUNT(DISTINCT v.host) AS hosts,
    MIN(v.missing) AS example
FROM verdict AS v
WHERE v.missing IS NOT NULL
HAVING COUNT(DISTINCT v.host) > 0
ORDER BY gap
