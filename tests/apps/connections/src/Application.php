<?php

declare(strict_types=1);

namespace Connections;

/** Runs the operations of a visit on the connection of the boot. */
final class Application
{
    /** Placeholder in operations and results for the name of the database. */
    private const DATABASE = '{database}';

    private const CASES = [
        'pgsql' => 'postgresql',
        'pdo_pgsql' => 'postgresql',
        'mysqli' => 'mysql',
        'pdo_mysql' => 'mysql',
        'pdo_mysql_emulated' => 'mysql',
        'redis' => 'redis',
        'pdo_sqlite' => 'sqlite',
    ];

    private readonly Connection $connection;

    /** @var array{resource, resource} A pair of sockets: the use of one ends the worker. */
    private readonly array $pair;

    public function __construct(
        private readonly string $driver,
        private readonly string $boot,
        private readonly string $database,
    ) {
        $this->connection = match ($driver) {
            'pgsql' => new Pgsql($database),
            'pdo_pgsql' => new PdoPgsql($database),
            'mysqli' => new Mysql($database),
            'pdo_mysql' => new PdoMysql($database, false),
            'pdo_mysql_emulated' => new PdoMysql($database, true),
            'redis' => new RedisServer($database),
            'pdo_sqlite' => new Lite($database),
        };
        $this->connection->boot($boot);
        $this->pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    }

    public function respond(): void
    {
        header('Content-Type: application/json');
        header('X-Process: ' . getmypid());
        $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
        switch ($path) {
            case '/':
                $this->run(json_decode(file_get_contents('php://input'), true));
                break;
            case '/case':
                $this->run($this->operations($_GET['name'], $_GET['visitor']));
                break;
            case '/operations':
                $this->write($this->operations($_GET['name'], $_GET['visitor']));
                break;
            case '/cases':
                $this->write(array_map($this->traits(...), $this->cases()));
                break;
            case '/draw':
                $this->write($this->draw((int) $_GET['seed']));
                break;
            case '/restore':
                $this->connection->restore();
                $this->write('restored');
                break;
            case '/leave':
                fwrite($this->pair[0], 'used');
                $this->write('left');
                break;
        }
    }

    /** @param list<array{string, mixed}> $operations */
    private function run(array $operations): void
    {
        $results = [];
        foreach ($operations as [$verb, $arguments]) {
            if ($verb === 'end') {
                $this->write($results);
                $this->end(...$arguments);
            }
            try {
                $results[] = $this->connection->$verb(...$this->named($arguments));
            } catch (\Throwable $e) {
                $results[] = 'error ' . $this->connection->error($e);
            }
        }
        $this->write($results);
    }

    private function write(mixed $value): void
    {
        $flags = JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR;
        echo str_replace($this->database, self::DATABASE, json_encode($value, $flags));
    }

    private function end(string $how): never
    {
        if ($how === 'exception') {
            throw new \Exception('not caught');
        }
        if ($how === 'fatal') {
            trigger_error('fatal', E_USER_ERROR);
        }
        exit;
    }

    /** @param list<mixed> $arguments */
    private function named(array $arguments): array
    {
        array_walk_recursive($arguments, function (mixed &$argument): void {
            if (is_string($argument)) {
                $argument = strtr($argument, [
                    self::DATABASE => $this->database,
                    '{echo}' => $this->driver === 'pdo_pgsql' ? 'pdo_stmt_00000002' : 'echo',
                ]);
            }
        });

        return $arguments;
    }

    /** @return array<string, array<string, mixed>> */
    private function cases(): array
    {
        $cases = require __DIR__ . '/../cases/' . self::CASES[$this->driver] . '.php';
        $is_ours = fn ($case) => in_array($this->driver, $case['drivers'] ?? [$this->driver], true);

        return array_filter($cases, $is_ours);
    }

    /** @return array{boot: string, bob: list<array{string, mixed}>, hidden: bool} */
    private function traits(array $case): array
    {
        return [
            'boot' => $case['boot'] ?? 'plain',
            'bob' => $case['bob'] ?? [],
            // Whether a second visitor without a rollback would not see it.
            'hidden' => ($case['hidden'] ?? false) || in_array('end', array_column($case['ann'], 0), true),
        ];
    }

    /** @return list<array{string, mixed}> */
    private function operations(string $name, string $who): array
    {
        $case = $this->cases()[$name];
        $bob = [...$case['bob'] ?? [], ...$this->connection->look($this->boot)];

        return match ($who) {
            'ann' => $case['ann'],
            'bob' => $bob,
            'both' => [...$case['ann'], ...$bob],
        };
    }

    /** @return list<list<array{string, mixed}>> Visits; only the last visitor looks at everything. */
    private function draw(int $seed): array
    {
        $draw = new Draw($seed);
        $grammar = match (self::CASES[$this->driver]) {
            'postgresql' => new PgsqlGrammar($draw, $this->driver, $this->boot === 'rich'),
            'mysql' => new MysqlGrammar($draw, $this->driver, $this->boot === 'rich'),
            'redis' => new RedisGrammar($draw),
            'sqlite' => new LiteGrammar($draw, $this->boot === 'rich'),
        };
        $visits = [];
        for ($i = $draw->number(1, 4); $i > 0; $i--) {
            $visits[] = $grammar->visit();
        }
        $has_process = in_array('daemon', array_column($visits[count($visits) - 1], 0), true);
        $await = $has_process ? [['await', []]] : [];
        $visits[] = [...$await, ...$this->connection->look($this->boot)];

        return $visits;
    }
}
