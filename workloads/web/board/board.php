<?php
require __DIR__ . '/common.php';
session_start();
$_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
page('Board', board()->query('SELECT text FROM post ORDER BY id DESC LIMIT 20'));
