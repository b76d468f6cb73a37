<?php

declare(strict_types=1);

namespace Samovar\Runtime\Messenger;

use Samovar\Job;
use Samovar\Runtime\Sapi;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\ReceivedStamp;
use Symfony\Component\Messenger\Stamp\RedeliveryStamp;
use Symfony\Component\Messenger\Stamp\SentToFailureTransportStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\MessageCountAwareInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * A queue of Samovar as a transport. Worker of this folder receives the messages.
 *
 * Messenger decides whether and when a failed message runs again. Then its job runs again, with the
 * same number, instead of a new one.
 */
final class Transport implements TransportInterface, MessageCountAwareInterface
{
    public function __construct(
        private string $queue,
        private SerializerInterface $serializer,
        private int $priority = 0,
        private int $attempts = 0,
        private string $deadLetter = 'auto',
        private ?MessageBusInterface $bus = null,
    ) {
    }

    /** @throws TransportException when the job is not stored */
    public function send(Envelope $envelope): Envelope
    {
        $delay = $envelope->last(DelayStamp::class)?->getDelay() ?? 0;
        if ($this->isRetry($envelope)) {
            $envelope->last(JobStamp::class)->job->retry($delay / 1000, Batch::reason());

            return $envelope;
        }
        if (!Sapi::isSamovar()) {
            return $this->handle($envelope);
        }
        $stamp = $envelope->last(QueueStamp::class) ?? new QueueStamp();
        $encoded = $this->serializer->encode($envelope);
        try {
            $id = \Samovar\queue($this->queue)->push(
                $this->payload($encoded),
                delay: $delay / 1000,
                key: $stamp->key,
                priority: $stamp->priority ?? $this->priority,
                attempts: $this->attempts,
                uniqueFor: $stamp->uniqueFor,
            );
        } catch (\RuntimeException | \ValueError $thrown) {
            throw new TransportException($thrown->getMessage(), 0, $thrown);
        }

        // A duplicate of a unique message has no id.
        return $id === null ? $envelope : $envelope->with(new TransportMessageIdStamp((string) $id));
    }

    /** @return list<Envelope> the messages of the batch that runs, once */
    public function get(): iterable
    {
        $envelopes = [];
        foreach (Batch::take($this->queue) as $job) {
            $envelope = $this->decode($job);
            if ($envelope !== null) {
                $envelopes[] = $envelope;
            }
        }

        return $envelopes;
    }

    public function ack(Envelope $envelope): void
    {
        self::job($envelope)->done();
    }

    /** Ends a message that Messenger does not retry. */
    public function reject(Envelope $envelope): void
    {
        $job = self::job($envelope);
        if (Batch::isRetried($job)) {
            return;
        }
        if ($this->deadLetter === 'messenger' || $this->deadLetter === 'auto' && Batch::hasFailureTransport()) {
            $job->done();
        } else {
            $job->fail(Batch::reason());
        }
    }

    /** Extends the deadline of the batch, up to `timeouts.extended`. */
    public function keepalive(Envelope $envelope, ?int $seconds = null): void
    {
        \Samovar\extend_deadline(max(1, $seconds ?? 60));
    }

    /** @throws TransportException when the server does not respond */
    public function getMessageCount(): int
    {
        if (!Sapi::isSamovar()) {
            return 0;
        }
        try {
            return array_sum(\Samovar\queue($this->queue)->depth());
        } catch (\RuntimeException | \ValueError $thrown) {
            throw new TransportException($thrown->getMessage(), 0, $thrown);
        }
    }

    /** Whether Messenger sends a message of the batch again because its handler failed. */
    private function isRetry(Envelope $envelope): bool
    {
        $job = $envelope->last(JobStamp::class)?->job;
        $isRetry = $job !== null
            && $job->queue() === $this->queue
            && $envelope->last(RedeliveryStamp::class) !== null
            && $envelope->last(SentToFailureTransportStamp::class) === null
            && Batch::isFailing($job);
        if ($isRetry) {
            Batch::setRetried($job);
        }

        return $isRetry;
    }

    /** Handles a message at once, as the transport `sync://`. */
    private function handle(Envelope $envelope): Envelope
    {
        if ($this->bus === null) {
            throw new TransportException(
                "The queue `{$this->queue}` needs a Samovar server\n"
                . "hint: pass '@messenger.routable_message_bus' to the service " . TransportFactory::class,
            );
        }

        return $this->bus->dispatch($envelope->with(new ReceivedStamp('samovar')));
    }

    /**
     * @param array{body: string, headers?: array<string, string>} $encoded
     *
     * @return array<string, mixed>
     */
    private function payload(array $encoded): array
    {
        $isText = preg_match('//u', $encoded['body']) === 1;
        $body = $isText ? ['body' => $encoded['body']] : ['body_base64' => base64_encode($encoded['body'])];

        return $body + ['headers' => $encoded['headers'] ?? []];
    }

    /** Returns the message of a job; a job without a valid one is dead. */
    private function decode(Job $job): ?Envelope
    {
        $payload = $job->payload();
        $body = \is_array($payload) ? $payload['body'] ?? base64_decode($payload['body_base64'] ?? '') : '';
        $headers = \is_array($payload) ? $payload['headers'] ?? [] : [];
        try {
            $envelope = $this->serializer->decode(['body' => $body, 'headers' => $headers]);
        } catch (MessageDecodingFailedException $thrown) {
            $job->fail($thrown->getMessage());

            return null;
        }
        $envelope = $envelope->with(new JobStamp($job), new TransportMessageIdStamp((string) $job->id()));

        // The payload is that of the first run.
        return $job->attempt() === 1 ? $envelope : $envelope->with(new RedeliveryStamp($job->attempt() - 1));
    }

    private static function job(Envelope $envelope): Job
    {
        return $envelope->last(JobStamp::class)?->job
            ?? throw new TransportException('The message was not received from a queue of Samovar');
    }
}
