<?php

/** Handles messages with Messenger's worker and Samovar's transport. */

declare(strict_types=1);

use Samovar\Runtime\Messenger\Batch;
use Samovar\Runtime\Messenger\Transport;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

require __DIR__ . '/messages.php';

foreach (['Sapi', 'Messenger/JobStamp', 'Messenger/QueueStamp', 'Messenger/Batch', 'Messenger/Transport'] as $class) {
    require __DIR__ . "/../../../../../php/src/$class.php";
}

$transport = new Transport('messages', new PhpSerializer());
Samovar\consume(static function (Samovar\Job ...$jobs) use ($transport): void {
    Batch::begin($jobs, false);
    Samovar\Bench\Queues\work($transport);
});
