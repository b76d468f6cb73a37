<?php

declare(strict_types=1);

namespace Samovar\Runtime\Messenger;

use Samovar\Job;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** The job from which a message was received. */
final class JobStamp implements NonSendableStampInterface
{
    public function __construct(public readonly Job $job)
    {
    }
}
