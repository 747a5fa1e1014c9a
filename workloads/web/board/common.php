<?php
// Shared by the pages: the board's log, its session and its posts.
declare(strict_types=1);

$begin_ns = (int) (microtime(true) * 1_000_000) * 1000;

// Writes one line per request; a prefork process has one thread, so tid equals pid.
register_shutdown_function(function () use ($begin_ns): void {
    if (session_status() === PHP_SESSION_ACTIVE) {
        session_write_close();
    }
    $parent = explode('-', $_SERVER['HTTP_TRACEPARENT'] ?? '');
    $entry = [
        'trace_id' => count($parent) === 4 ? $parent[1] : null,
        'endpoint' => $_SERVER['SCRIPT_NAME'],
        'pid' => getmypid(),
        'tid' => getmypid(),
        'begin_ns' => $begin_ns,
        'end_ns' => (int) (microtime(true) * 1_000_000) * 1000,
        'local' => $_SERVER['SERVER_ADDR'] . ':' . $_SERVER['SERVER_PORT'],
        'peer' => $_SERVER['REMOTE_ADDR'] . ':' . $_SERVER['REMOTE_PORT'],
    ];
    file_put_contents(getenv('BOARD_LOG'), json_encode($entry, JSON_UNESCAPED_SLASHES) . "\n", FILE_APPEND);
});

function board(): SQLite3
{
    $board = new SQLite3(getenv('BOARD_DATA') . '/board.sqlite');
    $board->busyTimeout(5000);
    return $board;
}

function page(string $title, SQLite3Result $posts): void
{
    echo '<!doctype html><title>' . htmlspecialchars($title) . '</title>';
    while ($post = $posts->fetchArray(SQLITE3_ASSOC)) {
        echo '<p>' . htmlspecialchars($post['text']) . '</p>';
    }
}
