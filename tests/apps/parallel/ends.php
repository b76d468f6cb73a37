<?php

declare(strict_types=1);

/* Ends the request while tasks wait for pending operations. */

function end_by(string $how): string
{
    $waiting = [
        function () {
            $db = connect_pgsql();
            $db->beginTransaction();
            $db->exec("SET application_name = 'tasks'");
            $db->query('SELECT pg_sleep(1)');
        },
        function () {
            $db = connect_mysql();
            $db->query('SELECT SLEEP(1)');
        },
        fn () => connect_redis()->rawCommand('BLPOP', 'nothing', '60'),
        fn () => ask_curl('http://' . getenv('DEAF') . '/'),
        fn () => (new Fiber(fn () => file_get_contents('http://' . getenv('DEAF') . '/')))->start(),
        fn () => (new Samovar\Channel())->receive(60.0),
        fn () => fread(stream_socket_client('tcp://' . getenv('DEAF'), $e, $m, 60), 1),
        fn () => job_tls_slow(),
        function () {
            ob_start();
            echo 'never seen';
            sleep(60);
        },
    ];
    foreach ($waiting as $work) {
        $tasks[] = Samovar\async($work);
    }
    Samovar\delay(0.01);
    match ($how) {
        'exit' => exit('ended'),
        'exit in a task' => Samovar\parallel([fn () => Samovar\delay(0.001) ?? exit('ended')]),
        'fatal' => trigger_error('ended', E_USER_ERROR),
        'fatal in a task' => Samovar\parallel([fn () => Samovar\delay(0.001) ?? trigger_error('ended', E_USER_ERROR)]),
        'memory' => Samovar\parallel([fn () => str_repeat('x', 1 << 30)]),
        'exception' => throw new Exception('ended'),
        'limit' => set_time_limit(1) && Samovar\parallel([function () {
            while (true) {
            }
        }]),
        'overtime' => Samovar\delay(60),
        'abort' => until_aborted(),
        'return' => null,
        'shutdown' => register_shutdown_function(fn () => Samovar\async(fn () => connect_pgsql()->query('SELECT pg_sleep(1)'))),
        'cancel' => array_walk($tasks, fn (Samovar\Task $task) => $task->cancel()),
    };

    return 'ended';
}

function job_tls_slow(): mixed
{
    $trust = stream_context_create(['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]]);
    $stream = stream_socket_client('tls://' . getenv('TLS'), $e, $m, 60, STREAM_CLIENT_CONNECT, $trust);

    return fread($stream, 1);
}

function until_aborted(): void
{
    while (!connection_aborted()) {
        echo str_repeat('x', 100_000);
        flush();
        Samovar\delay(0.002);
    }
}
