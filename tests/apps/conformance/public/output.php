<?php

/** Output buffers and the output that reaches the client: ?do=NAME. */

declare(strict_types=1);

$cases = [
    'levels' => function (): void {
        echo ob_get_level(), "\n";
        ob_start();
        echo ob_get_level(), "\n";
        ob_start();
        echo ob_get_level(), ' ', json_encode(ob_list_handlers()), "\n";
    },
    'status' => function (): void {
        ob_start(null, 100);
        echo json_encode(ob_get_status(true), JSON_PRETTY_PRINT);
    },
    'length' => function (): void {
        echo 'abc', ob_get_length();
    },
    'clean' => function (): void {
        echo 'a';
        ob_start();
        echo 'dropped';
        ob_end_clean();
        ob_start();
        echo 'kept';
        echo strtoupper(ob_get_clean());
    },
    'clean-outermost' => function (): void {
        echo 'dropped';
        ob_clean();
        header('X-Still: possible');
        echo 'kept';
    },
    'get-flush' => function (): void {
        ob_start();
        echo 'inner';
        $copy = ob_get_flush();
        echo " $copy";
    },
    'too-many-ends' => function (): void {
        ob_end_flush();
        var_dump(ob_end_flush(), ob_end_clean(), ob_get_clean(), ob_get_flush(), ob_get_level());
    },
    'callback' => function (): void {
        ob_start(fn (string $piece): string => strtoupper($piece));
        echo 'through a callback';
    },
    'callback-phases' => function (): void {
        ob_start(fn (string $piece, int $phase): string => "[$phase:$piece]");
        echo 'a';
        ob_flush();
        echo 'b';
        ob_clean();
        echo 'c';
        ob_flush();
        echo 'd';
        ob_end_flush();
    },
    'callback-false' => function (): void {
        ob_start(fn (string $piece) => false);
        echo 'as it was';
    },
    'callback-chunks' => function (): void {
        ob_start(fn (string $piece): string => '<' . $piece . '>', 4);
        echo 'ab';
        echo 'cdefg';
        echo 'h';
    },
    'callback-flags' => function (): void {
        ob_start(null, 0, PHP_OUTPUT_HANDLER_STDFLAGS ^ PHP_OUTPUT_HANDLER_CLEANABLE);
        echo 'a';
        var_dump(ob_clean());
    },
    'callback-nested-start' => function (): void {
        ob_start(function (string $piece): string {
            ob_start();
            return $piece;
        });
        echo 'a';
        ob_end_flush();
        echo 'b';
    },
    'callback-throws' => function (): void {
        ob_start(function (): string {
            throw new Exception('in the callback');
        });
        echo 'a';
        ob_end_flush();
        echo 'b';
    },
    'callback-header' => function (): void {
        ob_start(function (string $piece): string {
            header('X-Length: ' . strlen($piece));
            return $piece;
        });
        echo 'counted';
    },
    'unflushed' => function (): void {
        ob_start();
        echo 'a';
        ob_start(fn (string $piece): string => strrev($piece));
        echo 'cba';
        exit;
    },
    'implicit' => function (): void {
        ob_end_flush();
        ob_implicit_flush();
        echo 'a';
        header('X-Late: 1');
        echo 'b';
    },
    'flush' => function (): void {
        foreach (['one ', 'two ', 'three'] as $word) {
            echo $word;
            ob_flush();
            flush();
        }
    },
    'flush-empty' => function (): void {
        header('X-Before: 1');
        flush();
        echo 'after an empty flush';
    },
    'flush-without-ob-flush' => function (): void {
        echo 'a';
        flush();
        header('X-Still: possible');
        echo 'b';
    },
    'unbuffered' => function (): void {
        while (ob_get_level()) {
            ob_end_clean();
        }
        echo 'a';
        echo 'b';
        header('X-Late: 1');
    },
    'over-the-buffer' => function (): void {
        echo str_repeat('a', 4095);
        header('X-Still: possible');
        echo 'b';
        echo 'c';
        header('X-Late: 1');
    },
    'big' => function (): void {
        for ($i = 0; $i < 20000; $i++) {
            echo md5((string) $i), "\n";
        }
    },
    'big-at-once' => function (): void {
        echo str_repeat("0123456789abcdef", 1 << 17);
    },
    'bytes' => function (): void {
        header('Content-Type: application/octet-stream');
        echo implode('', array_map('chr', range(0, 255)));
    },
    'functions' => function (): void {
        print 'print ';
        printf('%s-%03d ', 'printf', 7);
        file_put_contents('php://output', 'stream ');
        $out = fopen('php://output', 'w');
        fwrite($out, 'fwrite ');
        fprintf($out, '%x ', 255);
        fclose($out);
        readfile(__DIR__ . '/file.txt');
        fpassthru(fopen(__DIR__ . '/file.txt', 'r'));
        var_dump(1.5);
        print_r([1]);
        vprintf('%2$s %1$s', ['a', 'b']);
    },
    'inline' => function (): void {
        ?>inline text

        <?= 1 + 1 ?>

        <?php
    },
    'rewrite' => function (): void {
        output_add_rewrite_var('tag', 'v a');
        echo '<a href="page.php?x=1">a</a><form action="f.php"></form><a href="http://other/">b</a>';
    },
    'rewrite-reset' => function (): void {
        output_add_rewrite_var('tag', 'v');
        echo '<a href="page.php">a</a>';
        output_reset_rewrite_vars();
        echo '<a href="page.php">b</a>';
    },
    'gzhandler' => function (): void {
        ob_start('ob_gzhandler');
        echo str_repeat('compress me ', 100);
    },
    'zlib' => function (): void {
        ob_end_clean();
        ini_set('zlib.output_compression', '1');
        echo str_repeat('compress me ', 100);
    },
    'callback-at-end' => function (): void {
        ob_start(function (string $piece, int $phase): string {
            return $piece . ($phase & PHP_OUTPUT_HANDLER_FINAL ? 'final' : 'more');
        });
        register_shutdown_function(fn () => print('shutdown '));
        echo 'script ';
    },
    'headers-only-then-late' => function (): void {
        header('X-A: 1');
        ob_end_flush();
        flush();
        echo headers_sent() ? 'sent' : 'not sent';
    },
];

$cases[$_GET['do']]();
