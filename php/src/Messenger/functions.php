<?php

declare(strict_types=1);

namespace Samovar\Runtime\Messenger;

use Samovar\Job;
use Symfony\Bundle\FrameworkBundle\Console\Application;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\ConsoleOutput;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;
use Symfony\Component\Messenger\Event\WorkerRunningEvent;
use Symfony\Component\Messenger\EventListener\SendFailedMessageToFailureTransportListener;

/**
 * Handles the messages of a `[[queue]]` with `messenger:consume`. Call it in the handler script of
 * the queue. The kernel is booted once, and each batch begins with the booted memory.
 *
 * @param string $transports names of the transports of this queue
 */
function consume(KernelInterface $kernel, string ...$transports): void
{
    $kernel->boot();
    $application = new Application($kernel);
    $command = $application->find('messenger:consume');
    $dispatcher = $kernel->getContainer()->get('event_dispatcher');
    $dispatcher->addListener(WorkerMessageFailedEvent::class, static function (WorkerMessageFailedEvent $event): void {
        $job = $event->getEnvelope()->last(JobStamp::class)?->job;
        if ($job !== null) {
            Batch::fails($job, $event->getThrowable());
        }
    }, 1_000);
    $dispatcher->addListener(WorkerRunningEvent::class, static function (WorkerRunningEvent $event): void {
        if ($event->isWorkerIdle()) {
            $event->getWorker()->stop();
        }
    });
    $hasFailureTransport = false;
    foreach ($dispatcher->getListeners(WorkerMessageFailedEvent::class) as $listener) {
        $of = \is_array($listener) ? $listener[0] : null;
        $hasFailureTransport = $hasFailureTransport || $of instanceof SendFailedMessageToFailureTransportListener;
    }
    \Samovar\consume(static function (Job ...$jobs) use ($command, $transports, $hasFailureTransport): void {
        Batch::begin($jobs, $hasFailureTransport);
        $input = new ArrayInput(['receivers' => $transports, '--sleep' => '0']);
        $input->setInteractive(false);
        $output = new ConsoleOutput(ConsoleOutput::VERBOSITY_QUIET);
        $command->run($input, $output);
    });
}
