<?php

/** A readonly property that the first request initializes. */

declare(strict_types=1);

namespace Isolation\Items;

final class Guest
{
    public readonly string $name;

    public function is(string $name): void
    {
        $this->name = $name;
    }

    public function isKnown(): bool
    {
        return isset($this->name);
    }
}

return [
    'boot' => static fn () => new Guest(),
    'leak' => static fn (Guest $guest) => $guest->is('Ann'),
    'look' => static fn (Guest $guest) => $guest->isKnown(),
    'resident' => 'kept',
];
