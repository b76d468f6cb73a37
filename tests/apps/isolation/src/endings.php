<?php

declare(strict_types=1);

namespace Isolation;

/** Sends output until the client has left. */
function endless(): void
{
    while (true) {
        echo str_repeat('more and more ', 1000);
        ob_flush();
        flush();
    }
}

/** @return array<string, \Closure> Every way in which a request can end. */
function endings(): array
{
    return plain_endings() + late_endings() + inner_endings();
}

/** @return array<string, \Closure> */
function plain_endings(): array
{
    return [
        'return' => static fn () => print('returned'),
        'exit' => static fn () => exit('left'),
        'exit deep' => static fn () => array_map(static fn (int $n) => $n < 3 ? print($n) : exit('deep'), [1, 2, 3]),
        'exit sorting' => static function (): void {
            $list = range(1, 100);
            usort($list, static fn () => exit('sorted'));
        },
        'exception' => static fn () => throw new \DomainException('nobody catches it'),
        'exception handled' => static function (): void {
            set_exception_handler(static fn (\Throwable $thrown) => print('handled: ' . $thrown->getMessage()));
            throw new \DomainException('a handler shows it');
        },
        'exception handler throws' => static function (): void {
            set_exception_handler(static fn () => throw new \LogicException('in the handler'));
            throw new \DomainException('in the page');
        },
        'error' => static fn () => \no_such_function(),
        'fatal error' => static fn () => trigger_error('as fatal as it gets', E_USER_ERROR),
        'compile error' => static fn () => eval('abstract final class Nonsense {}'),
        'linking error' => static fn () => eval('class Half implements \Countable {}'),
        'memory' => static fn () => str_repeat('dirt', 100 << 20),
        'memory in pieces' => static function (): void {
            for ($list = [];;) {
                $list[] = new \ArrayObject(range(1, 500));
            }
        },
        'recursion' => static function (): void {
            $deeper = static function (int $n) use (&$deeper): int {
                return 1 + $deeper($n + 1);
            };
            $deeper(0);
        },
        'time' => static function (): void {
            set_time_limit(1);
            while (true) {
                md5('busy');
            }
        },
        'sent already' => static function (): void {
            echo 'sent';
            ob_flush();
            flush();
            throw new \DomainException('too late');
        },
        'finished early' => static function (): void {
            echo 'finished';
            fastcgi_finish_request();
            \no_such_function();
        },
        'buffers left open' => static function (): void {
            ob_start(static fn (string $text) => strrev($text));
            ob_start();
            echo 'nepo';
        },
    ];
}

/** @return array<string, \Closure> actions after the end of the page */
function late_endings(): array
{
    $throw = static fn () => throw new \RuntimeException('late');
    $exit = static fn () => exit('exit at last');
    $fatal = static fn () => \no_such_function();
    $memory = static fn () => str_repeat('dirt', 100 << 20);
    $last = ['throws' => $throw, 'exits' => $exit, 'fails' => $fatal, 'takes too much' => $memory];
    $endings = [];
    foreach ($last as $does => $closure) {
        $endings["destructor $does"] = static fn () => print('page') . $GLOBALS['last'] = new Loud($does, $closure);
        $endings["destructor at once $does"] = static fn () => print('page') . print_r(new Loud($does, $closure), true);
        $endings["shutdown function $does"] = static fn () => print('page') . register_shutdown_function($closure);
        $endings["session handler $does"] = static function () use ($closure): void {
            echo 'page';
            session_abort();
            session_set_save_handler(new LastWords($closure), false);
            // Uses a new session: php-fpm keeps the lock when the handler does not finish.
            session_id(session_create_id());
            session_start();
            $_SESSION['last'] = 'words';
        };
    }
    $endings['shutdown function registers'] = static fn () => register_shutdown_function(static function (): void {
        register_shutdown_function(static fn () => print('second'));
        echo 'first ';
    });
    $endings['header callback throws'] = static fn () => print('page') . header_register_callback($throw);

    return $endings;
}

/** @return array<string, \Closure> actions within callbacks from the engine */
function inner_endings(): array
{
    return [
        'callback throws' => static fn () => buffer(static fn () => throw new \RuntimeException('callback')),
        'callback exits' => static fn () => buffer(static fn () => exit('callback')),
        'callback fails' => static fn () => buffer(static fn () => \no_such_function()),
        'callback buffers' => static fn () => buffer(static fn () => ob_start()),
        'error handler throws' => static function (): void {
            set_error_handler(static fn () => throw new \RuntimeException('error handler'));
            echo $undefined;
        },
        'error handler exits' => static function (): void {
            set_error_handler(static fn () => exit('error handler'));
            echo $undefined;
        },
        'error handler fails' => static function (): void {
            set_error_handler(static fn () => trigger_error('in the handler', E_USER_ERROR));
            echo $undefined;
        },
        'fiber exits' => static fn () => (new \Fiber(static fn () => exit('fiber')))->start(),
        'fiber throws' => static fn () => (new \Fiber(static fn () => throw new \RuntimeException('fiber')))->start(),
        'fiber fails' => static fn () => (new \Fiber(static fn () => trigger_error('fiber', E_USER_ERROR)))->start(),
        'fiber takes too much' => static fn () => (new \Fiber(static fn () => str_repeat('x', 1 << 30)))->start(),
        'fiber left' => static function (): void {
            $GLOBALS['fiber'] = new \Fiber(static function (): void {
                try {
                    \Fiber::suspend();
                } finally {
                    Ending::trace('finally of a fiber');
                }
            });
            $GLOBALS['fiber']->start();
            echo 'suspended';
        },
        'generator exits' => static function (): void {
            foreach ((static fn () => yield exit('generator'))() as $value) {
                echo $value;
            }
        },
        'generator fails' => static function (): void {
            foreach ((static fn () => yield trigger_error('generator', E_USER_ERROR))() as $value) {
                echo $value;
            }
        },
        'generator left' => static function (): void {
            $GLOBALS['generator'] = (static function (): \Generator {
                try {
                    yield 'yielded';
                } finally {
                    Ending::trace('finally of a generator');
                }
            })();
            echo $GLOBALS['generator']->current();
        },
        'autoloader exits' => static function (): void {
            spl_autoload_register(static fn () => exit('autoloader'));
            new \NoSuchClass();
        },
        'string exits' => static fn () => print(new class {
            public function __toString(): string
            {
                exit('string');
            }
        }),
    ];
}

function buffer(\Closure $callback): void
{
    ob_start($callback);
    echo 'page';
}
