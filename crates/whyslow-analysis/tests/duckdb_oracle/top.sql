-- the {limit} longest of {view} in each {label}
WITH ranked_rows AS (
    SELECT *, {label} AS series,
        row_number() OVER (PARTITION BY {keys} ORDER BY dur DESC, ts, id) AS place
    FROM {view} WHERE dur IS NOT NULL)
SELECT series, {columns}, cut_of(ts, ts_end, cut) AS cut
FROM ranked_rows WHERE place <= {limit} ORDER BY {order}, place;
