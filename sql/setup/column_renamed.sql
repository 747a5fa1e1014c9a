-- A column that has another name in files of this format version.
{column_in_files} AS {column}
