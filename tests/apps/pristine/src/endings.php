<?php

declare(strict_types=1);

namespace Pristine;

/**
 * All ways to end a request. Each changes state first.
 *
 * @return array<string, callable>
 */
function endings(): array
{
    Container::$counter++;

    return [
        'exit' => static function (): void {
            echo "before\n";
            exit("goodbye\n");
        },
        'exit-in-function' => static fn () => array_map(static fn ($n) => $n < 3 ? print($n) : exit(77), [1, 2, 3]),
        'exit-in-buffers' => static function (): void {
            ob_start(static fn (string $text) => strrev($text));
            ob_start();
            echo 'milk';
            exit;
        },
        'exit-in-shutdown' => static function (): void {
            register_shutdown_function(static function (): void {
                echo "shutdown exits\n";
                exit;
            });
            echo "page\n";
        },
        'exception' => static fn () => throw new \DomainException('nobody catches it'),
        'exception-unhandled' => static function (): void {
            set_exception_handler(null);
            throw new \DomainException('nobody handles it');
        },
        'exception-in-handler' => static function (): void {
            set_exception_handler(static fn () => throw new \LogicException('in the handler'));
            throw new \DomainException('in the page');
        },
        'error' => static fn () => \no_such_function(),
        'warning' => static fn () => print($GLOBALS['tea']['sugar'] . "no sugar\n"),
        'fatal' => static function (): void {
            eval('namespace Pristine; class Half extends Pot implements \Countable {}');
        },
        'compile-error' => static fn () => eval('this is no PHP'),
        'memory' => static fn () => str_repeat('x', 100 << 20),
        'memory-in-parts' => static function (): void {
            set_error_handler(null);
            $list = [];
            while (true) {
                $list[] = new \ArrayObject(range(1, 5000));
            }
        },
        'recursion' => static function (): void {
            $deep = static function (int $n) use (&$deep): int {
                return $n === 0 ? 0 : 1 + $deep($n - 1);
            };
            echo $deep(20_000), "\n";
        },
        'destructor' => static function (): void {
            $GLOBALS['object'] = new class {
                public function __destruct()
                {
                    echo "a destructor speaks\n";
                }
            };
        },
        'destructor-throws' => static function (): void {
            $GLOBALS['object'] = new class {
                public function __destruct()
                {
                    throw new \RuntimeException('in a destructor');
                }
            };
            echo "page\n";
        },
        'destructor-exits' => static function (): void {
            $GLOBALS['object'] = new class {
                public function __destruct()
                {
                    exit("a destructor exits\n");
                }
            };
        },
        'shutdown-throws' => static function (): void {
            register_shutdown_function(static fn () => throw new \RuntimeException('at the end'));
            echo "page\n";
        },
        'shutdown-chain' => static function (): void {
            register_shutdown_function(static function (): void {
                echo "first\n";
                register_shutdown_function(static fn () => print("second\n"));
            });
        },
        'callback-throws' => static function (): void {
            ob_start(static fn () => throw new \RuntimeException('in a callback'));
            echo "page\n";
        },
        'generator' => static function (): void {
            $generator = (static function () {
                try {
                    yield 1;
                    exit("inside a generator\n");
                } finally {
                    echo "finally\n";
                }
            })();
            foreach ($generator as $value) {
                echo $value, "\n";
            }
        },
        'generator-left' => static function (): void {
            $GLOBALS['generator'] = (static function () {
                try {
                    yield 1;
                } finally {
                    echo "finally\n";
                }
            })();
            echo $GLOBALS['generator']->current(), "\n";
        },
        'fiber' => static function (): void {
            $fiber = new \Fiber(static fn () => exit("inside a fiber\n"));
            $fiber->start();
        },
        'fiber-throws' => static function (): void {
            (new \Fiber(static fn () => throw new \RuntimeException('in a fiber')))->start();
        },
        'fiber-left' => static function (): void {
            $GLOBALS['fiber'] = new \Fiber(static function (): void {
                try {
                    \Fiber::suspend();
                } finally {
                    echo "a fiber's finally\n";
                }
            });
            $GLOBALS['fiber']->start();
            echo "page\n";
        },
        'finished-early' => static function (): void {
            echo "page\n";
            \function_exists('fastcgi_finish_request') && fastcgi_finish_request();
            Container::$counter = 77;
            echo "nobody reads this\n";
        },
        'large' => static function (): void {
            for ($n = 0; $n < 20_000; $n++) {
                echo "line $n of a long page\n";
            }
        },
        'nothing' => static function (): void {
            http_response_code(204);
        },
    ];
}
