<?php

/** A stream that was opened above the checkpoint through the application's own wrapper. */

declare(strict_types=1);

namespace Isolation\Items;

final class TeaStream
{
    /** @var resource|null */
    public $context;

    private int $at = 0;

    public function stream_open(): bool // phpcs:ignore
    {
        return true;
    }

    public function stream_read(int $room): string // phpcs:ignore
    {
        return 'cup ' . ++$this->at . "\n";
    }

    public function stream_eof(): bool // phpcs:ignore
    {
        return false;
    }
}

return [
    'boot' => static function () {
        stream_wrapper_register('tea', TeaStream::class);

        return fopen('tea://green', 'r');
    },
    'leak' => static fn ($stream) => fgets($stream),
    'look' => static fn ($stream) => fgets($stream),
    'resident' => 'kept',
];
