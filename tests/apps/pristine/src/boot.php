<?php

declare(strict_types=1);

namespace Pristine;

/** Sets everything that a boot can set to a value other than PHP's default. */
function boot(): Container
{
    settings();
    handlers();
    $GLOBALS['tea'] = ['kind' => 'green', 'cups' => 2];
    $GLOBALS['itself'] = &$GLOBALS['tea']['kind'];
    \define('Pristine\BOOTED', 'yes');
    $container = new Container();
    collections($container);
    extensions($container);
    Container::$counter = 7;
    Container::$registry = ['pot' => new Pot('black')];
    Container::calls();

    return $container;
}

function settings(): void
{
    ini_set('precision', '7');
    ini_set('memory_limit', '48M');
    ini_set('session.name', 'TEASESSION');
    ini_set('arg_separator.output', '&amp;');
    set_include_path(get_include_path() . PATH_SEPARATOR . __DIR__);
    setlocale(LC_ALL, 'C.UTF-8');
    date_default_timezone_set('Europe/Vienna');
    mb_internal_encoding('ISO-8859-1');
    mb_substitute_character(0x3f);
    libxml_use_internal_errors(true);
    umask(0027);
    chdir(__DIR__);
    putenv('BOOTED=yes');
    error_reporting(E_ALL & ~E_USER_DEPRECATED);
    ignore_user_abort(true);
    stream_wrapper_register('tea', TeaStream::class);
    stream_context_set_default(['http' => ['header' => 'X-Boot: 1']]);
    header('X-Boot: yes');
    header('Cache-Control: no-store');
}

function handlers(): void
{
    set_error_handler(boot_errors(...));
    set_exception_handler(boot_exceptions(...));
    spl_autoload_register(load(...));
    register_shutdown_function(static function (): void {
        echo "-- boot's shutdown function\n";
    });
    ob_start(static fn (string $text): string => str_replace('coffee', 'tea', $text));
}

function boot_errors(int $level, string $message): bool
{
    if ((error_reporting() & $level) !== 0) {
        echo "boot's handler: $message\n";
    }

    return true;
}

function boot_exceptions(\Throwable $thrown): void
{
    http_response_code(418);
    echo "boot's handler: ", get_class($thrown), ': ', $thrown->getMessage(), "\n";
}

function load(string $class): void
{
    $file = \dirname(__DIR__) . '/late/' . basename(strtr($class, '\\', '/')) . '.php';
    if (str_starts_with($class, 'Pristine\Late\\') && is_file($file)) {
        require $file;
    }
}

function collections(Container $container): void
{
    $container->closure = static function (): int {
        static $calls = 10;

        return ++$calls;
    };
    ($container->closure)();
    $container->numbers = (static function (): \Generator {
        for ($n = 0;; $n++) {
            yield $n;
        }
    })();
    $container->numbers->next();
    $container->iterator = new \ArrayIterator(range(1, 5));
    $container->iterator->seek(2);
    $container->key = new \stdClass();
    $container->weak = new \WeakMap();
    $container->weak[$container->key] = 'kept';
    $container->storage = new \SplObjectStorage();
    $container->storage[$container->key] = 'stored';
    $container->fixed = \SplFixedArray::fromArray([1, 2, 3]);
    $container->queue = new \SplPriorityQueue();
    $container->queue->insert('tea', 2);
    $container->queue->insert('water', 1);
    $container->fiber = new \Fiber(static function (): void {
        for ($n = 1;; $n++) {
            \Fiber::suspend($n);
        }
    });
    $container->fiber->start();
}

/** Creates state in C libraries: in malloc's heap, not in PHP's. */
function extensions(Container $container): void
{
    $container->date = new \DateTime('2020-02-02 12:00');
    $container->document = new \DOMDocument();
    $container->document->loadXML('<tea><cup size="2"/></tea>');
    $container->database = new \PDO('sqlite::memory:');
    $container->database->setAttribute(\PDO::ATTR_DEFAULT_FETCH_MODE, \PDO::FETCH_ASSOC);
    $container->database->exec("CREATE TABLE guests (name TEXT PRIMARY KEY, cups INT)");
    $container->database->exec("INSERT INTO guests VALUES ('Ann', 2), ('Bob', 1)");
    $container->formatter = new \NumberFormatter('de_AT', \NumberFormatter::DECIMAL);
    $container->memory = fopen('php://memory', 'w+');
    fwrite($container->memory, 'green tea');
    fseek($container->memory, 6);
    $container->curl = curl_init('http://localhost/');
    curl_setopt($container->curl, CURLOPT_USERAGENT, 'boot');
}
