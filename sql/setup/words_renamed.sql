-- A text column with words that files of this format version spell differently.
CASE {column_in_files}
{words}
ELSE {column_in_files}
END AS {column}
