<?php

declare(strict_types=1);

/*
 * One job for each client. It waits a tenth of a second for another process, and returns its own
 * input.
 */

function connect_pgsql(): PDO
{
    return new PDO('pgsql:host=' . getenv('PGSQL') . ';dbname=tasks;user=postgres');
}

function connect_mysql(): PDO
{
    return new PDO('mysql:unix_socket=' . getenv('MYSQL'), 'root');
}

function connect_redis(): Redis
{
    $redis = new Redis();
    $redis->connect(getenv('REDIS'));

    return $redis;
}

function ask_http(string $address, string $target): mixed
{
    $stream = stream_socket_client($address);
    fwrite($stream, "GET $target HTTP/1.0\r\nHost: localhost\r\n\r\n");

    return substr(stream_get_contents($stream), -strlen($target));
}

function ask_socket(int $i): string
{
    [$host, $port] = explode(':', getenv('HTTP'));
    $socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
    socket_connect($socket, $host, (int) $port);
    socket_write($socket, "GET /$i HTTP/1.0\r\nHost: localhost\r\n\r\n");
    $all = '';
    while (($some = socket_read($socket, 1024)) !== '' && $some !== false) {
        $all .= $some;
    }

    return substr($all, -strlen("/$i"));
}

function ask_curl(string $url): string
{
    $curl = curl_init($url);
    curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 30]);

    return curl_exec($curl);
}

function ask_memcached(int $i): mixed
{
    [$host, $port] = explode(':', getenv('MEMCACHED'));
    $memcached = new Memcached();
    $memcached->setOption(Memcached::OPT_POLL_TIMEOUT, 30000);
    $memcached->addServer($host, (int) $port);
    $memcached->set("key-$i", "/$i");

    return $memcached->get("key-$i");
}

function hold_file(int $i): string
{
    // Pairs of jobs lock the same file.
    $file = fopen(sys_get_temp_dir() . '/tasks-' . getmypid() . '-' . intdiv($i, 2), 'c');
    flock($file, LOCK_EX);
    usleep(100_000);
    flock($file, LOCK_UN);

    return "/$i";
}

const CLIENTS = [
    'pdo_pgsql' => 'job_pdo_pgsql',
    'pgsql' => 'job_pgsql',
    'pgsql_tls' => 'job_pgsql_tls',
    'pdo_pgsql_tls' => 'job_pdo_pgsql_tls',
    'ldap' => 'job_ldap',
    'pipes' => 'job_pipes',
    'pdo_mysql' => 'job_pdo_mysql',
    'mysqli' => 'job_mysqli',
    'redis' => 'job_redis',
    'memcached' => 'ask_memcached',
    'curl' => 'job_curl',
    'curl_multi' => 'job_curl_multi',
    'http' => 'job_http',
    'stream' => 'job_stream',
    'tls' => 'job_tls',
    'sockets' => 'ask_socket',
    'flock' => 'hold_file',
    'child' => 'job_child',
    'shell' => 'job_shell',
    'sleep' => 'job_sleep',
    'select' => 'job_select',
    'semaphore' => 'job_semaphore',
];

function job_pdo_pgsql(int $i): mixed
{
    return connect_pgsql()->query("SELECT '/$i' FROM pg_sleep(0.1)")->fetchColumn();
}

function job_pgsql(int $i): mixed
{
    $connection = pg_connect('host=' . getenv('PGSQL') . ' dbname=tasks user=postgres', PGSQL_CONNECT_FORCE_NEW);

    return pg_fetch_result(pg_query($connection, "SELECT '/$i' FROM pg_sleep(0.1)"), 0, 0);
}

/** Returns a row only if the connection is encrypted. */
const IN_SECRET = 'FROM pg_stat_ssl, pg_sleep(0.1) WHERE pid = pg_backend_pid() AND ssl';

function encrypted(): string
{
    [$host, $port] = explode(':', getenv('ENCRYPTED'));

    return "host=$host port=$port dbname=tasks user=postgres sslmode=require";
}

function job_pgsql_tls(int $i): mixed
{
    $connection = pg_connect(encrypted(), PGSQL_CONNECT_FORCE_NEW);

    return pg_fetch_result(pg_query($connection, "SELECT '/$i' " . IN_SECRET), 0, 0);
}

function job_pdo_pgsql_tls(int $i): mixed
{
    $db = new PDO('pgsql:' . strtr(encrypted(), ' ', ';'));

    return $db->query("SELECT '/$i' " . IN_SECRET)->fetchColumn();
}

function job_ldap(int $i): string
{
    $ldap = ldap_connect('ldap://' . getenv('LDAP'));
    ldap_set_option($ldap, LDAP_OPT_PROTOCOL_VERSION, 3);
    $found = ldap_bind($ldap) ? ldap_search($ldap, 'dc=tea', '(cn=cup)') : false;

    return '/' . ($i + ldap_count_entries($ldap, $found) - 1);
}

function job_pipes(int $i): string
{
    $child = proc_open(['sh', '-c', 'read line; sleep 0.1; echo "/$line"'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
    fwrite($pipes[0], "$i\n");
    $line = fgets($pipes[1]);
    proc_close($child);

    return trim($line);
}

function job_pdo_mysql(int $i): mixed
{
    return connect_mysql()->query("SELECT '/$i', SLEEP(0.1)")->fetchColumn();
}

function job_mysqli(int $i): mixed
{
    return (new mysqli(null, 'root', '', '', 0, getenv('MYSQL')))->query("SELECT '/$i', SLEEP(0.1)")->fetch_row()[0];
}

function job_redis(int $i): mixed
{
    $redis = connect_redis();
    $redis->set("key-$i", "/$i");
    $redis->rawCommand('BLPOP', "nothing-$i", '0.1');

    return $redis->get("key-$i");
}

function job_curl(int $i): string
{
    return ask_curl('http://' . getenv('HTTP') . "/$i");
}

function job_curl_multi(int $i): string
{
    $multi = curl_multi_init();
    $curl = curl_init('http://' . getenv('HTTP') . "/$i");
    curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
    curl_multi_add_handle($multi, $curl);
    do {
        curl_multi_exec($multi, $running);
        $running && curl_multi_select($multi, 1.0);
    } while ($running);

    return curl_multi_getcontent($curl);
}

function job_http(int $i): string
{
    return file_get_contents('http://' . getenv('HTTP') . "/$i");
}

function job_stream(int $i): mixed
{
    return ask_http('tcp://' . getenv('HTTP'), "/$i");
}

function job_tls(int $i): mixed
{
    $trust = stream_context_create(['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]]);

    return file_get_contents('https://' . getenv('TLS') . "/$i", false, $trust);
}

function job_child(int $i): string
{
    $pipes = [];

    return '/' . ($i + proc_close(proc_open(['sleep', '0.1'], [], $pipes)));
}

function job_shell(int $i): string
{
    return trim(shell_exec("sleep 0.1; echo /$i"));
}

function job_sleep(int $i): string
{
    match ($i % 3) {
        0 => usleep(100_000),
        1 => time_nanosleep(0, 100_000_000),
        2 => Samovar\delay(0.1),
    };

    return "/$i";
}

function job_select(int $i): string
{
    $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $read = [$pair[0]];
    $none = null;
    stream_select($read, $none, $none, 0, 100_000);

    return $read === [] ? "/$i" : 'what?';
}

function job_semaphore(int $i): string
{
    $semaphore = sem_get(getmypid() * 64 + intdiv($i, 2));
    sem_acquire($semaphore);
    usleep(100_000);
    $i % 2 ? sem_release($semaphore) && sem_remove($semaphore) : sem_release($semaphore);

    return "/$i";
}
