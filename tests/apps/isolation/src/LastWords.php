<?php

declare(strict_types=1);

namespace Isolation;

/** A session handler that does something when the session is written at the request's end. */
final class LastWords extends \SessionHandler
{
    public function __construct(private \Closure $last)
    {
    }

    public function write(string $id, string $data): bool
    {
        file_put_contents(Ending::file('session'), $data);
        ($this->last)();

        return true;
    }
}
