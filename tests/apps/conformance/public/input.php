<?php

/** php://input and functions for uploads: ?do=NAME. */

declare(strict_types=1);

$show = static function (mixed ...$values): void {
    foreach ($values as $value) {
        echo json_encode($value, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES), "\n";
    }
};

$cases = [
    'twice' => fn () => $show(file_get_contents('php://input'), file_get_contents('php://input'), $_POST),
    'seek' => function () use ($show): void {
        $input = fopen('php://input', 'r');
        $show(fread($input, 3), ftell($input), rewind($input), stream_get_contents($input), feof($input));
        $show(fseek($input, 2), fread($input, 2), fseek($input, -2, SEEK_END), stream_get_contents($input));
    },
    'two-handles' => function () use ($show): void {
        [$a, $b] = [fopen('php://input', 'r'), fopen('php://input', 'r')];
        $show(fread($a, 4), fread($b, 2), fread($a, 4), stream_get_contents($b));
    },
    'lines' => fn () => $show(file('php://input')),
    'copy' => function () use ($show): void {
        $memory = fopen('php://memory', 'w+');
        $show(stream_copy_to_stream(fopen('php://input', 'r'), $memory), rewind($memory), md5(stream_get_contents($memory)));
    },
    'meta' => function () use ($show): void {
        $input = fopen('php://input', 'r');
        $meta = stream_get_meta_data($input);
        $show($meta['wrapper_type'], $meta['stream_type'], $meta['mode'], $meta['uri'], fwrite($input, 'x'));
    },
    'unread' => fn () => print('nothing was read'),
    'partly' => fn () => $show(fread(fopen('php://input', 'r'), 10)),
    'size' => function () use ($show): void {
        $body = file_get_contents('php://input');
        $show(strlen($body), md5($body), $_SERVER['CONTENT_LENGTH'] ?? null);
    },
    'stdin' => fn () => $show(@file_get_contents('php://stdin')),
    'parse' => function () use ($show): void {
        parse_str(file_get_contents('php://input'), $fields);
        $show($fields);
    },
    'xml' => fn () => $show((string) simplexml_load_string(file_get_contents('php://input'))->a),

    'move' => function () use ($show): void {
        $to = ini_get('session.save_path') . '/moved';
        $from = $_FILES['f']['tmp_name'];
        $show(move_uploaded_file($from, $to), file_exists($from), is_uploaded_file($from), file_get_contents($to));
        $show(decoct(fileperms($to)), move_uploaded_file($from, $to));
        unlink($to);
    },
    'move-other' => fn () => $show(
        is_uploaded_file(__FILE__),
        move_uploaded_file(__FILE__, ini_get('session.save_path') . '/moved'),
        is_uploaded_file('/etc/passwd'),
    ),
    'deleted' => function () use ($show): void {
        // The previous request stored the name of its upload. The file no longer exists.
        $note = ini_get('session.save_path') . '/upload-name';
        if (isset($_FILES['f'])) {
            file_put_contents($note, $_FILES['f']['tmp_name']);
            $show('uploaded');
            return;
        }
        $name = file_get_contents($note);
        for ($i = 0; file_exists($name) && $i < 1000; $i++) {
            usleep(2000);
            clearstatcache();
        }
        $show(file_exists($name), is_uploaded_file($name));
    },
    'kept' => function () use ($show): void {
        $copy = ini_get('session.save_path') . '/copy';
        $show(copy($_FILES['f']['tmp_name'], $copy), filesize($copy), unlink($copy));
    },
];

$cases[$_GET['do']]();
