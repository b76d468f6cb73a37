<?php

/** Pushes empty jobs with push(), or with pushMany(). With neither: an empty page. */

declare(strict_types=1);

require __DIR__ . '/../jobs/messages.php';

Samovar\checkpoint();

$queue = Samovar\queue($_GET['queue'] ?? 'empty');
for ($number = 0; $number < (int) ($_GET['push'] ?? 0); ++$number) {
    $queue->push(null);
}
if (isset($_GET['many'])) {
    $queue->pushMany(array_fill(0, (int) $_GET['many'], null));
}
if (isset($_GET['messages'])) {
    $payload = Samovar\Bench\Queues\encoded();
    $queue->pushMany(array_fill(0, (int) $_GET['messages'], $payload));
}
echo (int) ($_GET['push'] ?? $_GET['many'] ?? $_GET['messages'] ?? 1);
