<?php

declare(strict_types=1);

namespace Pristine;

/** Returns all state of earlier requests that a request can see. */
function report(Container $container): array
{
    return settings_report() + handlers_report() + engine_report() + container_report($container);
}

function settings_report(): array
{
    $ini = [];
    foreach (['precision', 'memory_limit', 'display_errors', 'max_execution_time', 'session.name', 'session.gc_divisor',
        'arg_separator.output', 'include_path', 'zend.assertions', 'pcre.backtrack_limit', 'default_charset',
        'serialize_precision', 'user_agent', 'url_rewriter.tags', 'intl.default_locale', 'mbstring.language'] as $key) {
        $ini[$key] = ini_get($key);
    }

    return [
        'ini' => $ini,
        'error_reporting' => error_reporting(),
        'locale' => setlocale(LC_ALL, '0'),
        'decimal' => localeconv()['decimal_point'],
        'timezone' => date_default_timezone_get(),
        'encoding' => [mb_internal_encoding(), mb_substitute_character(), mb_language(), mb_detect_order()],
        'regex' => mb_regex_encoding(),
        'libxml' => [libxml_use_internal_errors(), \count(libxml_get_errors())],
        'umask' => umask(),
        'cwd' => getcwd(),
        'environment' => [getenv('BOOTED'), getenv('DIRT'), isset($_SERVER['DIRT']), isset($_ENV['DIRT'])],
        'abort' => ignore_user_abort(),
        'context' => stream_context_get_options(stream_context_get_default()),
        'wrappers' => \in_array('tea', stream_get_wrappers()) . ' ' . \in_array('http', stream_get_wrappers()) . ' '
            . \in_array('dirt', stream_get_wrappers()),
        'filters' => \in_array('dirt', stream_get_filters()),
        'intl' => \Locale::getDefault(),
        'gc' => gc_enabled(),
        'assert' => assert_options(ASSERT_ACTIVE),
        'bc' => intdiv(7, 2) . ' ' . round(1 / 3, 20) . ' ' . 1 / 3,
    ];
}

function name_of(?callable $handler): string
{
    return $handler === null ? 'none' : (new \ReflectionFunction(\Closure::fromCallable($handler)))->getName();
}

function handlers_report(): array
{
    $errors = name_of(set_error_handler(null));
    restore_error_handler();
    $exceptions = name_of(set_exception_handler(null));
    restore_exception_handler();

    return [
        'errors' => $errors,
        'exceptions' => $exceptions,
        'loaders' => array_map(name_of(...), spl_autoload_functions()),
        'buffers' => array_column(ob_get_status(true), 'level', 'name'),
        'headers' => headers_list(),
        'status' => http_response_code(),
        'last_error' => error_get_last(),
        'json' => json_last_error(),
        'preg' => preg_last_error(),
        'tokenizer' => strtok('/') === false,
        'session' => [session_status(), session_name(), session_id(), $_SESSION ?? 'unset',
            session_get_cookie_params(), session_module_name(), session_cache_limiter()],
    ];
}

function engine_report(): array
{
    $constants = get_defined_constants(true)['user'] ?? [];
    $functions = get_defined_functions()['user'];
    $classes = array_values(array_filter(get_declared_classes(), static fn ($c) => !(new \ReflectionClass($c))->isInternal()));
    $files = array_map(static fn ($f) => substr($f, \strlen(\dirname(__DIR__))), get_included_files());
    $globals = array_keys($GLOBALS);
    ksort($constants);
    sort($globals);

    return [
        'constants' => $constants,
        'functions' => $functions,
        'classes' => $classes,
        'files' => $files,
        'globals' => array_values(array_diff($globals, ['_SERVER', '_ENV', '_REQUEST', '_SESSION'])),
        'tea' => $GLOBALS['tea'] ?? 'unset',
        'itself' => $GLOBALS['itself'] ?? 'unset',
        'superglobals' => [isset($_GET['dirt']), isset($_POST['dirt']), isset($_COOKIE['dirt']), isset($_REQUEST['dirt']),
            isset($_FILES['dirt'])],
    ];
}

function container_report(Container $container): array
{
    return [
        'statics' => [Container::$counter, array_keys(Container::$registry), Container::calls(), Pot::$brewed,
            Pot::$last?->kind, TeaStream::$opened, (new \ReflectionProperty(Pot::class, 'last'))->getValue()?->kind],
        'list' => $container->list,
        'closure' => $container->closure === null ? 'none' : ($container->closure)(),
        'numbers' => $container->numbers->valid() ? $container->numbers->current() : 'ended',
        'iterator' => $container->iterator->valid() ? $container->iterator->current() : 'ended',
        'weak' => [\count($container->weak), $container->weak[$container->key] ?? 'gone'],
        'storage' => [\count($container->storage), $container->storage[$container->key] ?? 'gone'],
        'fixed' => $container->fixed->toArray(),
        'queue' => \count($container->queue) . ' ' . (\count($container->queue) > 0 ? $container->queue->top() : ''),
        'fiber' => $container->fiber->isSuspended() ? $container->fiber->resume() : 'ended',
        'date' => $container->date->format(DATE_ATOM),
        'document' => $container->document->saveXML(),
        'guests' => $container->database->query('SELECT count(*), sum(cups) FROM guests')->fetch(\PDO::FETCH_NUM),
        'transaction' => $container->database->inTransaction(),
        'formatter' => $container->formatter->format(1234.5),
        'memory' => [ftell($container->memory), stream_get_contents($container->memory, 100, 0)],
        'curl' => curl_getinfo($container->curl, CURLINFO_EFFECTIVE_URL),
    ];
}

/**
 * Values that only the same server can compare, such as the next object and resource numbers of the
 * engine.
 */
function self_report(): array
{
    $file = fopen(__FILE__, 'r');
    $descriptors = [];
    foreach (scandir('/proc/self/fd') as $fd) {
        $descriptors[] = $fd;
    }

    return [
        'memory' => memory_get_usage(),
        'object' => spl_object_id(new \stdClass()),
        'resource' => get_resource_id($file),
        'descriptors' => $descriptors,
        'realpath' => realpath_cache_size(),
        'resources' => array_map(get_resource_type(...), get_resources()),
        'gc' => array_intersect_key(gc_status(), ['runs' => 1, 'collected' => 1, 'roots' => 1]),
        'extensions' => \count(get_loaded_extensions()),
    ];
}
