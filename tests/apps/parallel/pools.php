<?php

declare(strict_types=1);

/* Tests of Samovar\Pool. */

function pooled(Samovar\Pool $pool, string $what): mixed
{
    $backend = fn (PDO $db) => $db->query('SELECT pg_backend_pid() FROM pg_sleep(0.02)')->fetchColumn();

    return match ($what) {
        'many' => [
            array_count_values(Samovar\parallel(array_fill(0, 9, fn () => $pool->use($backend)))),
            $pool->stats(),
        ],
        'one' => [$pool->use($backend), $pool->stats()],
        'thrown' => [
            caught(fn () => $pool->use(fn () => throw new DomainException('bad'))),
            $pool->stats(),
        ],
        'cancelled' => [cancelled($pool), $pool->stats()],
        'uses' => uses(),
        'wait' => waits(),
        'checked' => checked(),
        'dead' => dead($pool, $backend),
        'wrong' => [
            caught(fn () => new Samovar\Pool(fn () => 1, 0)),
            caught(fn () => (new Samovar\Pool(fn () => 1))->use(fn () => 1)),
            caught(fn () => (new Samovar\Pool(fn () => throw new LogicException('none')))->use(fn () => 1)),
        ],
    };
}

function cancelled(Samovar\Pool $pool): string
{
    $task = Samovar\async(fn () => $pool->use(fn (PDO $db) => $db->query('SELECT pg_sleep(1)')));
    $task->cancel();

    return caught(fn () => $task->await())[0];
}

function uses(): array
{
    $pool = new Samovar\Pool(fn () => new ArrayObject(), maxUses: 3);
    for ($i = 0; $i < 7; $i++) {
        $pool->use(fn (ArrayObject $object) => $object->append($i));
    }

    return [$pool->use(fn (ArrayObject $object) => count($object)), $pool->stats()];
}

function waits(): array
{
    $pool = new Samovar\Pool(fn () => Samovar\delay(0.01) ?? new ArrayObject(), size: 1, wait: 0.05);
    $slow = Samovar\async(fn () => $pool->use(fn () => Samovar\delay(0.3)));

    return [caught(fn () => $pool->use(fn () => 1))[0], $slow->await(), $pool->use(fn () => 'free'), $pool->stats()];
}

function checked(): array
{
    $good = true;
    $pool = new Samovar\Pool(fn () => new ArrayObject(), check: function (ArrayObject $o) use (&$good) {
        return $good ?: throw new Exception('dead');
    });
    $id = fn () => $pool->use(fn (ArrayObject $o) => spl_object_id($o));
    [$first, $second] = [$id(), $id()];
    $good = false;
    $id();
    $short = new Samovar\Pool(fn () => new ArrayObject(), idle: 0);
    $short->use(fn () => 1);
    $short->use(fn () => 1);

    return [$first === $second, $pool->stats()['made'], $short->stats()['made']];
}

function dead(Samovar\Pool $pool, callable $backend): array
{
    $pid = (int) $pool->use($backend);
    connect_pgsql()->query("SELECT pg_terminate_backend($pid)");
    usleep(1_050_000);

    return [$pool->use($backend) !== $pid, $pool->stats()['idle']];
}
