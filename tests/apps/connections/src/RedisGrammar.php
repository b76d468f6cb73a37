<?php

declare(strict_types=1);

namespace Connections;

/** Random visits to Redis. */
final class RedisGrammar
{
    private const CALLS = [
        ['set', ['look', 'ann']], ['get', ['look']], ['incr', ['count']], ['del', ['look']], ['rPush', ['list', 'a']],
        ['lRange', ['list', 0, -1]], ['hSet', ['hash', 'a', '1']], ['hGetAll', ['hash']], ['multi', []], ['exec', []],
        ['discard', []], ['pipeline', []], ['select', [2]], ['select', [0]], ['select', [1]], ['watch', ['look']],
        ['unwatch', []], ['client', ['setname', 'ann']], ['echo', ['ann']], ['ping', []], ['rename', ['none', 'b']],
        ['publish', ['news', 'ann']], ['eval', ["return redis.call('get', 'look')"]],
        ['eval', ["return redis.call('select', 2)"]], ['getDel', ['look']], ['mSet', [['look' => 'b', 'c' => 'd']]],
    ];

    private const RAW = [
        ['SELECT', ['2']], ['sElEcT', ['3']], ['MULTI', []], ['EXEC', []], ['DISCARD', []], ['WATCH', ['look']],
        ['CLIENT', ['SETNAME', 'ann']], ['CLIENT', ['NO-EVICT', 'ON']], ['CLIENT', ['TRACKING', 'ON']],
        ['CLIENT', ['TRACKING', 'OFF']], ['RESET', []], ['GET', ['look']], ['SET', ['look', 'eve']], ['NONSENSE', []],
        ['HELLO', ['2', 'SETNAME', 'ann']], ['HELLO', ['3']], ['SUBSCRIBE', ['news']], ['PSUBSCRIBE', ['n*']],
        ['UNSUBSCRIBE', ['news']], ['MONITOR', []], ['EVAL', ["return redis.call('incr', 'count')", '0']],
        ['SORT', ['list', 'ALPHA']], ['OBJECT', ['ENCODING', 'look']], ['DBSIZE', []],
    ];

    /** Whether the former visit has left a process. */
    private bool $awaits = false;

    public function __construct(private readonly Draw $draw)
    {
    }

    /** @return list<array{string, mixed}> */
    public function visit(): array
    {
        $operations = [['timeout', [2.0]]];
        for ($i = $this->draw->number(1, 6); $i > 0; $i--) {
            $operations[] = $this->draw->once(2)
                ? ['call', $this->draw->one(self::CALLS)]
                : ['raw', $this->draw->one(self::RAW)];
        }
        if ($this->draw->once(8)) {
            $operations[] = ['end', [$this->draw->one(['exit', 'exception', 'fatal'])]];
        }
        if ($this->awaits) {
            array_unshift($operations, ['await', []]);
        }
        $this->awaits = $this->draw->once(20);
        if ($this->awaits) {
            // It shares the connection with every later operation of its visit.
            $operations = [...array_filter($operations, static fn ($one) => $one[0] !== 'end'), ['daemon', [['call', ['select', [3]]]]]];
        }

        return $operations;
    }
}
