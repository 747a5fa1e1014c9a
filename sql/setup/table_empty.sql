-- A table of which the recording has no rows, with its columns.
CREATE VIEW {view} AS
SELECT {columns}
WHERE FALSE;
