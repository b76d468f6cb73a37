<?php

/** Prints the request as PHP sees it. tests/suite/http.rs requests it. */

declare(strict_types=1);

switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
    case '/echo':
        $body = file_get_contents('php://input');
        echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['CONTENT_LENGTH'] ?? 'none', ' ';
        echo strlen($body), ' ', strlen($body) < 100 ? $body : md5($body);
        break;
    case '/server':
        header('Content-Type: application/json');
        echo json_encode($_SERVER);
        break;
    case '/parameters':
        // $_SERVER and the environment are built in two ways. Their common entries must be equal
        // and in the same order.
        $isCommon = fn (string $name): bool => !str_starts_with($name, 'SAMOVAR_');
        $own = array_flip(['PHP_SELF', 'REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'argv', 'argc']);
        $server = array_diff_key($_SERVER, $own);
        $environment = array_filter(getenv(), $isCommon, ARRAY_FILTER_USE_KEY);
        echo $server === $environment ? 'same' : json_encode([$server, $environment]);
        echo ' ', $_SERVER['HTTPS'] ?? 'off', ' ', count(preg_grep('/^HTTP_X_/', array_keys($_SERVER)));
        break;
    case '/chunked':
        while (ob_get_level()) {
            ob_end_clean();
        }
        foreach (['a', 'b', 'c'] as $piece) {
            echo str_repeat($piece, 100_000);
            flush();
        }
        break;
    case '/pieces':
        while (ob_get_level()) {
            ob_end_clean();
        }
        foreach (['one ', 'two ', 'three'] as $piece) {
            echo $piece;
            flush();
        }
        break;
    case '/live':
        // Sends each received piece immediately.
        while (ob_get_level()) {
            ob_end_clean();
        }
        $input = fopen('php://input', 'r');
        while (($piece = fread($input, 8192)) !== '' && $piece !== false) {
            echo $piece;
            flush();
        }
        break;
    case '/wait':
        while (!file_exists($_GET['file'])) {
            usleep(2000);
            clearstatcache();
        }
        echo 'waited';
        break;
    case '/log':
        error_log('logged by the script');
        echo $_SERVER['REQUEST_ID'];
        break;
    case '/own-id':
        header('X-Request-Id: theirs');
        echo $_SERVER['REQUEST_ID'];
        break;
    case '/work':
        $text = str_repeat('work', 300_000);
        for ($i = 0; $i < 5; $i++) {
            $text .= md5($text);
        }
        echo 'worked ', strlen($text);
        break;
    case '/status':
        http_response_code((int) $_GET['code']);
        echo 'body';
        break;
    default:
        echo 'target ', $_SERVER['REQUEST_URI'];
}
