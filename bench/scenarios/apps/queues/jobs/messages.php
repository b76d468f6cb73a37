<?php

/** The parts of Symfony Messenger that both transports use: a message, its handler, a bus. */

declare(strict_types=1);

namespace Samovar\Bench\Queues;

use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Event\WorkerRunningEvent;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\TransportInterface;
use Symfony\Component\Messenger\Worker;

require_once '/usr/share/php/Symfony/Component/Messenger/autoload.php';
require_once '/usr/share/php/Symfony/Component/EventDispatcher/autoload.php';

final class Message
{
    public function __construct(public readonly int $number = 42)
    {
    }
}

/** Handles the messages of a transport until it has none. */
function work(TransportInterface $transport): void
{
    static $bus = null;
    $bus ??= new MessageBus([new HandleMessageMiddleware(new HandlersLocator([
        Message::class => [static fn (Message $message): int => $message->number],
    ]))]);
    $dispatcher = new EventDispatcher();
    $dispatcher->addListener(WorkerRunningEvent::class, static function (WorkerRunningEvent $event): void {
        if ($event->isWorkerIdle()) {
            $event->getWorker()->stop();
        }
    });
    (new Worker(['async' => $transport], $bus, $dispatcher))->run(['sleep' => 0]);
}

/** A message as Samovar's transport stores it. */
function encoded(): array
{
    return (new PhpSerializer())->encode(new Envelope(new Message()));
}
