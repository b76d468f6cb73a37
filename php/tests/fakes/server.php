<?php

declare(strict_types=1);

/* Fakes of Samovar's functions. They record calls, and handle requests that the test has queued. */

namespace Samovar\Runtime\Tests\Fakes {
    final class Server
    {
        /** @var list<array<string, mixed>> $_SERVER of each request that serve() answers */
        public static array $requests = [];
        /** @var list<string> */
        public static array $calls = [];
        /** @var list<mixed> return values of the handler */
        public static array $answers = [];

        public static function reset(array ...$requests): void
        {
            [self::$requests, self::$calls, self::$answers] = [$requests, [], []];
        }
    }
}

namespace Samovar {
    use Samovar\Runtime\Tests\Fakes\Server;

    function serve(callable $handler, int $rollbackEvery = 0): void
    {
        Server::$calls[] = "serve $rollbackEvery";
        $server = $_SERVER;
        foreach (Server::$requests as $request) {
            $_SERVER = $request + ['REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/'];
            Server::$answers[] = $handler(Request::fromGlobals());
        }
        $_SERVER = $server;
    }

    function checkpoint(?callable $resume = null): void
    {
        Server::$calls[] = 'checkpoint';
    }

    function kept(mixed $stream): bool
    {
        Server::$calls[] = 'kept';

        return true;
    }

    function warmup(callable $work): void
    {
        Server::$calls[] = 'warmup';
    }
}
