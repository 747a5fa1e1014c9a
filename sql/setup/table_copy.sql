-- The same as an in-memory copy, for kernels that cannot restrict the query to read-only access.
CREATE TABLE {view} AS
SELECT {columns}
FROM read_parquet([{files}]);
