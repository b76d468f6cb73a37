<?php

/** Ways to end a script, and code that still runs then: ?do=NAME. */

declare(strict_types=1);

$loud = fn (string $name): object => new class ($name) {
    public function __construct(private string $name)
    {
    }

    public function __destruct()
    {
        echo "destructor $this->name;";
    }
};
$scratch = ini_get('session.save_path') . '/mark';

$cases = [
    'exit' => function (): void {
        echo 'before;';
        exit;
    },
    'exit-text' => fn () => exit('said at the exit'),
    'exit-code' => function (): void {
        echo 'before;';
        exit(3);
    },
    'exit-code-255' => fn () => exit(255),
    'die' => fn () => die('died'),
    'exit-in-try' => function (): void {
        try {
            exit('no finally follows;');
        } catch (Throwable) {
            echo 'caught;';
        } finally {
            echo 'finally;';
        }
    },
    'exit-with-buffers' => function (): void {
        ob_start(fn (string $piece): string => strtoupper($piece));
        echo 'shouted';
        ob_start();
        echo ' too';
        exit;
    },
    'exit-in-buffer-callback' => function (): void {
        ob_start(function (string $piece): string {
            exit('exit in callback;');
        });
        echo 'text;';
        ob_end_flush();
        echo 'after;';
    },
    'return' => function (): void {
        echo 'returned;';
    },
    'shutdown' => function (): void {
        register_shutdown_function(function (string $a, int $b): void {
            echo "first $a $b;";
        }, 'a', 2);
        register_shutdown_function(function (): void {
            echo 'second;';
            register_shutdown_function(fn () => print('nested;'));
        });
        echo 'script;';
    },
    'shutdown-exit' => function (): void {
        register_shutdown_function(function (): void {
            echo 'first;';
            exit('exit;');
        });
        register_shutdown_function(fn () => print('second;'));
        exit('script;');
    },
    'shutdown-header' => function (): void {
        register_shutdown_function(function (): void {
            header('X-Shutdown: 1');
            http_response_code(404);
        });
        echo 'buffered';
    },
    'shutdown-throws' => function (): void {
        register_shutdown_function(fn () => throw new RuntimeException('in shutdown'));
        register_shutdown_function(fn () => print('second;'));
        echo 'script;';
    },
    'shutdown-buffers' => function (): void {
        ob_start();
        echo 'inner;';
        register_shutdown_function(fn () => print(ob_get_level() . ';'));
    },
    'shutdown-cwd' => function (): void {
        chdir('/');
        register_shutdown_function(fn () => print(getcwd() === '/' ? 'as left' : 'put back'));
    },
    'destructor' => function () use ($loud): void {
        $object = $loud('local');
        echo 'script;';
    },
    'destructor-at-exit' => function () use ($loud): void {
        $object = $loud('local');
        exit('exit;');
    },
    'destructor-global' => function () use ($loud): void {
        $GLOBALS['kept'] = $loud('global');
        register_shutdown_function(function (): void {
            unset($GLOBALS['kept']);
            echo 'shutdown;';
        });
        echo 'script;';
    },
    'destructor-exit' => function (): void {
        $object = new class () {
            public function __destruct()
            {
                exit('exit in destructor;');
            }
        };
        unset($object);
        echo 'not reached;';
    },
    'destructor-throws' => function (): void {
        $object = new class () {
            public function __destruct()
            {
                throw new Exception('from a destructor');
            }
        };
        try {
            unset($object);
        } catch (Exception $e) {
            echo 'caught ', $e->getMessage();
        }
    },
    'finish' => function () use ($scratch): void {
        echo 'seen;';
        header('X-Before: 1');
        $first = fastcgi_finish_request();
        echo 'unseen;';
        @header('X-After: 1');
        $facts = [$first, fastcgi_finish_request(), connection_status(), connection_aborted(), headers_sent()];
        file_put_contents("$scratch-new", json_encode($facts));
        rename("$scratch-new", $scratch);
    },
    'finish-empty' => fn () => fastcgi_finish_request(),
    'finish-then-fatal' => function (): void {
        echo 'seen;';
        fastcgi_finish_request();
        undefined_function();
    },
    'finish-in-shutdown' => function (): void {
        register_shutdown_function(function (): void {
            echo 'shutdown;';
            fastcgi_finish_request();
            echo 'unseen;';
        });
        echo 'script;';
    },
    'finish-with-buffers' => function (): void {
        ob_start(fn (string $piece): string => strtoupper($piece));
        echo 'shouted;';
        fastcgi_finish_request();
        echo 'unseen;';
    },
    'mark' => function () use ($scratch): void {
        echo str_repeat('.', 10000);
        flush();
        @header('X-End: 1');
        file_put_contents("$scratch-new", 'ran to its end');
        rename("$scratch-new", $scratch);
    },
    'read-mark' => function () use ($scratch): void {
        for ($i = 0; !file_exists($scratch) && $i < 1000; $i++) {
            usleep(2000);
            clearstatcache();
        }
        readfile($scratch);
        unlink($scratch);
    },
    'connection' => function (): void {
        var_dump(connection_status(), connection_aborted(), ignore_user_abort(), ignore_user_abort(true));
        var_dump(ignore_user_abort());
    },
    'ticks' => function (): void {
        register_tick_function(fn () => print('tick;'));
        unregister_tick_function('strlen');
        echo 'script;';
    },
    'generator' => function (): void {
        $generator = (function () {
            try {
                yield 1;
            } finally {
                echo 'finally;';
            }
        })();
        $generator->current();
        echo 'script;';
    },
    'fiber' => function (): void {
        $fiber = new Fiber(function (): void {
            echo Fiber::suspend('suspended;');
            exit('exit in fiber;');
        });
        echo $fiber->start();
        $fiber->resume('resumed;');
        echo 'not reached;';
    },
];

$cases[$_GET['do']]();
