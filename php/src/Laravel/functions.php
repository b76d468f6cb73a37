<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Contracts\Console\Kernel;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Queue\Events\JobExceptionOccurred;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Failed\NullFailedJobProvider;
use Illuminate\Queue\WorkerOptions;

/**
 * Handles the jobs of a `[[queue]]` with Laravel's worker. Call it in the handler script of the
 * queue. The application is booted once, and each batch begins with the booted memory.
 *
 * @param string $connection name of the connection in config/queue.php
 * @param int $tries number of runs of a job that sets none; 0: until it succeeds
 * @param int $backoff seconds before a failed job that sets none runs again
 */
function consume(
    Application $app,
    string $connection = 'samovar',
    int $tries = 1,
    int $backoff = 0,
): void {
    $app->make(Kernel::class)->bootstrap();
    $worker = $app->make('queue.worker');
    $worker->setName('samovar')->setCache($app->make('cache')->driver());
    $options = new WorkerOptions(backoff: $backoff, timeout: 0, maxTries: $tries);
    $failer = $app->make('queue.failer');
    $events = $app->make('events');
    $events->listen(JobFailed::class, static function (JobFailed $event) use ($failer): void {
        $body = $event->job->getRawBody();
        $failer->log($event->connectionName, $event->job->getQueue(), $body, $event->exception);
    });
    $events->listen(JobExceptionOccurred::class, static function (JobExceptionOccurred $event): void {
        if ($event->job instanceof Job) {
            $event->job->setThrown($event->exception);
        }
    });
    $isKept = $failer instanceof NullFailedJobProvider;
    $run = static function (\Samovar\Job ...$jobs) use ($app, $connection, $worker, $options, $isKept): void {
        foreach ($jobs as $native) {
            if ($app->isDownForMaintenance()) {
                $native->release(5.0);
                continue;
            }
            try {
                $worker->process($connection, new Job($app, $connection, $native, $isKept), $options);
            } catch (\Throwable $thrown) {
                $app->make(ExceptionHandler::class)->report($thrown);
            }
        }
    };
    \Samovar\consume($run);
}
