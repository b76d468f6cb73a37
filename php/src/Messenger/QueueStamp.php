<?php

declare(strict_types=1);

namespace Samovar\Runtime\Messenger;

use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** Arguments of Samovar\Queue::push() for one message. */
final class QueueStamp implements NonSendableStampInterface
{
    /**
     * @param string|null $key for concurrency_per_key and for unique messages
     * @param int|null $priority instead of the transport's
     * @param float $uniqueFor seconds for which no other unique message with $key is stored
     */
    public function __construct(
        public readonly ?string $key = null,
        public readonly ?int $priority = null,
        public readonly float $uniqueFor = 0.0,
    ) {
    }
}
