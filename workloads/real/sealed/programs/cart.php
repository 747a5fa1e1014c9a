<?php
// The cart of a visitor, in a session that PHP locks during the request.
// With ?ms=N, it computes a summary for N milliseconds, and logs when.
session_name("cart");
session_save_path(__DIR__ . "/sessions");
session_start();
$_SESSION["visits"] = ($_SESSION["visits"] ?? 0) + 1;
$begin = hrtime(true);
$until = $begin + 1000000 * (int) ($_GET["ms"] ?? 0);
$sum = 0;
while (hrtime(true) < $until) {
    $sum += crc32(strval($sum));
}
if ($until > $begin) {
    $line = sprintf("summary %d %d %d\n", getmypid(), $begin, hrtime(true));
    file_put_contents(__DIR__ . "/cart.log", $line, FILE_APPEND);
}
echo "visits: ", $_SESSION["visits"], "\n";
