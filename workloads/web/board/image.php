<?php
require __DIR__ . '/common.php';
$asked = board()->prepare('SELECT image FROM post WHERE id = ?');
$asked->bindValue(1, (int) ($_GET['id'] ?? 1));
header('Content-Type: image/jpeg');
echo $asked->execute()->fetchArray()[0];
