<?php

/** Errors of every kind: ?do=NAME. */

declare(strict_types=1);

$cases = [
    'notice' => function (): void {
        echo $undefined, 'after';
    },
    'warning' => function (): void {
        echo [][0], 'after';
    },
    'deprecated' => function (): void {
        echo strtolower(...)('A'), utf8_encode('a'), 'after';
    },
    'user' => function (): void {
        trigger_error('a notice', E_USER_NOTICE);
        trigger_error('a warning with <b>markup</b> & more', E_USER_WARNING);
        trigger_error('a deprecation', E_USER_DEPRECATED);
        echo 'after';
    },
    'user-error' => function (): void {
        echo 'before;';
        trigger_error('an error', E_USER_ERROR);
        echo 'after';
    },
    'fatal' => function (): void {
        echo 'before;';
        undefined_function();
    },
    'fatal-first' => fn () => undefined_function(),
    'exception' => fn () => throw new RuntimeException('uncaught <b>markup</b>', 7),
    'exception-previous' => fn () => throw new LogicException('outer', 0, new DomainException('inner')),
    'exception-own-string' => fn () => throw new class () extends Exception {
        public function __toString(): string
        {
            return 'my own text';
        }
    },
    'type-error' => fn () => strlen([]),
    'division' => fn () => intdiv(1, (int) $_GET['zero']),
    'match' => fn () => match ($_GET['do']) {
        'other' => 1,
    },
    'abstract' => fn () => new FilterIterator(),
    'parse' => function (): void {
        echo 'before;';
        include __DIR__ . '/broken/parse.php';
    },
    'parse-caught' => function (): void {
        try {
            include __DIR__ . '/broken/parse.php';
        } catch (ParseError $e) {
            echo 'caught ', $e->getMessage(), ' on line ', $e->getLine();
        }
    },
    'compile' => function (): void {
        echo 'before;';
        include __DIR__ . '/broken/compile.php';
    },
    'eval' => fn () => eval('nonsense here;'),
    'include-missing' => function (): void {
        include __DIR__ . '/none.php';
        echo 'after';
    },
    'require-missing' => fn () => require __DIR__ . '/none.php',
    'memory' => function (): void {
        echo 'before;';
        str_repeat('x', 1 << 28);
    },
    'memory-slowly' => function (): void {
        ini_set('memory_limit', '8M');
        $list = [];
        for (;;) {
            $list[] = str_repeat('x', 100000);
        }
    },
    'memory-in-shutdown' => function (): void {
        register_shutdown_function(function (): void {
            echo 'shutdown;', str_contains(error_get_last()['message'], 'Allowed memory size') ? 'memory;' : 'other;';
        });
        str_repeat('x', 1 << 28);
    },
    'time' => function (): void {
        set_time_limit(1);
        echo 'before;';
        for (;;);
    },
    'time-in-shutdown' => function (): void {
        register_shutdown_function(fn () => print('shutdown;'));
        set_time_limit(1);
        for (;;);
    },
    'recursion' => function (): void {
        ini_set('display_errors', '0');
        ini_set('memory_limit', '16M');
        $deeper = function (int $n) use (&$deeper): int {
            return $deeper($n + 1) + 1;
        };
        register_shutdown_function(function (): void {
            echo str_contains(error_get_last()['message'], 'Allowed memory size of 16777216') ? 'memory' : 'other';
        });
        $deeper(0);
    },
    'hidden' => function (): void {
        ini_set('display_errors', '0');
        echo $undefined, 'shown';
    },
    'hidden-fatal' => function (): void {
        ini_set('display_errors', '0');
        undefined_function();
    },
    'hidden-fatal-after-output' => function (): void {
        ini_set('display_errors', '0');
        echo 'buffered;';
        undefined_function();
    },
    'hidden-fatal-after-flush' => function (): void {
        ini_set('display_errors', '0');
        echo 'sent;';
        ob_flush();
        flush();
        undefined_function();
    },
    'hidden-fatal-with-status' => function (): void {
        ini_set('display_errors', '0');
        http_response_code(404);
        undefined_function();
    },
    'hidden-exception-with-status' => function (): void {
        ini_set('display_errors', '0');
        http_response_code(404);
        throw new Exception('unseen');
    },
    'hidden-exception' => function (): void {
        ini_set('display_errors', '0');
        throw new Exception('unseen');
    },
    'hidden-memory' => function (): void {
        ini_set('display_errors', '0');
        str_repeat('x', 1 << 28);
    },
    'hidden-parse' => function (): void {
        ini_set('display_errors', '0');
        include __DIR__ . '/broken/parse.php';
    },
    'hidden-user-error' => function (): void {
        ini_set('display_errors', '0');
        trigger_error('unseen', E_USER_ERROR);
    },
    'stderr' => function (): void {
        ini_set('display_errors', 'stderr');
        echo $undefined, 'shown';
    },
    'fatal-after-flush' => function (): void {
        echo 'sent;';
        ob_flush();
        flush();
        undefined_function();
    },
    'fatal-with-status' => function (): void {
        http_response_code(201);
        undefined_function();
    },
    'fatal-with-headers' => function (): void {
        header('Content-Type: application/json');
        header('X-A: 1');
        setcookie('a', 'b');
        undefined_function();
    },
    'plain' => function (): void {
        ini_set('html_errors', '0');
        echo $undefined;
        undefined_function();
    },
    'silenced' => function (): void {
        echo @$undefined, @file_get_contents('/none'), 'after;', error_get_last()['message'];
    },
    'not-reported' => function (): void {
        error_reporting(E_ERROR);
        echo $undefined, 'after;', error_reporting();
    },
    'decorated' => function (): void {
        ini_set('error_prepend_string', '<<');
        ini_set('error_append_string', '>>');
        echo $undefined;
    },
    'handler' => function (): void {
        set_error_handler(function (int $level, string $message, string $file, int $line): bool {
            echo "handled $level $message ", basename($file), ";";
            return true;
        });
        echo $undefined;
        trigger_error('mine', E_USER_ERROR);
        echo 'after';
    },
    'handler-declines' => function (): void {
        set_error_handler(fn () => false);
        echo $undefined, 'after';
    },
    'handler-level' => function (): void {
        set_error_handler(fn () => print('handled;'), E_USER_NOTICE);
        trigger_error('one', E_USER_NOTICE);
        trigger_error('two', E_USER_WARNING);
    },
    'handler-restored' => function (): void {
        set_error_handler(fn () => print('outer;'));
        set_error_handler(fn () => print('inner;'));
        echo $undefined;
        restore_error_handler();
        echo $undefined;
    },
    'error-exception' => function (): void {
        set_error_handler(fn ($n, $m, $f, $l) => throw new ErrorException($m, 0, $n, $f, $l));
        try {
            echo $undefined;
        } catch (ErrorException $e) {
            echo get_class($e), ' ', $e->getSeverity(), ' ', $e->getMessage();
        }
    },
    'exception-handler' => function (): void {
        set_exception_handler(function (Throwable $e): void {
            http_response_code(503);
            echo 'handled ', $e->getMessage();
        });
        throw new Exception('thrown');
    },
    'exception-handler-throws' => function (): void {
        set_exception_handler(fn (Throwable $e) => throw new LogicException('worse', 0, $e));
        throw new Exception('thrown');
    },
    'exception-handler-error' => function (): void {
        set_exception_handler(function (Throwable $e): void {
            echo get_class($e);
        });
        undefined_function();
    },
    'last' => function (): void {
        register_shutdown_function(function (): void {
            $last = error_get_last();
            echo $last['type'], ' ', strtok($last['message'], "\n"), ' ', basename($last['file']);
        });
        ini_set('display_errors', '0');
        undefined_function();
    },
    'last-cleared' => function (): void {
        @trigger_error('x');
        error_clear_last();
        var_dump(error_get_last());
    },
    'in-shutdown' => function (): void {
        register_shutdown_function(fn () => undefined_function());
        echo 'script;';
    },
    'in-destructor' => function (): void {
        $GLOBALS['late'] = new class () {
            public function __destruct()
            {
                undefined_function();
            }
        };
        echo 'script;';
        unset($GLOBALS['late']);
    },
    'in-callback' => function (): void {
        header_register_callback(fn () => undefined_function());
        echo 'script;';
    },
    'assert' => function (): void {
        try {
            assert(1 > 2);
            echo 'not checked';
        } catch (AssertionError $e) {
            echo $e->getMessage();
        }
    },
    'not-utf8' => function (): void {
        trigger_error("bytes \xff\xfe and \x00 nul", E_USER_WARNING);
    },
    'long' => function (): void {
        trigger_error(str_repeat('long ', 2000), E_USER_WARNING);
    },
    'log' => function (): void {
        var_dump(error_log('a line for the log'));
    },
];

$cases[$_GET['do']]();
