<?php

/** A stream wrapper. */

declare(strict_types=1);

namespace Isolation\Items;

final class DirtStream
{
    /** @var resource|null */
    public $context;

    public function stream_open(string $path): bool // phpcs:ignore
    {
        return true;
    }
}

return [
    'leak' => static fn () => stream_wrapper_register('dirt', DirtStream::class),
    'look' => static fn () => \in_array('dirt', stream_get_wrappers(), true),
    'resident' => 'kept',
];
