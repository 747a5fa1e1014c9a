-- {view} in order of time
SELECT {columns}, {cut} AS cut FROM {view} WHERE {where} ORDER BY ts, id;
