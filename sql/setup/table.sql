-- A table of the recording as a view over its files. `{...}` is filled in by the program.
CREATE VIEW {view} AS
SELECT {columns}
FROM read_parquet([{files}]);
