<?php

/**
 * A resident application that changes all state that a request can change. tests/suite/hygiene.rs
 * requests it.
 */

declare(strict_types=1);

namespace Hygiene;

// Set during the boot. Every request starts with this value.
ini_set('precision', '7');
ini_set('memory_limit', '48M');
set_time_limit(3);
setlocale(LC_ALL, 'C.UTF-8');
umask(0027);
putenv('BOOTED=yes');
chdir(__DIR__);
session_name('BOOTSESSION');
session_set_cookie_params(['path' => '/boot', 'httponly' => true]);
mb_internal_encoding('ISO-8859-1');
mb_substitute_character(0x2a);
date_default_timezone_set('Europe/Berlin');
libxml_use_internal_errors(true);
libxml_set_external_entity_loader(nothing(...));
stream_context_set_default(['http' => ['user_agent' => 'boot']]);
spl_autoload_extensions('.boot');
assert_options(ASSERT_CALLBACK, 'strlen');
$log = getenv('HYGIENE_LOG');
register_shutdown_function(function () use ($log): void {
    file_put_contents($log, "boot's shutdown function\n", FILE_APPEND);
});
function nothing(): ?string
{
    return null;
}
function bootErrors(int $level, string $message): bool
{
    header('X-Boot-Error: ' . $message);
    return true;
}
function bootExceptions(\Throwable $thrown): void
{
    http_response_code(418);
    echo 'boot handles: ', $thrown->getMessage();
}
set_error_handler(bootErrors(...));
set_exception_handler(bootExceptions(...));

final class Counter
{
    public static int $requests = 0;
}

function nameOf(?callable $handler): string
{
    return $handler === null ? 'none' : (new \ReflectionFunction(\Closure::fromCallable($handler)))->getName();
}

/** Returns all state of earlier requests that a request can see. */
function report(): array
{
    $errors = nameOf(set_error_handler(null));
    restore_error_handler();
    $exceptions = nameOf(set_exception_handler(null));
    restore_exception_handler();
    return [
        'get' => $_GET,
        'post' => $_POST,
        'cookie' => $_COOKIE,
        'files' => $_FILES,
        'request' => $_REQUEST,
        'server' => array_intersect_key($_SERVER, ['HTTP_X_DIRT' => 1, 'DIRT' => 1, 'CONTENT_TYPE' => 1]),
        // The request's own variables, which php-fpm also has in $_ENV, are in 'server'.
        'env' => array_diff_key($_ENV, $_SERVER),
        'session' => $_SESSION ?? 'unset',
        'session_id' => session_id(),
        'session_status' => session_status(),
        'session_name' => session_name(),
        'session_params' => session_get_cookie_params(),
        'headers' => array_values(preg_grep('/dirt/i', headers_list())),
        'status' => http_response_code(),
        'buffers' => ob_get_level(),
        'implicit_flush' => ini_get('implicit_flush'),
        'precision' => ini_get('precision'),
        'serialize_precision' => ini_get('serialize_precision'),
        'memory_limit' => ini_get('memory_limit'),
        'time_limit' => ini_get('max_execution_time'),
        'error_reporting' => error_reporting(),
        'display_errors' => ini_get('display_errors'),
        'include_path' => get_include_path(),
        'timezone' => date_default_timezone_get(),
        'encoding' => mb_internal_encoding(),
        'substitute' => mb_substitute_character(),
        'libxml' => [libxml_use_internal_errors(), count(libxml_get_errors())],
        'loader' => nameOf(libxml_get_external_entity_loader()),
        'context' => stream_context_get_options(stream_context_get_default()),
        'extensions' => spl_autoload_extensions(),
        'assert' => @assert_options(ASSERT_CALLBACK),
        'strtok' => @strtok('/'),
        'last_errors' => [json_last_error(), preg_last_error()],
        'error_handler' => $errors,
        'exception_handler' => $exceptions,
        'locale' => setlocale(LC_ALL, '0'),
        'umask' => umask(),
        'wrappers' => [in_array('glob', stream_get_wrappers(), true), @file_get_contents('data:,tea')],
        'putenv' => [getenv('DIRT'), getenv('BOOTED'), getenv('PATH') !== ''],
        'cwd' => getcwd(),
        'connection' => connection_status(),
        'ignore_user_abort' => ignore_user_abort(),
        'error_get_last' => error_get_last(),
        'input' => strlen(file_get_contents('php://input')),
        'auth' => [$_SERVER['PHP_AUTH_USER'] ?? null, $_SERVER['PHP_AUTH_PW'] ?? null],
    ];
}

/**
 * name => code that leaves state. The first part of the name is the line of the report that must
 * show it.
 */
function dirt(): array
{
    return [
        'get' => fn () => $_GET['dirt'] = 1,
        'post' => fn () => $_POST['dirt'] = 1,
        'cookie' => fn () => $_COOKIE['dirt'] = 1,
        'files' => fn () => $_FILES['dirt'] = ['name' => 'dirt'],
        'request' => fn () => $_REQUEST['dirt'] = 1,
        'server' => fn () => $_SERVER['DIRT'] = 1,
        'env' => fn () => $_ENV['DIRT'] = 1,
        'session:started' => function (): void {
            session_start();
            $_SESSION['dirt'] = 1;
        },
        'session:without start' => fn () => $_SESSION = ['dirt' => 1],
        'session_id' => fn () => session_id('dirt'),
        'session_name' => fn () => session_name('DIRT'),
        'session_params' => fn () => session_set_cookie_params(77, '/dirt'),
        'session_status' => fn () => session_start(),
        'headers' => fn () => header('X-Dirt: 1'),
        'headers:cookie' => fn () => setcookie('dirt', '1'),
        'status' => fn () => http_response_code(404),
        'buffers:one' => fn () => ob_start(),
        'buffers:callback' => fn () => ob_start(fn ($text) => $text . "\n"),
        'buffers:many' => fn () => array_map(fn () => ob_start(), range(1, 20)),
        'precision' => fn () => ini_set('precision', '3'),
        'precision:restored' => fn () => ini_restore('precision'),
        'serialize_precision' => fn () => ini_set('serialize_precision', '3'),
        'memory_limit' => fn () => ini_set('memory_limit', '200M'),
        'time_limit' => fn () => set_time_limit(77),
        'time_limit:ini' => fn () => ini_set('max_execution_time', '78'),
        'error_reporting' => fn () => error_reporting(0),
        'display_errors' => fn () => ini_set('display_errors', '0'),
        'include_path' => fn () => set_include_path('/dirt'),
        'error_handler' => fn () => set_error_handler(fn () => true),
        'error_handler:none' => fn () => restore_error_handler(),
        'exception_handler' => fn () => set_exception_handler(fn () => true),
        'exception_handler:none' => fn () => restore_exception_handler(),
        'timezone' => fn () => date_default_timezone_set('Asia/Tokyo'),
        'encoding' => fn () => mb_internal_encoding('SJIS'),
        'substitute' => fn () => mb_substitute_character('entity'),
        'libxml' => fn () => libxml_use_internal_errors(false),
        'libxml:errors' => fn () => (new \DOMDocument())->loadXML('<tea><broken>'),
        'loader' => fn () => libxml_set_external_entity_loader(null),
        'context' => fn () => stream_context_set_default(['http' => ['user_agent' => 'dirt']]),
        'context:added' => fn () => stream_context_set_default(['ssl' => ['verify_peer' => false]]),
        'extensions' => fn () => spl_autoload_extensions('.dirt'),
        'assert' => fn () => @assert_options(ASSERT_CALLBACK, 'trim'),
        'assert:none' => fn () => @assert_options(ASSERT_CALLBACK, null),
        'strtok' => fn () => strtok('a/b/c', '/'),
        'last_errors' => fn () => json_decode('{') ?? preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar'),
        'locale' => fn () => setlocale(LC_ALL, 'C'),
        'umask' => fn () => umask(0),
        'wrappers:removed' => fn () => stream_wrapper_unregister('glob'),
        'wrappers:replaced' => fn () => stream_wrapper_unregister('data')
            && stream_wrapper_register('data', Counter::class),
        'putenv' => fn () => putenv('DIRT=1'),
        'putenv:over' => fn () => putenv('BOOTED=no'),
        'putenv:removed' => fn () => putenv('BOOTED'),
        'cwd' => fn () => chdir('/'),
        'ignore_user_abort' => fn () => ignore_user_abort(true),
        'error_get_last' => function (): void {
            set_error_handler(null);
            @strpos();
        },
    ];
}

function soil(string $name): void
{
    try {
        dirt()[$name]();
    } catch (\ArgumentCountError) {
        // A notice has the same effect as a silenced warning on PHP 8.
        @trigger_error('dirt');
    }
}

function fill(): never
{
    $all = [];
    // phpcs:ignore
    while (true) {
        $all[] = str_repeat('x', 1 << 20);
    }
}

final class Loud
{
    public function __construct(private string $file)
    {
    }

    public function __destruct()
    {
        file_put_contents($this->file, "destructed\n", FILE_APPEND);
    }
}

function lateWork(string $log): void
{
    file_put_contents($log, "shutdown\n", FILE_APPEND);
    register_shutdown_function(fn () => file_put_contents($log, "nested shutdown\n", FILE_APPEND));
}

function handle(): void
{
    $log = $_GET['log'] ?? '';
    Counter::$requests++;
    $GLOBALS['lives'] = ($GLOBALS['lives'] ?? 0) + 1;
    $path = explode('/', parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH), 3)[1];
    switch ($path) {
        case 'report':
            echo json_encode(report());
            break;
        case 'soil':
            soil($_GET['name']);
            $report = report();
            file_put_contents($log, json_encode($report));
            break;
        case 'names':
            echo json_encode(array_keys(dirt()));
            break;
        case 'counter':
            echo Counter::$requests, ' ', $GLOBALS['lives'];
            break;
        case 'shutdown':
            register_shutdown_function(lateWork(...), $log);
            echo 'main';
            break;
        case 'exit':
            register_shutdown_function(fn () => print ' shutdown');
            ob_start();
            echo 'before';
            exit($_GET['with'] ?? 0);
        case 'throw':
            echo $_GET['before'] ?? '';
            throw new \Exception('thrown');
        case 'throw-unhandled':
            set_exception_handler(null);
            throw new \Exception('nobody handles this');
        case 'throw-late':
            set_exception_handler(null);
            echo 'sent';
            while (ob_get_level()) {
                ob_end_flush();
            }
            flush();
            throw new \Exception('too late');
        case 'fatal':
            set_error_handler(null);
            set_exception_handler(null);
            trigger_error('as fatal as it gets', E_USER_ERROR);
            // No break: not reached.
        case 'memory':
            fill();
        case 'time':
            set_time_limit(1);
            // phpcs:ignore
            while (true) {
            }
        case 'callback':
            header_register_callback(fn () => header('X-Dirt: callback'));
            echo 'called back';
            break;
        case 'upload':
            $file = $_FILES['file']['tmp_name'];
            echo json_encode([$file, is_uploaded_file($file), file_get_contents($file)]);
            break;
        case 'is-uploaded':
            echo json_encode([is_uploaded_file($_GET['file']), file_exists($_GET['file'])]);
            break;
        case 'session':
            session_start();
            $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
            echo $_SESSION['n'];
            break;
        case 'input':
            static $kept = [];
            $kept[] = $stream = fopen('php://input', 'r');
            echo count($kept), ' ', stream_get_contents($stream), ' ';
            echo is_resource($kept[0]) ? 'open' : 'closed';
            break;
        case 'nested':
            try {
                \Samovar\serve(fn () => 'inner');
            } catch (\Error $error) {
                echo get_class($error), ': ', $error->getMessage();
            }
            break;
        case 'warn':
            echo $undefined;
            break;
        case 'destruct':
            $loud = new Loud($log);
            echo 'main';
            break;
        case 'finish':
            echo 'early';
            fastcgi_finish_request();
            file_put_contents($log, 'late');
            break;
        default:
            echo 'at home';
    }
}

$GLOBALS['lives'] = 0;
\Samovar\serve(handle(...));
file_put_contents($log, "after serve\n", FILE_APPEND);
