<?php

/** Random numbers of all kinds, generated in each request. */

declare(strict_types=1);

use Isolation\Boot;

require __DIR__ . '/src/Boot.php';
require __DIR__ . '/src/generators.php';

// With a pipe above the checkpoint, each worker boots separately, and its own process seeds all
// generators.
$alone = getenv('ISOLATION_ALONE') ? popen('cat', 'w') : null;
$boot = new Boot();
$cheap = $boot->available(Isolation\generators());
$dear = $boot->available(Isolation\dear_generators());
$answer = static function () use ($boot, $cheap, $dear): void {
    $generators = isset($_GET['dear']) ? $cheap + $dear : $cheap;
    $values = array_map(static fn (callable $generator) => $generator($boot), $generators);
    echo json_encode(['pid' => getmypid(), 'values' => $values], JSON_THROW_ON_ERROR);
};
if (getenv('ISOLATION_EVERY') === 'checkpoint') {
    Samovar\checkpoint();
    $answer();
} else {
    Samovar\serve($answer, (int) getenv('ISOLATION_EVERY'));
}
