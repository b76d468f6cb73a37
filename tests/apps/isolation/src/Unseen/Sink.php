<?php

declare(strict_types=1);

namespace Isolation\Unseen;

/** A user stream that reports when it is closed. */
final class Sink
{
    /** @var resource|null */
    public $context;

    public function stream_open(): bool
    {
        return true;
    }

    public function stream_write(string $data): int
    {
        return \strlen($data);
    }

    public function stream_flush(): bool
    {
        return true;
    }

    public function stream_close(): void
    {
        Speaker::tell('stream');
    }
}
