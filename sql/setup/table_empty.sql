-- A table without rows in the recording, with its columns.
CREATE VIEW {view} AS
SELECT {columns}
WHERE FALSE;
