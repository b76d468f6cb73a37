<?php

declare(strict_types=1);

/*
 * Replaces RoadRunner's worker classes where Samovar runs the script. The original classes would
 * wait for RoadRunner's server.
 */

use Samovar\Runtime\RoadRunner\HttpRequest;
use Samovar\Runtime\RoadRunner\HttpWorker;
use Samovar\Runtime\RoadRunner\HttpWorkerInterface;
use Samovar\Runtime\RoadRunner\PSR7Worker;
use Samovar\Runtime\RoadRunner\PSR7WorkerInterface;
use Samovar\Runtime\RoadRunner\Worker;
use Samovar\Runtime\RoadRunner\WorkerInterface;

if (PHP_SAPI !== 'cli' && extension_loaded('samovar')) {
    spl_autoload_register(static function (string $class): void {
        $names = [
            'Spiral\RoadRunner\WorkerInterface' => WorkerInterface::class,
            'Spiral\RoadRunner\Worker' => Worker::class,
            'Spiral\RoadRunner\Http\HttpWorkerInterface' => HttpWorkerInterface::class,
            'Spiral\RoadRunner\Http\HttpWorker' => HttpWorker::class,
            'Spiral\RoadRunner\Http\Request' => HttpRequest::class,
            'Spiral\RoadRunner\Http\PSR7WorkerInterface' => PSR7WorkerInterface::class,
            'Spiral\RoadRunner\Http\PSR7Worker' => PSR7Worker::class,
        ];
        if (!isset($names[$class])) {
            return;
        }
        // Defines all at once, because `instanceof` does not load classes.
        foreach ($names as $theirs => $ours) {
            class_exists($theirs, false) || interface_exists($theirs, false) || class_alias($ours, $theirs);
        }
    }, prepend: true); // Before Composer's, which may find the originals.
}
