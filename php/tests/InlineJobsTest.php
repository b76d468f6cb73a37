<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

use PHPUnit\Framework\TestCase;
use Samovar\Runtime\InlineJobs;

/** Jobs without a server: the tests run on the command line. */
final class InlineJobsTest extends TestCase
{
    private const SCRIPT = <<<'PHP'
        <?php
        // A second load would be a fatal error.
        function loadedOnce(): void
        {
        }
        Samovar\consume(static function (Samovar\Job ...$jobs): void {
            foreach ($jobs as $job) {
                $GLOBALS['ran'][] = [$job->id(), $job->queue(), $job->attempt(), $job->key(), $job->payload()];
                match ($job->payload()) {
                    'throw' => throw new LogicException('no'),
                    'fail' => $job->fail('bad'),
                    'retry' => $job->attempt() < 3 ? $job->retry() : null,
                    'release' => count($GLOBALS['ran']) < 3 ? $job->release() : null,
                    'always' => $job->release(),
                    default => null,
                };
            }
        });
        PHP;

    private string $script = '';

    protected function setUp(): void
    {
        $GLOBALS['ran'] = [];
        if ($this->script === '') {
            $name = 'loaded' . bin2hex(random_bytes(8));
            $this->script = sys_get_temp_dir() . "/$name.php";
            file_put_contents($this->script, str_replace('loadedOnce', $name, self::SCRIPT));
        }
        InlineJobs::handlers(['emails' => $this->script]);
    }

    protected function tearDown(): void
    {
        InlineJobs::handlers([]);
        unlink($this->script);
    }

    public function testJobsRunAtOnceWithTheirPayload(): void
    {
        $queue = \Samovar\queue('emails');
        $id = $queue->push(['to' => 1.0], delay: 60, key: 'k');
        $ids = $queue->pushMany([1, 'b' => null]);
        self::assertSame([$id + 1, $id + 2], $ids);
        $expected = [[$id, 'emails', 1, 'k', ['to' => 1.0]], [$id + 1, 'emails', 1, null, 1]];
        self::assertSame([...$expected, [$id + 2, 'emails', 1, null, null]], $GLOBALS['ran']);
        self::assertSame(['ready' => 0, 'delayed' => 0, 'running' => 0], $queue->depth());
    }

    public function testSingleJobsHaveTheirOwnOptions(): void
    {
        $options = ['b' => ['key' => 'k', 'delay' => 9.0, 'attempts' => 2]];
        $queue = \Samovar\queue('emails');
        self::assertCount(2, $queue->pushMany(['a' => 1, 'b' => 2], options: $options));
        self::assertSame([null, 'k'], array_column($GLOBALS['ran'], 3));
    }

    /**
     * @dataProvider failures
     */
    #[\PHPUnit\Framework\Attributes\DataProvider('failures')]
    public function testFailureOrItsRetries(string $payload, int $runs, ?string $message): void
    {
        $thrown = null;
        try {
            \Samovar\queue('emails')->push($payload, attempts: 3);
        } catch (\Exception $thrown) {
        }
        self::assertCount($runs, $GLOBALS['ran']);
        self::assertSame($message === null, $thrown === null);
        self::assertStringContainsString($message ?? '', (string) $thrown?->getMessage());
    }

    /** @return list<array{string, int, ?string}> */
    public static function failures(): array
    {
        return [
            ['throw', 3, 'no'],
            ['fail', 1, 'bad'],
            ['retry', 3, null],
            ['release', 3, null],
            ['always', 100, 'was released 100 times'],
        ];
    }

    public function testJobsForTheTimeAfterTheResponseRunAtItsEnd(): void
    {
        $queue = \Samovar\queue('emails');
        self::assertNull($queue->push(1, afterResponse: true));
        self::assertSame([], $queue->pushMany([2, 3], afterResponse: true));
        self::assertSame([], $GLOBALS['ran']);
        \Samovar\Runtime\InlineJobs::finish();
        self::assertSame([1, 2, 3], array_column($GLOBALS['ran'], 4));
        \Samovar\Runtime\InlineJobs::finish();
        self::assertCount(3, $GLOBALS['ran']);
    }

    public function testObjectIsRefused(): void
    {
        $this->expectException(\TypeError::class);
        \Samovar\queue('emails')->push(['a' => [new \stdClass()]]);
    }

    public function testQueueWithoutHandlerSaysWhatToDo(): void
    {
        $this->expectExceptionMessage('hint: name its handler');
        \Samovar\queue('other')->push(1);
    }

    public function testConsumeOutsideAHandlerThrows(): void
    {
        $this->expectException(\Error::class);
        \Samovar\consume(static fn () => null);
    }
}
