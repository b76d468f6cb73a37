<?php

/* Everything that PHP knows about its request, as JSON. What differs by design is left out: ports, times, the
 * server's own name and the process's environment. */

declare(strict_types=1);

$own = ['REMOTE_PORT', 'SERVER_PORT', 'REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'SERVER_SOFTWARE', 'FCGI_ROLE', 'USER',
    'HOME', 'PATH', 'PWD', 'REQUEST_ID', 'SERVER_NAME'];
$server = array_diff_key($_SERVER, array_flip($own));
ksort($server);
$files = $_FILES;
array_walk_recursive($files, function (&$value, $key) {
    if (is_string($value) && str_starts_with($value, ini_get('upload_tmp_dir') . '/')) {
        $value = is_uploaded_file($value) ? 'uploaded: ' . md5_file($value) : 'not uploaded';
    }
});
echo json_encode([
    'get' => $_GET,
    'post' => $_POST,
    'cookie' => $_COOKIE,
    'request' => $_REQUEST,
    'files' => $files,
    'server' => $server,
    'input' => substr(file_get_contents('php://input'), 0, 4000),
    'headers' => getallheaders(),
    'folder' => getcwd(),
    'getenv' => [getenv('REQUEST_METHOD'), getenv('HTTP_HOST'), getenv('NO_SUCH')],
    'filter' => [filter_input(INPUT_SERVER, 'REQUEST_METHOD'), filter_input(INPUT_GET, 'a'),
        filter_input(INPUT_COOKIE, 'a'), filter_input(INPUT_POST, 'a'), filter_has_var(INPUT_SERVER, 'QUERY_STRING')],
    'argv' => $argv ?? null,
    'headers_list' => headers_list(),
], JSON_PRETTY_PRINT | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE), "\n";
