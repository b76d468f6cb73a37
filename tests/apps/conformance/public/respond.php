<?php

/** Status, headers and cookies set by a script: ?do=NAME. */

declare(strict_types=1);

$show = static function (mixed $value): void {
    echo json_encode($value, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES), "\n";
};

$cases = [
    // Status.
    'code' => function (): void {
        echo http_response_code((int) $_GET['code']) === true ? 'was unset' : 'was set', "\n";
        echo http_response_code(), "\n";
    },
    'code-only' => fn () => http_response_code((int) $_GET['code']),
    'code-none' => fn () => $show(http_response_code()),
    'code-twice' => function () use ($show): void {
        http_response_code(404);
        $show(http_response_code(410));
    },
    'line' => function () use ($show): void {
        header($_GET['line']);
        $show(http_response_code());
    },
    'line-then-code' => function () use ($show): void {
        header('HTTP/1.1 404 Gone Fishing');
        http_response_code(403);
        $show(http_response_code());
    },
    'code-argument' => function () use ($show): void {
        header('X-A: b', true, 404);
        $show(http_response_code());
    },
    'code-argument-empty' => function () use ($show): void {
        header('', true, 406);
        $show(http_response_code());
    },
    'location' => fn () => header('Location: ' . ($_GET['to'] ?? '/elsewhere?a=b')),
    'location-code' => function (): void {
        http_response_code((int) $_GET['code']);
        header('Location: /elsewhere');
        echo 'see elsewhere';
    },
    'location-argument' => fn () => header('Location: /elsewhere', true, (int) $_GET['code']),
    'location-then-code' => function (): void {
        header('Location: /elsewhere');
        http_response_code(200);
    },
    'location-removed' => function (): void {
        header('Location: /elsewhere');
        header_remove('Location');
        echo http_response_code();
    },
    'authenticate' => function (): void {
        header('WWW-Authenticate: Basic realm="r"');
        echo http_response_code();
    },
    'authenticate-more' => function (): void {
        header('WWW-Authenticate: Basic realm="r"');
        header('WWW-Authenticate: Digest realm="r", nonce="n"', false);
    },

    // Headers.
    'replace' => function () use ($show): void {
        header('X-A: 1');
        header('X-A: 2');
        header('x-a: 3');
        $show(headers_list());
    },
    'append' => function () use ($show): void {
        header('X-A: 1');
        header('X-A: 2', false);
        header('X-B: 3', false);
        header('X-A: 4', false);
        $show(headers_list());
    },
    'append-then-replace' => function () use ($show): void {
        header('X-A: 1');
        header('X-A: 2', false);
        header('X-A: 3');
        $show(headers_list());
    },
    'remove' => function () use ($show): void {
        header('X-A: 1');
        header('X-A: 2', false);
        header('X-B: 3');
        header_remove('x-a');
        header_remove('X-None');
        $show(headers_list());
    },
    'remove-all' => function () use ($show): void {
        header('X-A: 1');
        header('Content-Type: text/plain');
        setcookie('a', 'b');
        header_remove();
        $show(headers_list());
    },
    'list-default' => fn () => $show(headers_list()),
    'list-type' => function () use ($show): void {
        header('Content-Type: text/css');
        $show(headers_list());
    },
    'request-headers' => function () use ($show): void {
        $headers = getallheaders();
        $show($headers === apache_request_headers());
        ksort($headers);
        $show($headers);
    },
    'sent' => function () use ($show): void {
        $show(headers_sent());
        ob_end_flush();
        flush();
        $show(headers_sent($file, $line));
        $show([basename($file), $line]);
    },
    'late' => function (): void {
        echo "early\n";
        ob_end_flush();
        flush();
        header('X-Late: 1');
        http_response_code(500);
        setcookie('late', '1');
        header_remove('X-Powered-By');
    },
    'late-by-size' => function (): void {
        echo str_repeat('.', 5000);
        header('X-Late: 1');
    },
    'newline' => fn () => header("X-A: 1\r\nX-B: 2"),
    'newline-lf' => fn () => header("X-A: 1\nX-B: 2"),
    'nul' => fn () => header("X-A: 1\0X-B: 2"),
    'continued' => fn () => header("X-A: 1\r\n 2"),
    'empty' => fn () => header(''),
    'no-colon' => function () use ($show): void {
        header('nonsense');
        $show(headers_list());
    },
    'no-value' => fn () => header('X-Empty:'),
    'spaces' => fn () => header("X-Spaces: \t a  b \t "),
    'trailing-spaces' => fn () => header("X-Trailing: a   \r\n"),
    'long' => fn () => header('X-Long: ' . str_repeat('abcdefgh', 1000)),
    'many' => function (): void {
        for ($i = 0; $i < 60; $i++) {
            header("X-Many-$i: $i");
        }
    },
    'odd-name' => fn () => header('X_under.score!: 1'),
    'utf8' => fn () => header('X-Utf8: Grüße'),
    'server' => fn () => header('X-Server: ' . $_SERVER['SERVER_PROTOCOL']),
    'validators' => function (): void {
        header('ETag: "abc"');
        header('Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT');
        header('Vary: Accept, Cookie');
        header('Link: </a>; rel=preload', false);
        header('Link: </b>; rel=preload', false);
        header('Cache-Control: max-age=60, private');
        header('Allow: GET, PUT');
        header('Retry-After: 7');
        echo 'the whole page';
    },

    // Types.
    'type' => function (): void {
        header('Content-Type: ' . $_GET['type']);
        echo 'x';
    },
    'type-lower' => function (): void {
        header('content-type: text/plain; charset=iso-8859-1');
        echo 'x';
    },
    'type-none' => function (): void {
        header('Content-Type:');
        echo 'x';
    },
    'type-removed' => function (): void {
        header_remove('Content-Type');
        echo 'x';
    },
    'type-twice' => function () use ($show): void {
        header('Content-Type: text/plain');
        header('Content-Type: text/css', false);
        $show(headers_list());
    },
    'default-charset' => function (): void {
        ini_set('default_charset', $_GET['charset']);
        echo 'x';
    },
    'default-charset-type' => function (): void {
        ini_set('default_charset', 'iso-8859-1');
        header('Content-Type: text/plain');
        echo 'x';
    },
    'default-mimetype' => function (): void {
        ini_set('default_mimetype', 'application/x-thing');
        echo 'x';
    },

    // Lengths and encodings.
    'length' => function (): void {
        header('Content-Length: 5');
        echo 'exact';
    },
    'length-zero' => fn () => header('Content-Length: 0'),
    'length-short' => function (): void {
        header('Content-Length: 3');
        echo 'abcdef';
    },
    'length-flushed' => function (): void {
        header('Content-Length: 6');
        echo 'abc';
        ob_flush();
        flush();
        echo 'def';
    },
    'gzip' => function (): void {
        header('Content-Encoding: gzip');
        header('Vary: Accept-Encoding');
        echo gzencode('compressed by the script', 9);
    },
    'nothing' => fn () => null,

    // Cookies.
    'cookie' => fn () => setcookie('name', $_GET['value'] ?? 'value'),
    'cookie-all' => fn () => setcookie('name', 'v', 2000000000, '/path', 'example.org', true, true),
    'cookie-options' => fn () => setcookie('name', 'v', [
        'expires' => 2000000000, 'path' => '/p', 'domain' => 'd.example',
        'secure' => true, 'httponly' => true, 'samesite' => 'Strict',
    ]),
    'cookie-delete' => fn () => setcookie('name', ''),
    'cookie-raw' => fn () => setrawcookie('raw', 'a%20b+c'),
    'cookie-raw-bad' => fn () => setrawcookie('raw', 'a b;c'),
    'cookie-array' => function (): void {
        setcookie('a[0]', 'x');
        setcookie('a[k]', 'y');
    },
    'cookie-twice' => function (): void {
        setcookie('same', '1');
        setcookie('same', '2');
        header('Set-Cookie: third=3', false);
    },
    'cookie-header-replaces' => function (): void {
        setcookie('a', '1');
        header('Set-Cookie: b=2');
    },
    'cookie-bad-name' => fn () => setcookie('a=b', '1'),
    'cookie-bad-path' => fn () => setcookie('a', '1', 0, '/a;b'),
    'cookie-bad-option' => fn () => setcookie('a', '1', ['nonsense' => 1]),
    'cookie-far' => fn () => setcookie('a', '1', PHP_INT_MAX),
    'cookie-removed' => function (): void {
        setcookie('a', '1');
        setcookie('b', '2');
        header_remove('Set-Cookie');
        setcookie('c', '3');
    },

    // Callbacks.
    'callback' => function (): void {
        header_register_callback(function (): void {
            header('X-Callback: ' . count(headers_list()));
            header_remove('X-A');
        });
        header('X-A: 1');
        echo 'body';
    },
    'callback-status' => function (): void {
        header_register_callback(fn () => http_response_code(418));
        echo 'body';
    },
    'callback-empty' => function (): void {
        header_register_callback(fn () => header('X-Callback: called'));
    },
    'callback-exit' => function (): void {
        header_register_callback(fn () => header('X-Callback: called'));
        exit('left');
    },
    'callback-replaced' => function (): void {
        header_register_callback(fn () => header('X-First: 1'));
        header_register_callback(fn () => header('X-Second: 2'));
        echo 'body';
    },
    'callback-echo' => function (): void {
        header_register_callback(function (): void {
            echo 'from the callback;';
        });
        echo 'body;';
    },
];

$cases[$_GET['do']]();
