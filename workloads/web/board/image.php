<?php
require __DIR__ . '/common.php';
$query = board()->prepare('SELECT image FROM post WHERE id = ?');
$query->bindValue(1, (int) ($_GET['id'] ?? 1));
header('Content-Type: image/jpeg');
echo $query->execute()->fetchArray()[0];
