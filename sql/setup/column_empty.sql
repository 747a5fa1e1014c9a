-- A column of a table without rows.
CAST(NULL AS {type}) AS {column}
