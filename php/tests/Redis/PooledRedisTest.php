<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Redis;

use PHPUnit\Framework\TestCase;
use Samovar\Runtime\Redis\PooledRedis;

/** Tests which connections the commands use. The server's tests use a real Redis. */
final class PooledRedisTest extends TestCase
{
    private function pooled(): PooledRedis
    {
        $fake = fn (): object => new class () {
            public function get(string $key): string
            {
                return "value of $key";
            }

            public function hScan(string $key, ?int &$iterator, ?string $pattern = null, int $count = 0): array|false
            {
                $iterator = $iterator === null ? 7 : 0;

                return $iterator === 0 ? false : [$key => "$pattern $count"];
            }
        };

        return new PooledRedis($fake, size: 2, maxUses: 3);
    }

    public function testACommandTakesAConnection(): void
    {
        $redis = $this->pooled();
        for ($i = 0; $i < 6; $i++) {
            self::assertSame('value of cup', $redis->get('cup'));
        }
        self::assertSame('value of x', $redis->use(fn (object $one): string => $one->get('x')));
        self::assertSame(['size' => 2, 'idle' => 1, 'used' => 0, 'made' => 3], $redis->stats());
    }

    public function testAWalkGoesOn(): void
    {
        $redis = $this->pooled();
        $iterator = null;
        self::assertSame(['hash' => 'a* 10'], $redis->hScan('hash', $iterator, 'a*', 10));
        self::assertSame(7, $iterator);
        self::assertFalse($redis->hScan('hash', $iterator));
        self::assertSame(0, $iterator);
    }

    /** @dataProvider commandsThatStay */
    public function testWhatWouldStayWithAConnectionIsRefused(string $command): void
    {
        $this->expectException(\BadMethodCallException::class);
        $this->expectExceptionMessage("call $command() within use()");
        $this->pooled()->$command();
    }

    public static function commandsThatStay(): array
    {
        $commands = ['multi', 'MULTI', 'exec', 'pipeline', 'watch', 'select', 'subscribe', 'setOption', 'auth'];

        return array_map(static fn (string $command): array => [$command], $commands);
    }
}
