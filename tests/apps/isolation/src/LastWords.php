<?php

declare(strict_types=1);

namespace Isolation;

/**
 * A session handler that performs an action when the session is written at the end of the request.
 */
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
