<?php

/** Each visit of Ann changes the state of her connection to Redis. */

declare(strict_types=1);

$call = static fn (string $method, mixed ...$arguments): array => ['call', [$method, $arguments]];
$raw = static fn (string $command, string ...$arguments): array => ['raw', [$command, $arguments]];
$ann = static fn (array ...$operations): array => ['ann' => $operations];
$rich = static fn (array ...$operations): array => ['boot' => 'rich', 'ann' => $operations];

return [
    'select' => $ann($call('select', 2)),
    'select, raw' => $ann($raw('SELECT', '2')),
    'select, mixed case' => $ann($raw('sElEcT', '2')),
    'select in a transaction' => $ann($call('multi'), $call('select', 2), $call('exec')),
    'select in a pipeline' => $ann($call('pipeline'), $call('select', 2), $call('exec')),
    'select of another database than that of the boot' => $rich($call('select', 0)),
    'select, then exit' => $ann($call('select', 2), ['end', ['exit']]),
    'select, then exception' => $ann($call('select', 2), ['end', ['exception']]),
    'watch' => $ann($call('watch', 'look')),
    'watch, raw' => $ann($raw('WATCH', 'look')),
    'watch of several keys' => $ann($call('watch', ['other', 'look'])),
    'multi' => $ann($call('multi'), $call('set', 'secret', 'ann')),
    'multi, raw' => $ann($raw('MULTI')),
    'multi, raw, with a queued command' => $ann($raw('MULTI'), $raw('SET', 'secret', 'ann')),
    'multi, failed' => $ann($raw('MULTI'), $raw('NONSENSE')),
    'name' => $ann($call('client', 'setname', 'ann')),
    'name, raw' => $ann($raw('CLIENT', 'SETNAME', 'ann')),
    'name of the boot removed' => $rich($raw('CLIENT', 'SETNAME', '')),
    'subscribe' => ['hidden' => true] + $ann(['subscribe', ['subscribe', 'news']]),
    'psubscribe' => ['hidden' => true] + $ann(['subscribe', ['psubscribe', 'n*']]),
    'subscribe, raw' => $ann($raw('SUBSCRIBE', 'news')),
    'psubscribe, raw' => $ann($raw('PSUBSCRIBE', 'n*')),
    'ssubscribe, raw' => $ann($raw('SSUBSCRIBE', 'news')),
    'monitor' => $ann($raw('MONITOR')),
    'protocol' => $ann($raw('HELLO', '3')),
    'protocol and name' => $ann($raw('HELLO', '2', 'SETNAME', 'ann')),
    'tracking' => $ann($raw('CLIENT', 'TRACKING', 'ON')),
    'replies off' => ['hidden' => true] + $ann(['timeout', [0.02]], $raw('CLIENT', 'REPLY', 'SKIP')),
    'no eviction' => $ann($raw('CLIENT', 'NO-EVICT', 'ON')),
    'reset' => $rich($raw('RESET')),
    'quit' => ['hidden' => true] + $ann($raw('QUIT')),
    'read-only' => ['hidden' => true] + $ann($raw('READONLY')),
    'debugger of scripts' => ['hidden' => true] + $ann($raw('SCRIPT', 'DEBUG', 'SYNC')),
    'select in a grandchild' => ['hidden' => true, 'bob' => [['await', []]]] + $ann(
        ['daemon', [$call('select', 2)]],
    ),
    'user' => $ann(
        $raw('ACL', 'SETUSER', 'ann', 'on', 'nopass', '+@all', '~*', '&*'),
        $raw('AUTH', 'ann', 'x'),
    ),
];
