<?php

declare(strict_types=1);

/*
 * The documented rules of the functions, one function for each. tests/suite/parallel/rules.rs
 * compares the results.
 */

function caught(callable $work): array
{
    try {
        return ['returned', $work()];
    } catch (Throwable $e) {
        return [get_class($e), $e->getMessage()];
    }
}

const RULES = [
    'keys' => 'rule_keys',
    'exception' => 'rule_exception',
    'finally' => 'rule_finally',
    'timeout' => 'rule_timeout',
    'first' => 'rule_first',
    'channel' => 'rule_channel',
    'await' => 'rule_await',
    'fibers' => 'rule_fibers',
    'buffers' => 'rule_buffers',
    'callbacks' => 'rule_callbacks',
    'one connection' => 'rule_one_connection',
    'cut' => 'rule_cut',
    'limits' => 'rule_limits',
    'refused' => 'rule_refused',
    'overlap' => 'rule_overlap',
    'socket timeouts' => 'rule_socket_timeouts',
    'limits of clients' => 'rule_limits_of_clients',
    'debugger' => 'rule_debugger',
    'loop' => 'rule_loop',
    'processes' => 'rule_processes',
    'large' => 'rule_large',
    'left' => 'rule_left',
    'deep' => 'rule_deep',
    'signal' => 'rule_signal',
    'connections' => 'rule_connections',
];

function rule_keys(): array
{
    $all = Samovar\parallel(['b' => fn () => 1, 7 => fn () => null, 'a' => 'php_sapi_name']);

    return [
        [array_keys($all), array_values($all)],
        Samovar\parallel([]),
        caught(fn () => Samovar\parallel(['no' => 'no such function'])),
        caught(fn () => Samovar\parallel([], -1.0)),
        caught(fn () => Samovar\first([])),
        caught(fn () => Samovar\delay(NAN)),
    ];
}

function rule_exception(): array
{
    $seen = new ArrayObject(); // A function of one expression has copies of arrays.
    $outcome = caught(fn () => Samovar\parallel([
        'slow' => function () use ($seen) {
            try {
                sleep(60);
                $seen[] = 'slow went on';
            } catch (Throwable) {
                $seen[] = 'slow caught something';
            } finally {
                $seen[] = 'slow ended';
            }
        },
        'bad' => function () {
            usleep(1000);
            throw new DomainException('bad');
        },
        'waits' => fn () => Samovar\delay(60),
        'nested' => fn () => Samovar\parallel([function () use ($seen) {
            try {
                sleep(60);
            } finally {
                $seen[] = 'nested ended';
            }
        }]),
    ]));
    $said = (array) $seen;
    sort($said);

    return [$outcome, $said];
}

function rule_finally(): array
{
    // Code in `finally` may still wait, on connections without a pending operation.
    $seen = [];
    $redis = connect_redis();
    $task = Samovar\async(function () use (&$seen, $redis) {
        try {
            sleep(60);
        } finally {
            $seen[] = $redis->ping() ? 'pong' : 'no';
            usleep(1000);
            $seen[] = caught(fn () => Samovar\async(fn () => 1))[0];
        }
    });
    $task->cancel();
    $outcome = caught(fn () => $task->await());

    return [$outcome[0], $seen, $task->isDone()];
}

function rule_timeout(): array
{
    $from = hrtime(true);
    $outcome = caught(fn () => Samovar\parallel([fn () => 1, fn () => sleep(60)], 0.05));
    $task = Samovar\async(fn () => usleep(200_000) ?? 'done');
    $late = caught(fn () => $task->await(0.01));

    return [$outcome[0], $late[0], $task->await(), (hrtime(true) - $from) / 1e9 < 30];
}

function rule_first(): array
{
    return [
        Samovar\first([fn () => sleep(60), fn () => usleep(1000) ?? 'fast', fn () => throw new Exception('bad')]),
        caught(fn () => Samovar\first([fn () => throw new Exception('one'), fn () => throw new LogicException('two')])),
        caught(fn () => Samovar\first([fn () => sleep(60)], 0.01))[0],
        Samovar\first([fn () => null]),
    ];
}

function rule_channel(): array
{
    $numbers = new Samovar\Channel();
    $squares = new Samovar\Channel(2);
    $order = [];
    $worker = function () use ($numbers, $squares): void {
        while (($n = $numbers->receive()) !== null) {
            Samovar\delay(0.001);
            $squares->send($n * $n);
        }
    };
    $tasks = [
        function () use ($numbers) {
            for ($i = 1; $i <= 50; $i++) {
                $numbers->send($i);
            }
            $numbers->close();
        },
        fn () => Samovar\parallel([$worker, $worker, $worker]) && $squares->close(),
        function () use ($squares, &$order) {
            while (($n = $squares->receive()) !== null) {
                $order[] = $n;
            }
        },
    ];
    Samovar\parallel($tasks);
    $empty = new Samovar\Channel();

    return [
        array_sum($order),
        count($order),
        caught(fn () => $numbers->send(1)),
        caught(fn () => $empty->send(1, 0.01))[0],
        caught(fn () => $empty->receive(0.01))[0],
        caught(fn () => $empty->receive()),
        caught(fn () => $empty->send(null))[0],
        caught(fn () => new Samovar\Channel(-1))[0],
    ];
}

function rule_await(): array
{
    $task = Samovar\async(function () use (&$task) {
        Samovar\delay(0);

        return caught(fn () => $task->await());
    });
    $failing = Samovar\async(fn () => throw new Exception('again'));
    $a = Samovar\async(function () use (&$b) {
        Samovar\delay(0);

        return $b->await();
    });
    $b = Samovar\async(fn () => $a->await());
    $deadlock = caught(fn () => $a->await());
    $a->cancel();

    return [
        $task->await(),
        $task->await()[0],
        caught(fn () => $failing->await()),
        caught(fn () => $failing->await()),
        $deadlock,
    ];
}

function rule_fibers(): array
{
    $log = [];
    $run = function (string $name) use (&$log): array {
        $inner = new Fiber(function () use ($name, &$log): string {
            $log[] = "$name begins";
            usleep(5000);
            $got = Fiber::suspend("$name suspends");
            usleep(5000);
            $deeper = new Fiber(fn () => usleep(2000) ?? Fiber::suspend(1));
            $deeper->start();
            $deeper->resume();

            return "$name got $got";
        });
        $said = $inner->start();
        usleep(1000);
        $inner->resume('a value');

        return [$said, $inner->getReturn(), $inner->isTerminated()];
    };
    $both = Samovar\parallel(['a' => fn () => $run('a'), 'b' => fn () => $run('b')]);
    // A fiber outside tasks can also wait for tasks.
    $outside = new Fiber(function () {
        $from = Fiber::suspend('ready');

        return Samovar\parallel([fn () => usleep(1000) ?? $from, fn () => usleep(1000) ?? 2]);
    });
    $outside->start();
    $outside->resume(1);

    return [$both, $log, $outside->getReturn(), caught(fn () => Samovar\parallel([fn () => Fiber::suspend()]))[0]];
}

function rule_buffers(): array
{
    ob_start();
    echo 'outer ';
    $own = Samovar\parallel(array_map(fn (string $name) => function () use ($name): string {
        ob_start();
        echo "$name 1 ";
        usleep(2000);
        ob_start(fn (string $text) => strtoupper($text));
        echo "$name 2 ";
        usleep(2000);
        ob_end_flush();
        echo "$name 3";

        return ob_get_clean();
    }, ['a', 'b', 'c']));
    Samovar\parallel([function () {
        ob_start();
        echo 'left open';
    }]);

    return [$own, ob_get_clean()];
}

function rule_callbacks(): array
{
    $sort = fn (int $sign) => function () use ($sign): array {
        $values = [3, 1, 2, 5, 4];
        usort($values, function (int $a, int $b) use ($sign) {
            usleep(500);

            return $sign * ($a <=> $b);
        });

        return $values;
    };
    $words = fn (string $text) => function () use ($text): array {
        for ($found = [], $word = strtok($text, ' '); $word !== false; $word = strtok(' ')) {
            usleep(500);
            $found[] = preg_replace_callback('/./', fn ($m) => usleep(100) ?? strtoupper($m[0]), $word);
        }

        return $found;
    };
    $silent = fn () => [@trigger_error('quiet'), usleep(1000), error_reporting()];

    return Samovar\parallel([$sort(1), $sort(-1), $words('a bc d'), $words('x yz'), fn () => @$silent()[2], fn () => error_reporting()]);
}

function rule_one_connection(): array
{
    $said = [];
    foreach (['pgsql' => connect_pgsql(), 'mysql' => connect_mysql()] as $name => $db) {
        $sleep = $name === 'pgsql' ? "SELECT 'mine' FROM pg_sleep(0.2)" : "SELECT 'mine', SLEEP(0.2)";
        $said[] = caught(fn () => Samovar\parallel([
            'first' => fn () => $db->query($sleep)->fetchColumn(),
            'second' => fn () => $db->query("SELECT 'yours'")->fetchColumn(),
        ]));
        // No query may get the result of another query.
        $said[] = caught(fn () => $db->query("SELECT 'later'")->fetchColumn())[0];
    }
    $redis = connect_redis();
    $said[] = caught(fn () => Samovar\parallel([
        'first' => fn () => $redis->rawCommand('BLPOP', 'nothing', '0.2'),
        'second' => fn () => $redis->get('key'),
    ]));

    return $said;
}

function rule_cut(): array
{
    $db = connect_pgsql();
    $task = Samovar\async(fn () => $db->query("SELECT 'late' FROM pg_sleep(0.2)")->fetchColumn());
    $task->cancel();

    return [caught(fn () => $task->await())[0], caught(fn () => $db->query("SELECT 'next'")->fetchColumn())[0]];
}

function rule_limits(): array
{
    $many = array_fill(0, 20, fn () => Samovar\delay(0.01) ?? 1);

    return [
        caught(fn () => Samovar\parallel($many)),
        caught(fn () => array_sum(Samovar\parallel(array_slice($many, 0, 16)))),
    ];
}

final class Destroyed
{
    public static array $said = [];

    public function __destruct()
    {
        self::$said = caught(fn () => Samovar\delay(0.001));
        usleep(1000);
    }
}

function rule_refused(): array
{
    Samovar\parallel([function () {
        $object = new Destroyed();
        unset($object);
    }]);
    ob_start(fn (string $text) => caught(fn () => Samovar\delay(0.001))[0] . $text);
    echo '!';
    $callback = [];
    ob_start();
    ob_end_clean();

    return [
        PHP_VERSION_ID >= 80400 ? 'Error' : Destroyed::$said[0],
        caught(fn () => clone Samovar\async(fn () => 1))[0],
        caught(fn () => serialize(Samovar\async(fn () => 1)))[0],
        caught(fn () => new Samovar\Task())[0],
        substr((string) ob_get_clean(), 0, 1),
        caught(fn () => Samovar\parallel([fn () => Samovar\checkpoint()]))[0],
        caught(fn () => Samovar\parallel([fn () => Samovar\serve(fn () => 1)]))[0],
    ];
}

function rule_overlap(): array
{
    // The code outside tasks waits for its own query, and tasks continue meanwhile.
    $from = hrtime(true);
    $task = Samovar\async(fn () => job_pdo_pgsql(1));
    $own = job_pdo_mysql(2);
    $wall = (hrtime(true) - $from) / 1e9;

    return [$own, $task->isDone() || $task->await() !== '', $task->await(), $wall];
}

function rule_socket_timeouts(): array
{
    $silent = stream_socket_server('tcp://127.0.0.1:0');
    $address = stream_socket_get_name($silent, false);
    [$host, $port] = explode(':', $address);

    return Samovar\parallel([
        'stream' => function () use ($address): bool {
            $stream = stream_socket_client("tcp://$address");
            stream_set_timeout($stream, 0, 50_000);
            fread($stream, 1);

            return stream_get_meta_data($stream)['timed_out'];
        },
        'socket' => function () use ($host, $port): array {
            $socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
            socket_set_option($socket, SOL_SOCKET, SO_RCVTIMEO, ['sec' => 0, 'usec' => 50_000]);
            socket_connect($socket, $host, (int) $port);

            return [@socket_read($socket, 1), socket_last_error($socket) === SOCKET_EAGAIN];
        },
        'curl' => function () use ($address): int {
            $curl = curl_init("http://$address/");
            curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT_MS => 50]);
            curl_exec($curl);

            return curl_errno($curl);
        },
        'redis' => function () use ($host, $port): string {
            $redis = new Redis();
            $redis->connect($host, (int) $port, 1.0, null, 0, 0.05);

            return caught(fn () => $redis->get('key'))[0];
        },
        'refused' => fn () => @stream_socket_client('tcp://127.0.0.1:1', $e, $m, 1) ?: $e,
        'nonblocking' => function () use ($address): mixed {
            $stream = stream_socket_client("tcp://$address");
            stream_set_blocking($stream, false);

            return fread($stream, 1);
        },
    ]);
}

/**
 * The result of each client for a peer that does not respond, and the seconds until then: alone,
 * and next to other clients.
 */
function rule_limits_of_clients(): array
{
    [$host, $port] = explode(':', getenv('DEAF'));
    $limited = [
        'read' => function () {
            $my = mysqli_init();
            mysqli_options($my, MYSQLI_OPT_READ_TIMEOUT, 1);
            mysqli_real_connect($my, null, 'root', '', '', 0, getenv('MYSQL'));

            return caught(fn () => $my->query('SELECT SLEEP(20)'))[0] . $my->errno;
        },
        'pgsql' => fn () => caught(fn () => new PDO("pgsql:host=$host;port=$port;dbname=x", 'x', '', [PDO::ATTR_TIMEOUT => 2]))[0],
        'statement' => function () {
            $db = connect_pgsql();
            $db->exec('SET statement_timeout = 500');

            return caught(fn () => $db->query('SELECT pg_sleep(20)'))[0];
        },
        'curl' => function () use ($host, $port) {
            $curl = curl_init("http://$host:$port/");
            curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT_MS => 500]);

            return [curl_exec($curl), curl_errno($curl)];
        },
        'http' => fn () => @file_get_contents("http://$host:$port/", false, stream_context_create(['http' => ['timeout' => 0.5]])),
        'redis' => function () use ($host, $port) {
            $redis = new Redis();
            $redis->connect($host, (int) $port, 0.5, null, 0, 0.5);

            return caught(fn () => $redis->ping())[0];
        },
        'memcached' => function () use ($host, $port) {
            $memcached = new Memcached();
            $memcached->setOptions([Memcached::OPT_POLL_TIMEOUT => 500, Memcached::OPT_SERVER_FAILURE_LIMIT => 1]);
            $memcached->addServer($host, (int) $port);

            return [$memcached->get('key'), $memcached->getResultCode()];
        },
    ];
    $timed = fn (callable $work) => function () use ($work): array {
        $from = hrtime(true);

        return [$work(), (hrtime(true) - $from) / 1e9];
    };
    $timed = array_map($timed, $limited);

    return ['alone' => array_map(fn (callable $work) => $work(), $timed), 'beside' => Samovar\parallel($timed)];
}

function rule_debugger(): bool
{
    return extension_loaded('xdebug');
}

function rule_large(): array
{
    // Larger than any kernel buffer: the writer waits for the reader, in one process.
    $text = str_repeat(sha1('large'), 100_000);
    $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $fifo = sys_get_temp_dir() . '/tasks-' . getmypid() . '.fifo';
    posix_mkfifo($fifo, 0600);
    [$in, $out] = [fopen($fifo, 'r+'), fopen($fifo, 'w')];
    unlink($fifo);
    $read = function ($from, int $len): string {
        for ($all = ''; strlen($all) < $len;) {
            $all .= fread($from, 40_000); // Of a file, PHP waits for all of it.
        }

        return sha1($all);
    };
    $all = Samovar\parallel([
        fn () => fwrite($pair[0], $text),
        fn () => $read($pair[1], strlen($text)),
        fn () => fwrite($out, $text),
        fn () => $read($in, strlen($text)),
    ]);

    return [$all[0] === strlen($text), $all[1] === sha1($text), $all[2] === strlen($text), $all[3] === sha1($text)];
}

function rule_left(): array
{
    // These tasks are not awaited, and end with the request.
    Samovar\async(fn () => connect_pgsql()->query('SELECT pg_sleep(2)'));
    Samovar\async(fn () => ask_curl('http://' . getenv('DEAF') . '/'));
    Samovar\async(fn () => throw new Exception('unheard'));

    return ['left'];
}

function rule_deep(): array
{
    $deep = function (int $n) use (&$deep): int {
        return $n === 0 ? (usleep(1000) ?? 0) : 1 + $deep($n - 1);
    };
    $mapped = fn (int $n) => array_sum(array_map(fn () => array_sum(array_map(fn () => usleep(100) ?? 1, [1, 2])), range(1, $n)));

    return Samovar\parallel([fn () => $deep(20_000), fn () => $deep(20_000), fn () => $mapped(5)]);
}

function rule_signal(): array
{
    $seen = 0;
    pcntl_async_signals(true);
    pcntl_signal(SIGALRM, function () use (&$seen) {
        $seen++;
    });
    pcntl_alarm(1);
    $answer = Samovar\parallel([fn () => Samovar\delay(1.2) ?? 'a', fn () => job_pdo_pgsql(3)]);
    pcntl_signal(SIGALRM, SIG_DFL);
    pcntl_async_signals(false);

    return [$answer, $seen];
}

/** Returns the number of database clients, without this request. */
function rule_connections(): int
{
    $clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";

    return connect_pgsql()->query($clients)->fetchColumn() - 1
        + connect_mysql()->query('SELECT COUNT(*) FROM information_schema.processlist')->fetchColumn() - 1;
}
