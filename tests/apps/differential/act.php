<?php

/* One behaviour of the SAPI per `do`; what it prints and sends is compared with php-fpm. */

switch ($_GET['do']) {
    // Status and headers.
    case 'status': http_response_code(418); echo 'x'; break;
    case 'status-read': echo json_encode([http_response_code(), http_response_code(404), http_response_code()]); break;
    case 'status-line': header('HTTP/1.1 404 Nope'); echo 'x'; break;
    case 'status-line-odd': header('HTTP/1.0 599 Odd One'); echo 'x'; break;
    case 'status-header': header('Status: 403 Forbidden'); echo 'x'; break;
    case 'status-both': http_response_code(500); header('Status: 403 Forbidden'); echo 'x'; break;
    case 'status-param': header('X-A: 1', true, 410); echo 'x'; break;
    case 'location': header('Location: /elsewhere'); break;
    case 'location-201': http_response_code(201); header('Location: /made'); echo 'x'; break;
    case 'location-307': header('Location: /else', true, 307); break;
    case 'refresh': header('Refresh: 5; url=/x'); echo 'x'; break;
    case 'auth-needed': header('WWW-Authenticate: Basic realm="x"'); break;
    case 'replace': header('X-A: 1'); header('X-A: 2', false); header('X-B: 1'); header('X-B: 2'); echo 'x'; break;
    case 'replace-case': header('x-a: 1'); header('X-A: 2'); echo json_encode(headers_list()); break;
    case 'remove': header('X-A: 1'); header_remove('X-A'); echo json_encode(headers_list()); break;
    case 'remove-type': header_remove('Content-Type'); echo 'x'; break;
    case 'remove-all': header('X-A: 1'); header_remove(); echo 'x'; break;
    case 'newline': header("X-A: 1\r\nX-B: 2"); echo 'x'; break;
    case 'nul': header("X-A: a\0b"); echo 'x'; break;
    case 'empty-value': header('X-A:'); echo 'x'; break;
    case 'no-type': header('Content-Type:'); echo 'x'; break;
    case 'type': header('Content-Type: text/plain'); echo 'x'; break;
    case 'type-charset': header('Content-Type: text/plain; charset=latin1'); echo 'x'; break;
    case 'type-json': header('Content-Type: application/json'); echo '{}'; break;
    case 'charset': ini_set('default_charset', 'ISO-8859-1'); echo 'x'; break;
    case 'mimetype': ini_set('default_mimetype', 'text/x-own'); echo 'x'; break;
    case 'length': header('Content-Length: 3'); echo 'abc'; break;
    case 'encoding': header('Content-Encoding: own'); echo 'x'; break;
    case 'long-header': header('X-Long: ' . str_repeat('a', 20000)); echo 'x'; break;
    case 'many-headers': for ($i = 0; $i < 60; $i++) { header("X-$i: $i"); } echo 'x'; break;
    case 'utf8-header': header('X-A: ä'); echo 'x'; break;
    case 'sent': ob_end_flush(); echo 'a'; flush(); echo json_encode(headers_sent($f, $l)), basename($f), $l; break;
    case 'late-header': echo str_repeat('a', 5000); header('X-Late: 1'); break;
    case 'callback': header_register_callback(fn () => header('X-Called: ' . http_response_code())); echo 'x'; break;
    case 'cookie': setcookie('a', 'b c', ['expires' => 4000000000, 'path' => '/p', 'domain' => 'x.org', 'secure' => true,
        'httponly' => true, 'samesite' => 'Lax']); setrawcookie('r', 'a%20b'); setcookie('gone', ''); break;
    case 'cookie-bad': try { setcookie("a=b", 'x'); } catch (ValueError $e) { echo $e->getMessage(); } break;
    case '204': http_response_code(204); break;
    case '304': http_response_code(304); header('ETag: "x"'); header('Content-Type: text/plain'); break;
    case 'cache': header('Cache-Control: no-store'); header('Expires: 0'); header('Vary: A'); header('Vary: B', false); break;
    case 'disposition': header('Content-Disposition: attachment; filename="a b.txt"'); echo 'x'; break;
    case 'response-headers': header('X-A: 1'); echo json_encode(headers_list()); break;

    // Output.
    case 'nothing': break;
    case 'big': echo str_repeat('0123456789', 100000); break;
    case 'buffers': ob_start(fn ($b) => strtoupper($b)); echo 'hello'; ob_start(); echo 'inner'; break;
    case 'clean': ob_start(); echo 'gone'; ob_end_clean(); echo 'kept'; break;
    case 'level': echo ob_get_level(), json_encode(ob_get_status()); break;
    case 'flush': echo 'a'; ob_flush(); flush(); header('X-Late: 1'); echo 'b'; break;
    case 'implicit': ob_implicit_flush(); ob_end_flush(); echo 'a'; echo 'b'; break;
    case 'rewrite': output_add_rewrite_var('k', 'v'); echo '<a href="x.php">x</a>'; break;
    case 'print-file': readfile(__DIR__ . '/a.txt'); break;
    case 'passthru': passthru('echo from a program'); break;
    case 'stdout': file_put_contents('php://output', 'by stream'); break;
    case 'gzip': ini_set('zlib.output_compression', '1'); echo str_repeat('a', 100); break;

    // The end.
    case 'exit': echo 'a'; exit('bye');
    case 'exit-code': echo 'a'; exit(3);
    case 'exit-in-function': (function () { echo 'a'; exit; })(); echo 'never';
    case 'exit-finally': try { exit('e'); } finally { echo 'never'; }
    case 'shutdown': register_shutdown_function(function () { echo 'S'; }); echo 'm'; exit;
    case 'shutdown-folder': register_shutdown_function(function () { echo getcwd(); }); chdir('/'); echo 'm '; break;
    case 'shutdown-nested': register_shutdown_function(function () {
        echo '1'; register_shutdown_function(function () { echo '2'; }); }); break;
    case 'shutdown-header': register_shutdown_function(function () { header('X-Shut: 1'); http_response_code(202); }); break;
    case 'shutdown-exit': register_shutdown_function(function () { echo 'S'; exit; });
        register_shutdown_function(function () { echo 'never'; }); break;
    case 'destructor': $GLOBALS['d'] = new class { public function __destruct() { echo 'D'; } }; echo 'm'; break;
    case 'finish': echo 'a'; fastcgi_finish_request(); echo 'b'; break;
    case 'finish-twice': echo json_encode([fastcgi_finish_request(), fastcgi_finish_request()]); break;
    case 'finish-headers': header('X-A: 1'); http_response_code(202); fastcgi_finish_request(); header('X-B: 1'); break;

    // Errors.
    case 'warning': echo $undefined; echo 'after'; break;
    case 'notice-silent': echo @$undefined; echo 'after'; break;
    case 'deprecated': trigger_error('old', E_USER_DEPRECATED); echo 'after'; break;
    case 'user-error': trigger_error('bad', E_USER_ERROR); echo 'never';
    case 'fatal': echo 'before'; no_such_function();
    case 'exception': throw new Exception('boo <b>');
    case 'type-error': (function (int $i) {})('x');
    case 'parse': include __DIR__ . '/broken.php'; break;
    case 'require': require __DIR__ . '/none.php';
    case 'include': include __DIR__ . '/none.php'; echo 'after'; break;
    case 'memory': echo 'before'; $a = str_repeat('x', 1 << 28);
    case 'time': set_time_limit(1); while (true) { }
    case 'hidden': ini_set('display_errors', '0'); no_such_function();
    case 'hidden-after-output': ini_set('display_errors', '0'); echo 'out'; no_such_function();
    case 'html-off': ini_set('html_errors', '0'); echo $undefined; break;
    case 'handler': set_error_handler(function ($n, $m) { echo "[$m]"; return true; }); echo $u; echo 'after'; break;
    case 'handler-false': set_error_handler(fn () => false); echo $u; break;
    case 'handler-throws': set_error_handler(function ($n, $m) { throw new ErrorException($m); });
        try { echo $u; } catch (ErrorException $e) { echo get_class($e); } break;
    case 'exception-handler': set_exception_handler(function ($e) { http_response_code(503); echo $e->getMessage(); });
        throw new Exception('handled');
    case 'exception-in-shutdown': register_shutdown_function(function () { throw new Exception('late'); }); echo 'm'; break;
    case 'last-error': @trigger_error('quiet'); echo error_get_last()['message'];
        register_shutdown_function(function () { echo json_encode(error_get_last() !== null); }); break;
    case 'last-fatal': register_shutdown_function(function () { echo error_get_last()['type']; });
        ini_set('display_errors', '0'); no_such_function();
    case 'assert': try { assert(false); echo 'off'; } catch (AssertionError $e) { echo 'on'; } break;

    // The rest.
    case 'ini': ini_set('precision', '5'); echo ini_get('precision'), 1 / 3; break;
    case 'ini-get': echo json_encode(array_map('ini_get', ['memory_limit', 'post_max_size', 'display_errors', 'html_errors',
        'implicit_flush', 'max_execution_time', 'variables_order', 'output_buffering', 'log_errors'])); break;
    case 'connection': echo connection_status(), connection_aborted(), ignore_user_abort(); break;
    case 'time-vars': echo json_encode([is_int($_SERVER['REQUEST_TIME']), is_float($_SERVER['REQUEST_TIME_FLOAT']),
        abs($_SERVER['REQUEST_TIME'] - time()) < 5]); break;
    case 'sapi': echo PHP_SAPI === php_sapi_name() ? 'same' : 'other'; break;
    case 'auth': echo json_encode(array_map(fn ($k) => $_SERVER[$k] ?? null,
        ['PHP_AUTH_USER', 'PHP_AUTH_PW', 'PHP_AUTH_DIGEST', 'AUTH_TYPE', 'REMOTE_USER', 'HTTP_AUTHORIZATION'])); break;
    case 'move': $to = tempnam(sys_get_temp_dir(), 'm');
        echo json_encode([move_uploaded_file($_FILES['f']['tmp_name'], $to), file_get_contents($to),
            move_uploaded_file(__FILE__, $to), file_exists($_FILES['f']['tmp_name'])]); unlink($to); break;
    case 'input-twice': echo json_encode([file_get_contents('php://input'), file_get_contents('php://input')]); break;
    case 'input-parts': $in = fopen('php://input', 'r'); echo fread($in, 3), '|', fread($in, 3), '|',
        json_encode([fseek($in, 0), stream_get_contents($in)]); break;
    case 'globals': echo json_encode([isset($GLOBALS['_SERVER']), isset($HTTP_RAW_POST_DATA)]); break;
    case 'included': echo json_encode(array_map('basename', get_included_files())); break;
    case 'user': echo get_current_user(); break;
    case 'locale': echo setlocale(LC_ALL, '0'), json_encode(localeconv()['decimal_point']); break;
    case 'session':
        session_start();
        $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
        echo $_SESSION['n'], session_status();
        break;
    case 'session-regenerate': session_start(); $old = session_id(); session_regenerate_id(true);
        echo json_encode([$old !== session_id(), $_SESSION['n'] ?? null]); break;
    case 'session-destroy': session_start(); session_destroy(); echo json_encode($_SESSION['n'] ?? null); break;
    case 'session-close': session_start(); $_SESSION['c'] = 1; session_write_close(); $_SESSION['c'] = 2; echo 'x'; break;
    case 'session-read': session_start(['read_and_close' => true]); echo json_encode($_SESSION); break;
    case 'session-params': session_name('OWN'); session_set_cookie_params(['path' => '/p', 'samesite' => 'Strict']);
        session_cache_limiter('public'); session_start(); echo session_name(); break;
    case 'session-flash': session_start(); echo $_SESSION['flash'] ?? 'none'; unset($_SESSION['flash']);
        if (isset($_GET['set'])) { $_SESSION['flash'] = $_GET['set']; } break;
    case 'session-late': echo str_repeat('a', 5000); session_start(); break;
    default: echo 'unknown';
}
