<?php

declare(strict_types=1);

namespace Connections;

/** The extension redis. */
final class RedisServer implements Connection
{
    use Descendants;

    private \Redis $redis;
    private readonly string $place;

    public function __construct(private readonly string $database)
    {
        $this->place = getenv('DATABASE_HOST');
        $this->redis = new \Redis();
        $this->redis->connect($this->place);
    }

    public function boot(string $boot): void
    {
        if ($boot === 'rich') {
            $this->redis->select(1);
            $this->redis->client('setname', 'boot');
        }
    }

    public function restore(): void
    {
        $redis = new \Redis();
        $redis->connect($this->place);
        $redis->flushAll();
        $redis->close();
    }

    public function error(\Throwable $e): string
    {
        return $e->getMessage();
    }

    /** A method of the extension. */
    public function call(string $method, array $arguments): mixed
    {
        $this->redis->clearLastError();
        $result = $this->redis->$method(...$arguments);

        return [self::comparable($result), $this->redis->getLastError()];
    }

    /** The result without values that differ between two connections or servers. */
    private static function comparable(mixed $result): mixed
    {
        return match (true) {
            is_object($result) => 'object',
            // A line of MONITOR begins with the time and the address of the server.
            is_string($result) => preg_replace('/^(\+?)\d+\.\d+ \[(\d+) [^\]]+\]/', '$1monitor [$2]', $result),
            // The response to HELLO, possibly to an earlier one, contains the number of the connection.
            is_array($result) && ($result[0] ?? null) === 'server' => 'hello',
            is_array($result) && isset($result['server'], $result['id']) => 'hello',
            is_array($result) => array_map(self::comparable(...), $result),
            default => $result,
        };
    }

    /** A command as the server reads it. */
    public function raw(string $command, array $arguments): mixed
    {
        return $this->call('rawCommand', [$command, ...$arguments]);
    }

    /** The server's data of the connection. */
    public function client(): array
    {
        preg_match_all('/(name|db|sub|psub|ssub|multi|flags|redir|resp|user)=(\S*)/',
            (string) $this->redis->rawCommand('CLIENT', 'INFO'), $found);

        return array_combine($found[1], $found[2]);
    }

    /** Limits the wait for the server's response. */
    public function timeout(float $seconds): bool
    {
        return $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $seconds);
    }

    public function subscribe(string $command, string $channel): string
    {
        $this->timeout(0.02);
        $this->redis->$command([$channel], static fn () => null);

        return 'subscribed';
    }

    public function look(string $boot): array
    {
        return [
            ['client', []],
            ['raw', ['CLIENT', ['TRACKINGINFO']]],
            ['call', ['set', ['look', 'bob']]],
            ['call', ['multi', []]],
            ['call', ['get', ['look']]],
            ['call', ['exec', []]],
            ['call', ['get', ['look']]],
            ['raw', ['EVAL', ["return redis.call('get', 'look')", '0']]],
            ['raw', ['OBJECT', ['FREQ', 'none']]],
            ['call', ['del', ['look']]],
        ];
    }
}
