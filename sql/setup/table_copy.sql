-- The same as a copy in memory, where the kernel cannot confine the query to reading.
CREATE TABLE {view} AS
SELECT {columns}
FROM read_parquet([{files}]);
