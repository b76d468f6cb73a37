<?php

/** All that PHP knows about a request, one fact per line. */

declare(strict_types=1);

// Bytes that are not UTF-8 stay visible, also in keys.
$text = static fn (string $s): string => preg_match('//u', $s) ? $s : 'hex:' . bin2hex($s);
$show = static function (mixed $value) use (&$show, $text): mixed {
    if (is_string($value)) {
        $shown = $text($value);
        return strlen($shown) > 3000 ? strlen($value) . ' bytes, md5 ' . md5($value) : $shown;
    }
    if (!is_array($value)) {
        return $value;
    }
    // The output distinguishes a list from an array whose keys are in another order.
    $shown = [];
    foreach ($value as $key => $below) {
        $shown[is_int($key) ? "int $key" : 'string ' . $text($key)] = $show($below);
    }
    return $shown;
};

// The paths of uploads are random, so only their properties are compared.
$files = $_FILES;
$facts = static function (mixed $path) use (&$facts): mixed {
    if (is_array($path)) {
        return array_map($facts, $path);
    }
    if ($path === '') {
        return '';
    }
    return [
        'uploaded' => is_uploaded_file($path),
        'in upload_tmp_dir' => dirname($path) === ini_get('upload_tmp_dir'),
        'name' => preg_replace('/^php([a-z0-9]{13})?[A-Za-z0-9]{6}$/', 'php??????', basename($path)),
        'mode' => decoct(fileperms($path)),
        'bytes' => filesize($path),
        'md5' => md5_file($path),
    ];
};
foreach ($files as $field => $file) {
    if (isset($file['tmp_name'])) {
        $files[$field]['tmp_name'] = $facts($file['tmp_name']);
    }
}

$server = $_SERVER;
ksort($server);
$headers = getallheaders();
ksort($headers);

header('Content-Type: application/json');
echo json_encode($show([
    'get' => $_GET,
    'post' => $_POST,
    'cookie' => $_COOKIE,
    'files' => $files,
    'request' => $_REQUEST,
    'env' => $_ENV,
    'session' => isset($_SESSION),
    'input' => file_get_contents('php://input'),
    'headers' => $headers,
    'server' => $server,
    'filter' => [
        filter_input(INPUT_GET, 'a'),
        filter_input(INPUT_POST, 'a'),
        filter_input(INPUT_COOKIE, 'a'),
        filter_input(INPUT_SERVER, 'REQUEST_METHOD'),
        filter_input(INPUT_SERVER, 'HTTP_X_A'),
        filter_has_var(INPUT_GET, 'b'),
    ],
    'argv' => $argv ?? null,
    'cwd' => getcwd(),
]), JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE), "\n";
