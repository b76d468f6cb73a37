<?php

/** Sessions: ?do=NAME. Session IDs are never printed, because they are random. */

declare(strict_types=1);

$show = static function (mixed $value): void {
    echo json_encode($value, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES), "\n";
};

$cases = [
    'count' => function () use ($show): void {
        session_start();
        $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
        $show($_SESSION);
    },
    'read' => function () use ($show): void {
        $show(session_start(['read_and_close' => true]));
        $show([session_status() === PHP_SESSION_ACTIVE, $_SESSION]);
    },
    'status' => function () use ($show): void {
        $show([session_status(), isset($_SESSION), session_id(), session_name()]);
        session_start();
        $show([session_status(), isset($_SESSION), strlen(session_id())]);
        session_write_close();
        $show([session_status(), isset($_SESSION), strlen(session_id())]);
    },
    'id-kept' => function () use ($show): void {
        session_start();
        $show(session_id() === ($_COOKIE['PHPSESSID'] ?? null));
    },
    'regenerate' => function () use ($show): void {
        session_start();
        $before = session_id();
        $show([session_regenerate_id(), session_id() !== $before, $_SESSION]);
    },
    'regenerate-delete' => function () use ($show): void {
        session_start();
        $file = session_save_path() . '/sess_' . session_id();
        $show([session_regenerate_id(true), file_exists($file), $_SESSION]);
    },
    'destroy' => function () use ($show): void {
        session_start();
        $_SESSION = [];
        setcookie(session_name(), '', 1);
        $show([session_destroy(), session_status(), $_SESSION]);
    },
    'flash-set' => function (): void {
        session_start();
        $_SESSION['flash'][] = 'saved';
        header('Location: /session.php?do=flash-show', true, 303);
    },
    'flash-show' => function () use ($show): void {
        session_start();
        $show($_SESSION['flash'] ?? 'none');
        unset($_SESSION['flash']);
    },
    'written-early' => function () use ($show): void {
        session_start();
        $_SESSION['a'] = 'kept';
        session_write_close();
        $_SESSION['a'] = 'lost';
        $show($_SESSION);
    },
    'abort' => function () use ($show): void {
        session_start();
        $_SESSION['aborted'] = true;
        $show([session_abort(), session_status()]);
    },
    'reset' => function () use ($show): void {
        session_start();
        $_SESSION['count'] = 99;
        session_reset();
        $show($_SESSION);
    },
    'unset' => function () use ($show): void {
        session_start();
        session_unset();
        $show($_SESSION);
    },
    'twice' => function () use ($show): void {
        $show(session_start());
        $show(session_start());
    },
    'late' => function () use ($show): void {
        echo "early\n";
        ob_end_flush();
        flush();
        $show(session_start());
    },
    'name' => function () use ($show): void {
        $show(session_name('OTHER'));
        session_start();
        $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
        $show($_SESSION);
    },
    'set-id' => function () use ($show): void {
        session_id('chosen-by-the-script');
        session_start();
        $show([session_id(), $_SESSION]);
        // All clients use the same session ID. The second request removes the data.
        isset($_SESSION['mine']) ? session_destroy() : $_SESSION['mine'] = 1;
    },
    'strict' => function () use ($show): void {
        ini_set('session.use_strict_mode', '1');
        session_start();
        $show(session_id() === ($_COOKIE['PHPSESSID'] ?? null));
    },
    'cookie-params' => function () use ($show): void {
        session_set_cookie_params(['path' => '/p', 'httponly' => true, 'secure' => true, 'samesite' => 'Lax']);
        $show(session_get_cookie_params());
        session_start();
    },
    'default-params' => fn () => $show(session_get_cookie_params()),
    'options' => function (): void {
        session_start(['name' => 'OPTS', 'cookie_path' => '/o', 'cookie_httponly' => '1', 'sid_length' => '40']);
        echo strlen(session_id());
    },
    'limiter' => function () use ($show): void {
        session_cache_limiter($_GET['limiter']);
        session_cache_expire(10);
        session_start();
        $show([session_cache_limiter(), session_cache_expire()]);
    },
    'no-cookies' => function () use ($show): void {
        session_start(['use_cookies' => '0']);
        $show(strlen(session_id()));
    },
    'trans-sid' => function (): void {
        ini_set('session.use_only_cookies', '0');
        ini_set('session.use_trans_sid', '1');
        session_id('fixed-for-the-links');
        session_start();
        echo '<a href="next.php">next</a>';
    },
    'types' => function () use ($show): void {
        session_start();
        $_SESSION ??= [];
        if (!isset($_SESSION['types'])) {
            $object = new ArrayObject([1, 2]);
            $_SESSION['types'] = [1, 1.5, true, null, "a\0b", $object, $object, new DateTimeImmutable('2000-01-01')];
        }
        $types = $_SESSION['types'];
        $show([serialize($types), $types[5] === $types[6]]);
    },
    'encode' => function () use ($show): void {
        session_start();
        $_SESSION['a'] = [1, 'b'];
        $_SESSION['c'] = false;
        $show(session_encode());
        session_decode('x|i:5;');
        $show($_SESSION);
    },
    'php-serialize' => function () use ($show): void {
        session_start(['serialize_handler' => 'php_serialize']);
        $_SESSION['a|b'] = ($_SESSION['a|b'] ?? 0) + 1;
        $show([session_encode(), ini_get('session.serialize_handler')]);
    },
    'big' => function () use ($show): void {
        session_start();
        $show(md5($_SESSION['big'] ?? ''));
        $_SESSION['big'] = str_repeat('0123456789', 50000);
    },
    'handler' => function () use ($show): void {
        $calls = [];
        session_set_save_handler(new class ($calls) implements SessionHandlerInterface {
            public function __construct(private array &$calls)
            {
            }

            public function open(string $path, string $name): bool
            {
                $this->calls[] = "open $name";
                return true;
            }

            public function close(): bool
            {
                echo 'close;';
                return true;
            }

            public function read(string $id): string
            {
                $this->calls[] = 'read';
                return 'a|i:1;';
            }

            public function write(string $id, string $data): bool
            {
                echo "write $data;";
                return true;
            }

            public function destroy(string $id): bool
            {
                return true;
            }

            public function gc(int $lifetime): int
            {
                return 0;
            }
        }, true);
        session_start();
        $_SESSION['b'] = 2;
        $show([$calls, $_SESSION]);
    },
    'fatal' => function (): void {
        session_start();
        $_SESSION['before'] = 'the error';
        undefined_function();
    },
    'exit' => function (): void {
        session_start();
        $_SESSION['before'] = 'the exit';
        exit;
    },
    'in-shutdown' => function (): void {
        session_start();
        register_shutdown_function(function (): void {
            $_SESSION['shutdown'] = true;
            echo session_status();
        });
    },
    'finished' => function (): void {
        session_start();
        echo 'seen';
        fastcgi_finish_request();
        $_SESSION['after'] = 'finished';
    },
];

$cases[$_GET['do']]();
