<?php

declare(strict_types=1);

/*
 * Names of a slow DNS server. nN.test is 10.0.0.N, also in reverse, and has the text "/N". The
 * server reports that missing.test does not exist, and does not respond for deaf.test.
 * tests/suite/parallel/names.rs compares the results.
 */

const NAMES = [
    'jobs' => 'names_jobs',
    'alike' => 'names_alike',
    'given up' => 'names_given_up',
    'not seen' => 'names_not_seen',
    'killed' => 'names_killed',
    'forked' => 'names_forked',
    'left' => 'names_left',
    'exit' => 'names_exit',
    'fatal' => 'names_fatal',
    'own' => 'names_own',
    'leaves its own' => 'names_leaves_its_own',
];

function look_up(int $i): mixed
{
    return match ($i % 4) {
        0 => strrchr(gethostbyname("n$i.test"), '.'),
        1 => dns_get_record("n$i.test", DNS_TXT)[0]['txt'],
        2 => strstr(gethostbyaddr("10.0.0.$i"), '.', true),
        3 => socket_addrinfo_explain(socket_addrinfo_lookup("n$i.test", '80')[0])['ai_addr'],
    };
}

function names_jobs(): array
{
    return Samovar\parallel(array_map(fn (int $i) => fn () => look_up($i), range(0, 99)));
}

/** Returns the results of each function for existing names, and for others. */
function ask_all(): array
{
    $addresses = fn (string $host, array $hints) => array_map(
        'socket_addrinfo_explain',
        @socket_addrinfo_lookup($host, '80', $hints) ?: [],
    );
    $family = ['ai_family' => AF_INET];

    return [
        gethostbyname('n1.test'),
        gethostbyname('missing.test'),
        gethostbyname('localhost'),
        gethostbyname('127.0.0.1'),
        gethostbyname(str_repeat('x', 250)),
        gethostbynamel('n2.test'),
        gethostbynamel('many.test'),
        gethostbynamel('missing.test'),
        gethostbyaddr('10.0.0.3'),
        gethostbyaddr('10.0.1.3'),
        gethostbyaddr('127.0.0.1'),
        $addresses('n4.test', $family),
        $addresses('n4.test', ['ai_flags' => AI_CANONNAME]),
        $addresses('n4.test', $family + ['ai_socktype' => SOCK_STREAM, 'ai_protocol' => SOL_TCP]),
        $addresses('many.test', $family),
        $addresses('missing.test', $family),
        $addresses('10.0.0.1', ['ai_flags' => AI_NUMERICHOST]),
        $addresses('n4.test', ['ai_flags' => AI_NUMERICHOST]),
        @dns_get_record('n5.test', DNS_A + DNS_TXT),
        @dns_get_record('missing.test', DNS_A),
        checkdnsrr('n6.test', 'A'),
        checkdnsrr('missing.test', 'A'),
        caught(fn () => @stream_socket_client('tcp://missing.test:80', $code, $message, 5)),
        @file_get_contents('http://missing.test/'),
        error_get_last()['message'] ?? '',
    ];
}

function names_alike(): array
{
    $alone = ask_all();

    return [$alone, Samovar\parallel([fn () => ask_all(), fn () => Samovar\delay(0.001) ?? ask_all()])];
}

function names_given_up(): array
{
    $late = caught(fn () => Samovar\parallel([fn () => gethostbyname('deaf.test'), fn () => 1], 0.05));
    $task = Samovar\async(fn () => dns_get_record('deaf.test', DNS_TXT));
    $task->cancel();
    $cancelled = caught(fn () => $task->await());
    $first = Samovar\first([fn () => socket_addrinfo_lookup('deaf.test'), fn () => gethostbyname('n1.test')]);

    return [$late[0], $cancelled[0], $first];
}

/** The process that resolves names must not appear as a child of PHP. */
function names_not_seen(): array
{
    $seen = 0;
    pcntl_async_signals(true);
    pcntl_signal(SIGCHLD, function () use (&$seen) {
        $seen++;
    });
    $all = Samovar\parallel([fn () => gethostbyname('n1.test'), fn () => Samovar\delay(0.01) ?? pcntl_wait($status)]);
    pcntl_signal(SIGCHLD, SIG_DFL);
    pcntl_async_signals(false);

    return [$all, $seen];
}

function children(): array
{
    $pid = getmypid();

    return array_map('intval', preg_split('/ /', file_get_contents("/proc/$pid/task/$pid/children"), -1, PREG_SPLIT_NO_EMPTY));
}

function names_killed(): array
{
    $answers = Samovar\parallel([
        fn () => gethostbyname('n1.test'),
        fn () => gethostbyname('n2.test'),
        fn () => Samovar\delay(0.01) ?? array_map(fn (int $pid) => posix_kill($pid, SIGKILL), children()),
    ]);

    return [$answers, Samovar\parallel([fn () => gethostbyname('n3.test')]), children()];
}

function names_forked(): array
{
    $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $all = Samovar\parallel([
        fn () => gethostbyname('n1.test'),
        function () use ($pair): string {
            Samovar\delay(0.01);
            $pid = pcntl_fork();
            if ($pid === 0) {
                fwrite($pair[1], 'child ' . gethostbyname('n2.test') . "\n");
                posix_kill(posix_getpid(), SIGKILL);
            }
            $said = fgets($pair[0]);
            pcntl_waitpid($pid, $status);

            return $said . pcntl_wtermsig($status);
        },
    ]);

    return [$all, children()];
}

function names_left(): array
{
    Samovar\async(fn () => gethostbyname('deaf.test'));
    Samovar\async(fn () => socket_addrinfo_lookup('deaf.test'));

    return ['left'];
}

function names_exit(): never
{
    Samovar\async(fn () => gethostbyname('deaf.test'));
    exit('{}');
}

function names_fatal(): never
{
    Samovar\async(fn () => gethostbyname('deaf.test'));
    Samovar\parallel([fn () => Samovar\delay(0.001) ?? trigger_error('ended', E_USER_ERROR)]);
}

/** Code outside a task looks up a name, and still waits when the last task has ended. */
function names_own(): array
{
    $task = Samovar\async(fn () => Samovar\delay(0.001) ?? 'task');

    return [gethostbyname('n7.test'), $task->isDone(), children()];
}

/** The request ends in the middle of this lookup. */
function names_leaves_its_own(): never
{
    Samovar\async(fn () => Samovar\delay(0.001) ?? trigger_error('ended', E_USER_ERROR));
    gethostbyname('deaf.test');
    exit('not reached');
}
