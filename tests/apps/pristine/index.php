<?php

/**
 * An application without a framework. The code above the checkpoint builds a container with every
 * kind of state. The code below reports the state, changes it and ends in every way.
 * tests/suite/response_isolation/script.rs requests it. In php-fpm the whole file runs for each
 * request.
 */

declare(strict_types=1);

namespace Pristine;

require __DIR__ . '/src/Container.php';
require __DIR__ . '/src/boot.php';
require __DIR__ . '/src/report.php';
require __DIR__ . '/src/soil.php';
require __DIR__ . '/src/endings.php';

$container = boot();

if (\function_exists('Samovar\checkpoint')) {
    \Samovar\checkpoint();
}

answer($container);

/** Calls the page of a path: /report, /soil/NAME, /end/NAME … */
function answer(Container $container): void
{
    $path = explode('?', $_SERVER['REQUEST_URI'])[0];
    [$page, $name] = explode('/', trim($path, '/'), 2) + ['', ''];
    match ($page) {
        '' => print("a cup of tea\n"),
        'report' => show(report($container)),
        'names' => show(['soil' => array_keys(soils($container)), 'end' => array_keys(endings())]),
        'soil' => soil($container, urldecode($name)),
        'end' => endings()[$name](),
        'self' => show(self_report()),
        'input' => show(input()),
        'session' => show(session()),
        'late' => print((new Late\Guest())->greet($name) . "\n"),
        'sqlite' => show($container->database->query('SELECT name, cups FROM guests ORDER BY name')->fetchAll()),
        default => lost($path),
    };
}

function show(array $what): void
{
    header('Content-Type: application/json');
    echo json_encode($what, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
}

function lost(string $path): void
{
    http_response_code(404);
    header('X-Lost: ' . rawurlencode($path));
    echo "There is no ", htmlspecialchars($path), "\n";
}

/** Returns all input of this request. */
function input(): array
{
    $files = [];
    foreach ($_FILES as $field => $file) {
        $files[$field] = [$file['name'], $file['size'], $file['error']];
        if ($file['error'] === UPLOAD_ERR_OK) {
            $files[$field][] = md5_file($file['tmp_name']);
            // Half of the uploads stay unmoved, so that the end of the request removes them.
            if ($file['size'] % 2 === 0) {
                move_uploaded_file($file['tmp_name'], $file['tmp_name'] . '.kept');
                unlink($file['tmp_name'] . '.kept');
            }
        }
    }
    $server = array_intersect_key($_SERVER, array_flip([
        'REQUEST_METHOD', 'REQUEST_URI', 'QUERY_STRING', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'HTTP_X_TEA',
        'PHP_AUTH_USER', 'PHP_AUTH_PW', 'HTTP_COOKIE', 'SERVER_PROTOCOL', 'PHP_SELF',
    ]));
    ksort($server);

    return [
        'get' => $_GET,
        'post' => $_POST,
        'cookie' => $_COOKIE,
        'files' => $files,
        'request' => $_REQUEST,
        'server' => $server,
        'body' => md5((string) file_get_contents('php://input')),
        'clock' => abs(time() - $_SERVER['REQUEST_TIME']) <= 2 && abs(microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']) < 2,
    ];
}

/** A session with a counter. Its data must be the visitor's own. */
function session(): array
{
    session_start();
    $_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
    $_SESSION['last'] = $_GET['tea'] ?? $_SESSION['last'] ?? 'none';

    return ['visits' => $_SESSION['visits'], 'last' => $_SESSION['last'], 'name' => session_name()];
}
