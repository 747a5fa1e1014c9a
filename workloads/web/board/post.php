<?php
require __DIR__ . '/common.php';
session_start();
$board = board();
$board->exec('PRAGMA synchronous = OFF');
$board->exec("INSERT INTO post (thread, text, image) VALUES (1, 'new', x'ffd8')");
page('Posted', $board->query('SELECT text FROM post ORDER BY id DESC LIMIT 1'));
