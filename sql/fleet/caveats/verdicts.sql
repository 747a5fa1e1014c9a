-- verdicts: hosts without a verdict, and missing evidence; also used for culprits.
--
-- gap       caveat with the placeholders {hosts}, {what} and {example}, text
-- kind, op  kind and class of operation; empty here, text
-- hosts     affected hosts, count
-- example   one of them, or the missing evidence, text
SELECT
    CAST(
        'no verdict on {hosts} hosts: nothing slow found, or not enough recorded ({example})'
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
        'evidence for verdicts missing on {hosts} hosts: {example} not recorded' AS STRING
    ) AS gap,
    CAST('' AS STRING) AS kind,
    CAST('' AS STRING) AS op,
    COUNT(DISTINCT v.host) AS hosts,
    MIN(v.missing) AS example
FROM verdict AS v
WHERE v.missing IS NOT NULL
HAVING COUNT(DISTINCT v.host) > 0
ORDER BY gap
