-- {view} in chronological order
SELECT {columns}, {cut} AS cut FROM {view} WHERE {where} ORDER BY ts, id;
