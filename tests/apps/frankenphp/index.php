<?php

// A worker script with one page for each test of tests/suite/frankenphp.rs.

declare(strict_types=1);

register_shutdown_function(static function (): void {
    error_log('the worker script ends');
});

$boot = $_SERVER;
$between = [];

/** Counts for as long as the worker's memory lives. */
function visits(): int
{
    static $visits = 0;

    return ++$visits;
}

final class Dirt
{
    /** @var list<string> */
    public static array $left = [];
}

$handler = static function () use ($boot, &$between) {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    switch ($path) {
        case '/':
            echo visits(), ' ', getmypid(), ' ', memory_get_usage();
            break;
        case '/globals':
            header('Content-Type: application/json');
            echo json_encode([
                'get' => $_GET,
                'post' => $_POST,
                'cookie' => $_COOKIE,
                'files' => array_map(static fn (array $file): string => $file['name'], $_FILES),
                'request' => $_REQUEST,
                'input' => file_get_contents('php://input'),
                'method' => $_SERVER['REQUEST_METHOD'],
                'dirt' => $_SERVER['HTTP_X_DIRT'] ?? null,
                'worker' => $_SERVER['FRANKENPHP_WORKER'] ?? null,
                'boot' => [
                    $boot['FRANKENPHP_WORKER'] ?? null,
                    isset($boot['REQUEST_URI']),
                    basename($boot['SCRIPT_FILENAME']),
                ],
                'between' => array_splice($between, 0),
                'status' => http_response_code(),
                'abort' => ignore_user_abort(),
            ]);
            break;
        case '/headers':
            header('X-One: 1');
            header('X-Two: a');
            header('X-Two: b', false);
            header('Content-Type: application/json');
            echo json_encode([
                'asked' => frankenphp_request_headers(),
                'same' => frankenphp_request_headers() === apache_request_headers()
                    && frankenphp_request_headers() === getallheaders(),
                'answered' => frankenphp_response_headers(),
                'alias' => frankenphp_response_headers() === apache_response_headers(),
            ]);
            break;
        case '/send':
            header('Link: </style.css>; rel=preload');
            $early = headers_send(103);
            $before = headers_sent();
            $sent = headers_send(202);
            echo json_encode([$early, $before, $sent, headers_sent(), headers_send(404)]);
            break;
        case '/hints':
            $told = [];
            for ($i = 0; $i < (int) ($_GET['times'] ?? 1); ++$i) {
                header("Link: </style$i.css>; rel=preload", false);
                $told[] = headers_send((int) ($_GET['status'] ?? 103));
            }
            usleep(1000 * (int) ($_GET['ms'] ?? 0));
            while (isset($_GET['until']) && !file_exists($_GET['until'])) {
                usleep(1000);
                clearstatcache();
            }
            if (isset($_GET['early'])) {
                echo 'early ';
                ob_flush();
                flush();
                echo headers_send(103), ' ';
                echo 'done';
                break;
            }
            header_remove('Link');
            header('X-Told: ' . implode(',', $told));
            echo str_repeat('x', (int) ($_GET['bytes'] ?? 0)), 'done';
            break;
        case '/finish':
            echo 'answered';
            $done = [frankenphp_finish_request(), frankenphp_finish_request()];
            echo 'not this';
            error_log('finished: ' . json_encode($done));
            break;
        case '/exit':
            echo 'before';
            exit(3);
        case '/throw':
            throw new LogicException('thrown in the handler');
        case '/throw-late':
            echo 'before';
            flush();
            throw new LogicException('thrown too late');
        case '/fatal':
            eval('function visits() {}');
            break;
        case '/memory':
            $text = 'x';
            while (true) {
                $text .= $text;
            }
        case '/return':
            echo 'echoed';

            return new ArrayObject();
        case '/nest':
            try {
                frankenphp_handle_request(static fn () => null);
            } catch (RuntimeException $refused) {
                echo $refused->getMessage();
            }
            break;
        case '/dirty':
            Dirt::$left[] = $_GET['with'];
            ini_set('precision', '5');
            setlocale(LC_ALL, 'C.UTF-8');
            putenv('DIRT=1');
            header('X-Dirt: 1');
            set_error_handler(static fn (): bool => true);
            session_start();
            $_SESSION['dirt'] = 1;
            echo count(Dirt::$left);
            break;
        case '/clean':
            echo json_encode([
                'statics' => Dirt::$left,
                'session' => $_SESSION ?? null,
                'precision' => ini_get('precision'),
                'env' => getenv('DIRT'),
                'worker' => getenv('FRANKENPHP_WORKER'),
                'headers' => headers_list(),
            ]);
            break;
        case '/log':
            frankenphp_log('plain message');
            frankenphp_log('for debugging', FRANKENPHP_LOG_LEVEL_DEBUG, ['n' => 1]);
            frankenphp_log("memory\nis high", FRANKENPHP_LOG_LEVEL_WARN, ['used' => 12, 'of' => ['a' => 1.5]]);
            frankenphp_log('broken', level: FRANKENPHP_LOG_LEVEL_ERROR, context: ["\xff" => null]);
            echo 'logged';
            break;
        case '/endless':
            while (!connection_aborted()) {
                echo str_repeat('.', 65536);
                flush();
            }
            error_log('outlived its client');
            break;
        case '/break':
            $between[] = 'break';
            break;
        case '/stray':
            $between[] = 'stray';
            break;
        default:
            http_response_code(404);
    }
};

echo 'no one reads what the boot puts out';
while (frankenphp_handle_request($handler)) {
    if ($between === ['break']) {
        break;
    }
    if ($between === ['stray']) {
        header('X-Stray: 1');
        echo 'stray output between requests';
        $between[] = $_SERVER['REQUEST_URI'];
        $between[] = $_SESSION ?? null;
    }
}
