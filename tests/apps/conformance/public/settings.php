<?php

/**
 * Settings, folders and process state: ?do=NAME. Many are requested twice: the second request must
 * see no change.
 */

declare(strict_types=1);

$show = static function (mixed ...$values): void {
    foreach ($values as $value) {
        echo json_encode($value, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
    }
};

$cases = [
    'ini' => function () use ($show): void {
        $names = ['precision', 'memory_limit', 'date.timezone', 'default_charset', 'include_path', 'error_reporting'];
        $show(array_map('ini_get', $names));
        ini_set('precision', '5');
        ini_set('memory_limit', '99M');
        ini_set('date.timezone', 'Asia/Tokyo');
        ini_set('default_charset', 'ISO-8859-1');
        ini_set('include_path', '/none');
        error_reporting(0);
        $show(array_map('ini_get', $names), 1 / 3);
    },
    'ini-restore' => function () use ($show): void {
        ini_set('precision', '5');
        ini_restore('precision');
        $show(ini_get('precision'), ini_set('post_max_size', '1M'), ini_get('nonsense'));
    },
    'ini-shared' => fn () => $show(array_map('ini_get', [
        'display_errors', 'html_errors', 'log_errors', 'output_buffering', 'implicit_flush', 'variables_order',
        'request_order', 'register_argc_argv', 'auto_globals_jit', 'post_max_size', 'upload_max_filesize',
        'max_file_uploads', 'max_input_vars', 'max_input_nesting_level', 'max_input_time', 'max_execution_time',
        'file_uploads', 'enable_post_data_reading', 'arg_separator.input', 'arg_separator.output', 'short_open_tag',
        'session.use_strict_mode', 'session.use_only_cookies', 'session.name', 'session.gc_probability',
        'session.serialize_handler', 'zend.assertions', 'zend.exception_ignore_args', 'user_ini.filename',
        'user_ini.cache_ttl', 'open_basedir', 'disable_functions', 'allow_url_fopen', 'allow_url_include',
        'serialize_precision', 'ignore_user_abort', 'default_socket_timeout', 'opcache.enable', 'expose_php',
    ])),
    'timezone' => function () use ($show): void {
        $show(date_default_timezone_get());
        date_default_timezone_set('Europe/Berlin');
        $show(date('H:i', 0));
    },
    'locale' => function () use ($show): void {
        $show(setlocale(LC_ALL, '0'));
        $show(setlocale(LC_CTYPE, 'C.UTF-8', 'C.utf8'));
    },
    'encoding' => function () use ($show): void {
        $show(mb_internal_encoding(), mb_substitute_character(), mb_language());
        mb_internal_encoding('ISO-8859-1');
        mb_substitute_character(0x21);
        mb_language('Japanese');
        $show(mb_internal_encoding(), mb_strlen('ä'));
    },
    'chdir' => function () use ($show): void {
        $show(basename(getcwd()));
        chdir('/');
        $show(getcwd());
    },
    'umask' => fn () => $show(umask(0077), umask()),
    'putenv' => function () use ($show): void {
        $show(getenv('CONFORMANCE'), putenv('CONFORMANCE=1'), getenv('CONFORMANCE'));
        putenv('TZ=Asia/Tokyo');
    },
    'getenv' => fn () => $show(array_map('getenv', [
        'REQUEST_METHOD', 'QUERY_STRING', 'SCRIPT_NAME', 'HTTP_HOST', 'HTTP_X_A', 'CONTENT_TYPE', 'CONTENT_LENGTH',
        'REMOTE_ADDR', 'GATEWAY_INTERFACE', 'REQUEST_SCHEME', 'REDIRECT_STATUS', 'PHP_SELF', 'HTTPS', 'NONE',
    ])),
    'getenv-all' => function () use ($show): void {
        // Variables of the process, variables that differ between the servers, and marks by which
        // the tests find their processes.
        $own = ['PATH', 'USER', 'HOME', 'FCGI_ROLE', 'REMOTE_PORT', 'SERVER_PORT', 'SERVER_SOFTWARE', 'REQUEST_ID'];
        $marks = ['SAMOVAR_TEST_RUN', 'SAMOVAR_TEST_SERVER'];
        $all = array_diff_key(getenv(), array_flip($own), array_flip($marks));
        ksort($all);
        $show($all);
    },
    'stat' => function () use ($show): void {
        // Another process writes the file, so that PHP's stat cache does not notice within a
        // request.
        $file = ini_get('session.save_path') . '/stat';
        exec('printf x >> ' . escapeshellarg($file));
        $size = filesize($file);
        exec('printf x >> ' . escapeshellarg($file));
        $show($size, filesize($file));
        if ($size > 1) {
            unlink($file);
        }
    },
    'include-path' => function () use ($show): void {
        $show(set_include_path(__DIR__ . '/sub'), (include 'returns.php'));
    },
    'autoload' => function () use ($show): void {
        $show(count(spl_autoload_functions()));
        spl_autoload_register(fn (string $class) => print("asked for $class\n"));
        $show(class_exists('None'));
    },
    'streams' => function () use ($show): void {
        $show(stream_get_wrappers(), stream_get_filters(), stream_get_transports());
        stream_wrapper_unregister('http');
        $show(in_array('http', stream_get_wrappers(), true));
    },
    'stream-context' => function () use ($show): void {
        $show(stream_context_get_options(stream_context_get_default()));
        stream_context_set_default(['http' => ['method' => 'PUT']]);
        libxml_use_internal_errors(true);
    },
    'libxml' => function () use ($show): void {
        $show(libxml_use_internal_errors(true), count(libxml_get_errors()));
        simplexml_load_string('<broken');
        $show(count(libxml_get_errors()));
    },
    'random' => function () use ($show): void {
        mt_srand(42);
        $show(mt_rand(), mt_rand(1, 100));
        srand(7);
        $show(rand(1, 1000), str_shuffle('abcdef'));
    },
    'json-state' => function () use ($show): void {
        $show(json_last_error(), preg_last_error());
        json_decode('{');
        preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar');
        $show(json_last_error(), preg_last_error());
    },
    'strtok' => function () use ($show): void {
        $show(strtok(' '));
        $show(strtok('a b c', ' '));
    },
    'assert-options' => fn () => $show(ini_get('assert.exception'), ini_set('assert.exception', '0')),
    'time-limit' => fn () => $show(ini_get('max_execution_time'), set_time_limit(5), ini_get('max_execution_time')),
    'functions' => fn () => $show(array_map('function_exists', [
        'getallheaders', 'apache_request_headers', 'fastcgi_finish_request',
        'header_register_callback', 'cli_set_process_title', 'dl', 'apache_setenv', 'virtual',
    ])),
    'extensions' => function () use ($show): void {
        $extensions = get_loaded_extensions();
        sort($extensions);
        $show($extensions, get_loaded_extensions(true));
    },
    'sapi' => fn () => $show(PHP_SAPI, php_sapi_name() === PHP_SAPI),
    'binary' => fn () => $show(PHP_BINARY),
    'version' => fn () => $show(PHP_VERSION, PHP_OS_FAMILY, PHP_ZTS, PHP_DEBUG, PHP_EXTRA_VERSION, zend_version()),
    'constants' => fn () => $show(defined('STDIN'), defined('STDOUT'), defined('STDERR')),
    'ini-files' => fn () => $show(basename((string) php_ini_loaded_file()), count(explode(',', (string) php_ini_scanned_files()))),
    'opcache' => fn () => $show(opcache_get_status(false)['opcache_enabled'], opcache_is_script_cached(__FILE__)),
    'folders' => fn () => $show(basename(__DIR__), basename(__FILE__), basename(getcwd()), sys_get_temp_dir()),
    'relative' => function () use ($show): void {
        $show(realpath('.') === getcwd(), is_file('index.php'), is_file('sub/returns.php'));
    },
    'included' => fn () => $show(basename(get_included_files()[0])),
    'self' => fn () => $show($_SERVER['PHP_SELF'], $_SERVER['SCRIPT_NAME'], basename($_SERVER['SCRIPT_FILENAME'])),
    'globals' => function () use ($show): void {
        $names = array_keys($GLOBALS);
        sort($names);
        $show($names);
    },
    'server-by-name' => function () use ($show): void {
        // If the code does not name $_SERVER, PHP creates it on demand.
        $name = '_SERVER';
        $show(isset($GLOBALS[$name]), $GLOBALS[$name]['REQUEST_METHOD'] ?? null);
    },
    'server-writable' => function () use ($show): void {
        $_SERVER['MINE'] = 1;
        $_GET['mine'] = 2;
        $_REQUEST['mine'] = 3;
        unset($_SERVER['REQUEST_METHOD']);
        $show($_SERVER['MINE'], $_GET, $_REQUEST, isset($_SERVER['REQUEST_METHOD']), filter_input(INPUT_GET, 'mine'));
    },
    'request-time' => fn () => $show(
        is_int($_SERVER['REQUEST_TIME']),
        is_float($_SERVER['REQUEST_TIME_FLOAT']),
        abs(time() - $_SERVER['REQUEST_TIME']) < 5,
        $_SERVER['REQUEST_TIME'] === (int) $_SERVER['REQUEST_TIME_FLOAT'],
    ),
    'server-types' => function () use ($show): void {
        // The runner lists the variables that only one side has.
        $both = array_diff_key($_SERVER, array_flip(['FCGI_ROLE', 'USER', 'HOME', 'PATH', 'REQUEST_ID']));
        $types = array_map('get_debug_type', $both);
        ksort($types);
        $show($types);
    },
    'filter' => fn () => $show(
        filter_input(INPUT_GET, 'n', FILTER_VALIDATE_INT),
        filter_input(INPUT_GET, 'mail', FILTER_VALIDATE_EMAIL),
        filter_input(INPUT_GET, 'html', FILTER_SANITIZE_SPECIAL_CHARS),
        filter_input(INPUT_GET, 'list', FILTER_DEFAULT, FILTER_REQUIRE_ARRAY),
        filter_input(INPUT_GET, 'none'),
        filter_input_array(INPUT_GET, ['n' => FILTER_VALIDATE_INT, 'absent' => FILTER_DEFAULT]),
    ),
    'filter-post' => fn () => $show(
        filter_input(INPUT_POST, 'n', FILTER_VALIDATE_INT),
        filter_input_array(INPUT_POST),
        filter_has_var(INPUT_POST, 'n'),
    ),
    'filter-cookie' => fn () => $show(filter_input_array(INPUT_COOKIE), filter_has_var(INPUT_COOKIE, 'c')),
    'filter-server' => fn () => $show(
        filter_input(INPUT_SERVER, 'REQUEST_URI'),
        filter_input(INPUT_SERVER, 'HTTP_X_A'),
        filter_input(INPUT_SERVER, 'NONE'),
        filter_input(INPUT_ENV, 'PATH'),
        filter_has_var(INPUT_SERVER, 'QUERY_STRING'),
    ),
    'extract' => function () use ($show): void {
        extract($_GET);
        parse_str($_SERVER['QUERY_STRING'], $parsed);
        $show($n ?? null, $parsed === $_GET);
    },
    'phpinfo' => function (): void {
        ob_start();
        phpinfo(INFO_VARIABLES);
        preg_match_all('/\$_(?:GET|COOKIE)\[[^\]]*\]/', html_entity_decode(strip_tags(ob_get_clean()), ENT_QUOTES), $found);
        echo json_encode($found[0]);
    },
    'user' => fn () => $show(getmyuid(), get_current_user(), getlastmod() > 0, getmyinode() > 0),
    'headers-in-cli-style' => fn () => $show(isset($_SERVER['argv']), isset($_SERVER['argc'])),
];

$cases[$_GET['do']]();
