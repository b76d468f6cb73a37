<?php

declare(strict_types=1);

namespace App;

/** A to-do list in the session. */
final class Todos
{
    /** @return list<array{id: int, title: string}> */
    public function all(): array
    {
        return array_values($_SESSION['todos'] ?? []);
    }

    /** @return array{id: int, title: string} */
    public function add(string $title): array
    {
        $id = $_SESSION['last_id'] = ($_SESSION['last_id'] ?? 0) + 1;

        return $_SESSION['todos'][$id] = ['id' => $id, 'title' => $title];
    }

    /** @return array{id: int, title: string}|null */
    public function get(int $id): ?array
    {
        return $_SESSION['todos'][$id] ?? null;
    }

    public function remove(int $id): void
    {
        unset($_SESSION['todos'][$id]);
    }
}
