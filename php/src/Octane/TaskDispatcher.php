<?php

declare(strict_types=1);

namespace Samovar\Runtime\Octane;

use Laravel\Octane\Contracts\DispatchesTasks;

/** Throws an error, because there are no task workers. */
final class TaskDispatcher implements DispatchesTasks
{
    /**
     * @param array<array-key, callable(): mixed> $tasks
     *
     * @throws NotAvailable
     */
    public function resolve(array $tasks, int $waitMilliseconds = 3000): array
    {
        throw NotAvailable::tasks();
    }

    /**
     * @param array<array-key, callable(): mixed> $tasks
     *
     * @throws NotAvailable
     */
    public function dispatch(array $tasks): void
    {
        throw NotAvailable::tasks();
    }
}
