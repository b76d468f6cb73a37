<?php

declare(strict_types=1);

namespace Isolation;

/**
 * The items. Each tries to leak one thing from a request into the next.
 *
 * An item is a file that returns an array:
 *
 * - boot: ?callable, run once above the checkpoint; its result is passed to the other two
 * - leak: callable, tries to leave state
 * - look: callable, returns that state; its value must be encodable as JSON
 * - resident: 'kept' if the leak is real without rollback, or 'reset' if the state is reset there
 *   too
 * - refork: true: a rollback cannot undo it, and a new process must replace the worker; null:
 *   either
 * - needs: extensions, functions and rights
 */
final class Suite
{
    private const DEFAULTS = ['boot' => null, 'refork' => false, 'needs' => []];

    /** @var array<string, array<string, mixed>> */
    private array $items = [];

    /** @var array<string, mixed> result of each item's boot */
    private array $states = [];

    /** @var list<string> Items that this PHP lacks something for. */
    private array $missing = [];

    private int $requests = 0;

    public static function load(): self
    {
        $suite = new self();
        foreach (glob(\dirname(__DIR__) . '/items/*/*.php') as $file) {
            $name = basename(\dirname($file)) . '/' . basename($file, '.php');
            $suite->add($name, (static fn (): array => require $file)() + self::DEFAULTS);
        }

        return $suite;
    }

    /** @param array<string, mixed> $item */
    private function add(string $name, array $item): void
    {
        if (array_filter($item['needs'], self::lacks(...)) !== []) {
            $this->missing[] = $name;

            return;
        }
        $this->items[$name] = $item;
        $this->states[$name] = $item['boot'] === null ? null : $item['boot']();
    }

    private static function lacks(string $need): bool
    {
        return match (true) {
            $need === 'root' => posix_geteuid() !== 0,
            $need === 'room to be nicer' => \function_exists('pcntl_getpriority') && pcntl_getpriority() > 14,
            $need === 'opcache' => ini_get('opcache.enable') !== '1',
            $need === 'new privileges' => (bool) preg_grep('/^NoNewPrivs:\s+1/', file('/proc/self/status')),
            $need === 'namespaces' => !self::mayUnshare(),
            str_ends_with($need, '()') => !\function_exists(substr($need, 0, -2)),
            default => !\extension_loaded($need),
        };
    }

    /** A container may forbid unshare(). */
    private static function mayUnshare(): bool
    {
        exec('unshare --ipc true 2>/dev/null', $output, $status);

        return $status === 0;
    }

    public function answer(): void
    {
        $this->requests++;
        try {
            $value = $this->value();
        } catch (\Throwable $thrown) {
            $value = ['thrown' => (string) $thrown];
        }
        echo json_encode(['pid' => getmypid(), 'request' => $this->requests, 'value' => $value], JSON_THROW_ON_ERROR);
    }

    private function value(): mixed
    {
        return match (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
            '/items' => array_map(self::traits(...), $this->items),
            '/missing' => $this->missing,
            '/look' => $this->look($_GET['item']),
            '/leak' => $this->leak($_GET['item']),
            '/uploads' => self::uploads(),
            '/all' => array_combine(array_keys($this->items), array_map($this->look(...), array_keys($this->items))),
        };
    }

    /**
     * @param array<string, mixed> $item
     * @return array<string, mixed>
     */
    private static function traits(array $item): array
    {
        return ['resident' => $item['resident'], 'refork' => $item['refork']];
    }

    /** @return array<string, mixed> */
    private static function uploads(): array
    {
        return [
            'sent' => array_column($_FILES, 'tmp_name'),
            'is_uploaded' => is_uploaded_file($_GET['file'] ?? $_FILES['file']['tmp_name']),
            'folder' => glob(ini_get('upload_tmp_dir') . '/*'),
        ];
    }

    private function look(string $name): mixed
    {
        return $this->items[$name]['look']($this->states[$name]);
    }

    private function leak(string $name): mixed
    {
        $this->items[$name]['leak']($this->states[$name]);

        return $this->look($name);
    }
}

/** Returns the server's own folder, where items may write. */
function folder(): string
{
    return getenv('ISOLATION_FOLDER');
}

/** Returns a subfolder of it. boot may run twice. */
function subfolder(string $name): string
{
    $folder = folder() . "/$name";
    if (!is_dir($folder)) {
        mkdir($folder);
    }

    return $folder;
}

/** Creates a file with five short lines for an item to read. */
function lines(string $name): string
{
    $file = folder() . "/$name";
    file_put_contents($file, "one\ntwo\nthree\nfour\nfive\n");

    return $file;
}

/** Returns the number of child processes, including zombies. */
function children(): int
{
    $pids = file_get_contents('/proc/self/task/' . getmypid() . '/children');

    return \count(preg_split('/ /', $pids, -1, PREG_SPLIT_NO_EMPTY));
}
