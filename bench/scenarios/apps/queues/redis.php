<?php

/**
 * Messenger's Redis transport under the command line: redis.php SOCKET send|work [COUNT].
 * `work` prints the CPU seconds of this process and the wall-clock seconds.
 */

declare(strict_types=1);

use Samovar\Bench\Queues\Message;
use Symfony\Component\Messenger\Bridge\Redis\Transport\Connection;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransport;
use Symfony\Component\Messenger\Envelope;

require __DIR__ . '/jobs/messages.php';
require_once '/usr/share/php/Symfony/Component/Messenger/Bridge/Redis/autoload.php';

[, $socket, $action] = $argv;
$redis = new Redis();
$redis->connect($socket);
$options = ['stream' => 'messages', 'delete_after_ack' => true];
$transport = new RedisTransport(new Connection($options, redis: $redis));
if ($action === 'send') {
    for ($number = 0; $number < (int) $argv[3]; ++$number) {
        $transport->send(new Envelope(new Message()));
    }
    exit;
}
$began = hrtime(true);
Samovar\Bench\Queues\work($transport);
$used = getrusage();
$cpu = $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'] + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e6;
echo json_encode(['cpu' => $cpu, 'seconds' => (hrtime(true) - $began) / 1e9]);
