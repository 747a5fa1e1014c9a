<?php
require __DIR__ . '/common.php';
echo 'well';
