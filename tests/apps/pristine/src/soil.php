<?php

declare(strict_types=1);

namespace Pristine;

/** Changes the state that $name specifies ("all": everything), and prints the new state. */
function soil(Container $container, string $name): void
{
    $soils = soils($container);
    if ($name === 'all') {
        // Without the file wrapper, no class could be loaded for the rest.
        unset($soils['file wrapper']);
        foreach ($soils as $one => $soil) {
            try {
                $soil();
            } catch (\Throwable $thrown) {
                echo "$one: ", $thrown->getMessage(), "\n";
            }
        }
    } elseif (isset($soils[$name])) {
        $soils[$name]();
    } else {
        lost($name);

        return;
    }
    show(report($container));
}

/** @return array<string, callable> */
function soils(Container $container): array
{
    return of_settings() + of_handlers() + of_engine() + of_container($container) + of_files();
}

/** @return array<string, callable> */
function of_settings(): array
{
    return [
        'ini' => static function (): void {
            foreach (['precision' => '3', 'memory_limit' => '60M', 'display_errors' => '0', 'session.gc_divisor' => '77',
                'pcre.backtrack_limit' => '99', 'default_charset' => 'latin1', 'serialize_precision' => '5',
                'user_agent' => 'dirt', 'intl.default_locale' => 'tr_TR', 'zend.assertions' => '0'] as $key => $value) {
                ini_set($key, $value);
            }
        },
        'ini restored' => static fn () => ini_restore('precision'),
        'time limit' => static fn () => set_time_limit(77),
        'error_reporting' => static fn () => error_reporting(0),
        'include_path' => static fn () => set_include_path('/dirt'),
        'locale' => static fn () => setlocale(LC_ALL, 'C'),
        'timezone' => static fn () => date_default_timezone_set('Asia/Tokyo'),
        'encoding' => static function (): void {
            mb_internal_encoding('UTF-8');
            mb_substitute_character('none');
            mb_language('ja');
            mb_detect_order(['UTF-8', 'SJIS']);
            mb_regex_encoding('SJIS');
        },
        'libxml' => static function (): void {
            libxml_use_internal_errors(true);
            (new \DOMDocument())->loadXML('<tea><broken>');
        },
        'libxml shown' => static fn () => libxml_use_internal_errors(false),
        'umask' => static fn () => umask(0),
        'cwd' => static fn () => chdir('/'),
        'environment' => static function (): void {
            putenv('DIRT=1');
            putenv('BOOTED=no');
            $_SERVER['DIRT'] = $_ENV['DIRT'] = 1;
        },
        'environment removed' => static fn () => putenv('BOOTED'),
        'abort' => static fn () => ignore_user_abort(false),
        'context' => static fn () => stream_context_set_default(['http' => ['header' => 'X-Dirt: 1', 'method' => 'POST']]),
        'intl' => static fn () => \Locale::setDefault('tr_TR'),
        'gc' => static fn () => gc_disable(),
        'assert' => static fn () => @assert_options(ASSERT_ACTIVE, 0),
        'random' => static function (): void {
            mt_srand(42);
            srand(42);
        },
    ];
}

/** @return array<string, callable> */
function of_handlers(): array
{
    return [
        'error handler' => static fn () => set_error_handler(static fn () => true),
        'error handler, many' => static fn () => array_map(static fn () => set_error_handler('strlen'), range(1, 50)),
        'error handler, none' => static fn () => restore_error_handler(),
        'exception handler' => static fn () => set_exception_handler(static fn () => true),
        'exception handler, none' => static fn () => restore_exception_handler(),
        'autoloader' => static fn () => spl_autoload_register(static fn () => null, true, true),
        'autoloader, none' => static fn () => array_map(spl_autoload_unregister(...), spl_autoload_functions()),
        'shutdown function' => static fn () => register_shutdown_function(static fn () => print("-- dirt's\n")),
        'tick function' => static fn () => register_tick_function(static fn () => null),
        'header callback' => static fn () => header_register_callback(static fn () => header('X-Dirt: callback')),
        'headers' => static function (): void {
            header('X-Dirt: 1');
            header('X-Boot: dirt');
            header_remove('Cache-Control');
            setcookie('dirt', '1');
            http_response_code(404);
        },
        'headers removed' => static fn () => header_remove(),
        'buffers' => static fn () => array_map(static fn () => ob_start(), range(1, 20)),
        'buffer callback' => static fn () => ob_start(static fn (string $text) => strtoupper($text)),
        'buffer of boot ended' => static fn () => ob_end_clean(),
        'output flushed' => static function (): void {
            echo "coffee\n";
            ob_flush();
            flush();
        },
        'rewriting' => static fn () => output_add_rewrite_var('dirt', '1'),
        'wrapper' => static function (): void {
            stream_wrapper_register('dirt', TeaStream::class);
            stream_wrapper_unregister('http');
            echo file_get_contents('dirt://milk'), "\n";
        },
        'wrapper of boot' => static fn () => stream_wrapper_unregister('tea'),
        'file wrapper' => static function (): void {
            stream_wrapper_unregister('file');
            stream_wrapper_register('file', TeaStream::class);
            echo file_get_contents('/tea'), "\n";
        },
        'filter' => static function (): void {
            stream_filter_register('dirt', \php_user_filter::class);
        },
        'last errors' => static function (): void {
            set_error_handler(null);
            @trigger_error('dirt');
            json_decode('{');
            @preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar');
        },
        'session' => static function (): void {
            session_start();
            $_SESSION['dirt'] = 1;
            session_destroy();
            session_id('');
        },
        'session settings' => static function (): void {
            session_name('DIRT');
            session_set_cookie_params(77, '/dirt');
            session_cache_limiter('public');
        },
        'session without start' => static fn () => $_SESSION = ['dirt' => 1],
        'session handler' => static fn () => session_set_save_handler(new class extends \SessionHandler {
        }),
        'superglobals' => static fn () => $_GET['dirt'] = $_POST['dirt'] = $_COOKIE['dirt'] = $_REQUEST['dirt']
            = $_FILES['dirt'] = 1,
        'strtok' => static fn () => strtok('a/b/c', '/'),
    ];
}

/** @return array<string, callable> */
function of_engine(): array
{
    return [
        'globals' => static function (): void {
            $GLOBALS['dirt'] = range(1, 1000);
            $GLOBALS['tea']['cups'] = 77;
            $GLOBALS['itself'] = 'dirt';
            unset($GLOBALS['container']);
        },
        'constants' => static fn () => \define('DIRT', 1),
        'function' => static fn () => eval('namespace Pristine; function dirt() { static $calls; return ++$calls; } dirt();'),
        'class' => static fn () => eval('namespace Pristine; class Dirt extends Pot { public static $dirt = 1; }'),
        'class alias' => static fn () => class_alias(Pot::class, 'Pristine\Kettle'),
        'class, late' => static fn () => print((new Late\Guest())->greet('dirt') . "\n"),
        'include' => static function (): void {
            var_dump(include \dirname(__DIR__) . '/late/extra.php');
            echo Late\extra(), Late\EXTRA, "\n";
        },
        'interned strings' => static function (): void {
            for ($n = 0; $n < 500; $n++) {
                eval("\$dirt_$n = 'dirt string $n';");
            }
        },
        'cycles' => static function (): void {
            for ($n = 0; $n < 20_000; $n++) {
                $object = new \stdClass();
                $object->itself = $object;
            }
        },
        'memory' => static function (): void {
            $GLOBALS['dirt'] = str_repeat('dirt', 4 << 20);
            $GLOBALS['more'] = range(1, 200_000);
        },
        'regular expressions' => static function (): void {
            for ($n = 0; $n < 5000; $n++) {
                preg_match("/dirt{$n}(\d+)/", "dirt{$n}77");
            }
        },
        'enum' => static fn () => print(Kind::from('black')->name . Kind::BEST->name . "\n"),
        'reflection' => static fn () => (new \ReflectionClass(Container::class))->setStaticPropertyValue('counter', 77),
    ];
}

/** @return array<string, callable> */
function of_container(Container $container): array
{
    return [
        'statics' => static function (): void {
            Container::$counter++;
            Container::$registry['dirt'] = new Pot('dirt');
            Container::calls();
            Pot::$brewed = 77;
            TeaStream::$opened = 77;
        },
        'list' => static function () use ($container): void {
            $container->list[] = 'dirt';
            unset($container->list[0]);
        },
        'closure' => static fn () => ($container->closure)() && $container->closure = null,
        'generator' => static fn () => $container->numbers->next(),
        'generator, ended' => static function () use ($container): void {
            try {
                $container->numbers->throw(new \RuntimeException('dirt'));
            } catch (\RuntimeException) {
            }
        },
        'iterator' => static fn () => $container->iterator->next(),
        'weak' => static fn () => $container->key = new \stdClass(),
        'storage' => static fn () => $container->storage->detach($container->key),
        'fixed' => static fn () => $container->fixed->setSize(300),
        'queue' => static fn () => $container->queue->extract(),
        'fiber' => static fn () => $container->fiber->resume(),
        'fiber, ended' => static function () use ($container): void {
            try {
                $container->fiber->throw(new \RuntimeException('dirt'));
            } catch (\RuntimeException) {
            }
        },
        'date' => static fn () => $container->date->modify('+77 days'),
        'document' => static fn () => $container->document->documentElement->appendChild(
            $container->document->createElement('dirt'),
        ),
        'database' => static fn () => $container->database->exec("INSERT INTO guests VALUES ('dirt', 77)"),
        'database, dropped' => static fn () => $container->database->exec('DROP TABLE guests; CREATE TABLE guests (name, cups)'),
        'transaction' => static function () use ($container): void {
            $container->database->beginTransaction();
            $container->database->exec('DELETE FROM guests');
        },
        'sqlite function' => static fn () => $container->database->sqliteCreateFunction('dirt', static fn () => 77),
        'formatter' => static fn () => $container->formatter->setAttribute(\NumberFormatter::FRACTION_DIGITS, 7),
        'memory stream' => static function () use ($container): void {
            fwrite($container->memory, 'dirt');
            ftruncate($container->memory, 8);
        },
        'memory stream, closed and reopened' => static function () use ($container): void {
            fclose($container->memory);
            $container->memory = fopen('php://memory', 'w+');
        },
        'curl' => static fn () => curl_setopt($container->curl, CURLOPT_URL, 'http://dirt.invalid/'),
        'curl, refused' => static function () use ($container): void {
            curl_setopt_array($container->curl, [CURLOPT_URL => 'http://127.0.0.1:1/', CURLOPT_RETURNTRANSFER => true]);
            var_dump(curl_exec($container->curl), curl_errno($container->curl));
        },
    ];
}

/**
 * State in the kernel, and on the disk until the end of the request.
 *
 * @return array<string, callable>
 */
function of_files(): array
{
    return [
        'open files' => static function (): void {
            for ($n = 0; $n < 100; $n++) {
                $GLOBALS['files'][] = fopen(__FILE__, 'r');
            }
        },
        'a temporary file' => static function (): void {
            $GLOBALS['file'] = tmpfile();
            fwrite($GLOBALS['file'], 'dirt');
        },
        'a file of its own' => static function (): void {
            $file = tempnam(sys_get_temp_dir(), 'pristine-');
            file_put_contents($file, 'dirt');
            printf("%o %s\n", fileperms($file), file_get_contents($file));
            unlink($file);
        },
        'a locked file' => static function (): void {
            $GLOBALS['lock'] = fopen(sys_get_temp_dir() . '/pristine-lock-' . getmypid(), 'c');
            var_dump(flock($GLOBALS['lock'], LOCK_EX));
            unlink(sys_get_temp_dir() . '/pristine-lock-' . getmypid());
        },
        'sockets' => static function (): void {
            $GLOBALS['pair'] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            $GLOBALS['server'] = stream_socket_server('tcp://127.0.0.1:0');
        },
        'a directory' => static fn () => $GLOBALS['directory'] = opendir('/'),
        'a command' => static fn () => print(shell_exec('echo milk')),
        'a process that was waited for' => static function (): void {
            $process = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
            fwrite($pipes[0], "milk\n");
            fclose($pipes[0]);
            echo stream_get_contents($pipes[1]);
            var_dump(proc_close($process));
        },
        'stat cache' => static fn () => array_map(is_dir(...), glob('/usr/*')),
        'sqlite file' => static function (): void {
            $GLOBALS['sqlite'] = new \PDO('sqlite:');
            $GLOBALS['sqlite']->exec('CREATE TABLE dirt (n INT); INSERT INTO dirt VALUES (1)');
        },
    ];
}
