<?php

declare(strict_types=1);

namespace Samovar\Runtime\Laravel;

use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Connectors\ConnectorInterface;
use Illuminate\Queue\SyncQueue;
use Samovar\Runtime\Sapi;

/** Connects to the queues of the server. Where there is no server, jobs run at once. */
final class QueueConnector implements ConnectorInterface
{
    /** @param array<string, mixed> $config */
    public function connect(array $config): QueueContract
    {
        return Sapi::isSamovar()
            ? new Queue($config['queue'] ?? 'jobs', (bool) ($config['after_commit'] ?? false))
            : new SyncQueue();
    }
}
