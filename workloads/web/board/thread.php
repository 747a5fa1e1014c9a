<?php
require __DIR__ . '/common.php';
session_start();
$asked = board()->prepare('SELECT text FROM post WHERE thread = ?');
$asked->bindValue(1, (int) ($_GET['id'] ?? 1));
page('Thread', $asked->execute());
