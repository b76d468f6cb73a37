<?php

declare(strict_types=1);

namespace Samovar\Bench\Bootstrap;

use Closure;

/** Creates each service once, together with the services it needs. */
final class Container
{
    /** @var array<class-string, object> */
    private array $services = [];

    /** @param array<class-string, Closure(self): object> $definitions */
    public function __construct(private readonly array $definitions)
    {
    }

    /**
     * @template T of object
     * @param class-string<T> $id
     * @return T
     */
    public function get(string $id): object
    {
        return $this->services[$id] ??= ($this->definitions[$id])($this);
    }

    /** Creates all defined services, as in an application whose services listen to each other's
     * events. */
    public function makeAll(): void
    {
        foreach ($this->definitions as $id => $_) {
            $this->get($id);
        }
    }
}
