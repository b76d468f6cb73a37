<?php

declare(strict_types=1);

namespace Connections;

/** A connection of the boot. Its other public methods are operations. */
interface Connection
{
    /** Prepares statements; a `rich` boot also fills the session with state. */
    public function boot(string $boot): void;

    /** Restores the permanent data, through another connection. */
    public function restore(): void;

    /** The part of an error that does not depend on the process. */
    public function error(\Throwable $e): string;

    /** Operations that show the whole state of the session.
     *
     * @return list<array{string, mixed}> */
    public function look(string $boot): array;
}
