<?php
// A page that redeems a coupon under a System V semaphore.
// With ?ms=N, it issues coupons for N milliseconds meanwhile, and logs when.
$semaphore = sem_get(0x636f7570);
sem_acquire($semaphore);
$begin = hrtime(true);
$until = $begin + 1000000 * (int) ($_GET["ms"] ?? 0);
$code = "coupon";
while (hrtime(true) < $until) {
    $code = sha1($code);
}
if ($until > $begin) {
    $line = sprintf("issue %d %d %d\n", getmypid(), $begin, hrtime(true));
    file_put_contents(__DIR__ . "/coupon.log", $line, FILE_APPEND);
}
sem_release($semaphore);
echo "code: ", $code, "\n";
