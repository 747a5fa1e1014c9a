<?php
require __DIR__ . '/common.php';
session_start();
$query = board()->prepare('SELECT text FROM post WHERE thread = ?');
$query->bindValue(1, (int) ($_GET['id'] ?? 1));
page('Thread', $query->execute());
