<?php
// Creates the initial posts: tables.php FOLDER
$board = new SQLite3($argv[1] . '/board.sqlite');
$board->exec('PRAGMA synchronous = OFF');
$board->exec('CREATE TABLE post (id INTEGER PRIMARY KEY, thread INTEGER, text TEXT, image BLOB)');
$board->exec('BEGIN');
for ($id = 1; $id <= 211; $id++) {
    $insert = $board->prepare('INSERT INTO post VALUES (?, ?, ?, ?)');
    $insert->bindValue(1, $id);
    $insert->bindValue(2, $id % 7);
    $insert->bindValue(3, "post $id");
    $insert->bindValue(4, str_repeat("\xff\xd8", 2003), SQLITE3_BLOB);
    $insert->execute();
}
$board->exec('COMMIT');
