//! State outside the process that changes while memory is rolled back: connections, pipes,
//! datagrams, ciphers, sessions of servers. None of it may reach the next visitor. Either the state
//! is proven unchanged, or the worker leaves.

use samovar_testkit::{MariaDb, Postgres, Redis, Server, Start, eventually};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};

pub(crate) fn script(php: &str) -> Start {
    Server::script(&format!("<?php\n{php}")).workers(1)
}

fn reasons(server: &Server) -> Value {
    server.status()["image"]["refork_reasons"].clone()
}

fn left(server: &Server) -> u64 {
    reasons(server)["connection"].as_u64().unwrap_or_default()
}

fn booted(server: Server) -> Server {
    eventually("a worker that has booted", || {
        (server.status()["workers"][0]["model"] == "checkpoint").then_some(())
    });
    server
}

/// Starts a server that sends two lines for each received line: `1 QUESTION`, `2 QUESTION`.
pub(crate) fn two_lines_each() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut writer = client.try_clone().expect("a socket");
                for line in BufReader::new(client).lines().map_while(Result::ok) {
                    if writer.write_all(format!("1 {line}\n2 {line}\n").as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn rest_of_partial_response_does_not_reach_next_visitor() {
    let port = two_lines_each();
    let server = booted(
        script(&format!(
            "$s = stream_socket_client('tcp://127.0.0.1:{port}'); stream_set_read_buffer($s, 0);
             stream_set_chunk_size($s, 1);
             Samovar\\checkpoint();
             switch ($_GET['do'] ?? '') {{
                 case 'half': fwrite($s, \"ann\\n\"); echo fgets($s); exit;
                 case 'all': fwrite($s, \"bob\\n\"); echo fgets($s), fgets($s); break;
                 case 'kept': fwrite($s, \"eve\\n\"); echo fgets($s), fgets($s);
                     var_dump(Samovar\\kept($s)); break;
                 case 'early': Samovar\\kept($s); fwrite($s, \"eve\\n\");
                     echo fgets($s), fgets($s); break;
                 case 'not': var_dump(Samovar\\kept(fopen(__FILE__, 'r'))); break;
                 case 'child':
                     if (!pcntl_fork()) {{ fwrite($s, \"ann\\n\"); posix_kill(posix_getpid(), 9); }}
                     pcntl_wait($w); break;
                 case 'copy': $d = proc_open(['true'], [$s], $none); proc_close($d); break;
                 case 'wrong': try {{ Samovar\\kept(1); }} catch (TypeError $e) {{
                     echo $e->getMessage(); }} break;
                 default: echo getmypid();
             }}"
        ))
        .start(),
    );
    assert_eq!(server.get("/?do=half").text(), "1 ann\n");
    assert_eq!(server.get("/?do=all").text(), "1 bob\n2 bob\n");
    eventually("two that have left: nobody knows that language", || {
        (left(&server) == 2).then_some(())
    });
    let pid = server.get("/").text();
    for _ in 0..3 {
        assert_eq!(server.get("/?do=kept").text(), "1 eve\n2 eve\nbool(true)\n");
    }
    assert_eq!(server.get("/?do=not").text(), "bool(false)\n");
    assert!(server.get("/?do=wrong").text().contains("must be a stream or a Socket, int given"));
    assert_eq!(server.get("/").text(), pid, "declared clean: it stays");
    assert_eq!(server.get("/?do=early").text(), "1 eve\n2 eve\n");
    assert_ne!(server.get("/").text(), pid, "what is said later was not declared");
    for other in ["child", "copy"] {
        let pid = server.get("/").text();
        server.get(&format!("/?do={other}"));
        assert_ne!(server.get("/").text(), pid, "{other}: done by another process");
        assert_eq!(server.get("/?do=all").text(), "1 bob\n2 bob\n", "{other}");
    }
    let finding = &server.status()["image"]["findings"][0];
    assert!(finding["advice"].as_str().is_some_and(|a| a.contains("Samovar\\kept")), "{finding}");
    server.stop();
}

#[test]
fn output_of_child_does_not_reach_next_visitor() {
    for descriptors in ["[['pipe', 'r'], ['pipe', 'w']]", "[['pty'], ['pty']]"] {
        let server = booted(
            script(&format!(
                "$command = ['setpriv', '--pdeathsig', 'KILL', 'sed', '-u', 'p'];
                 $p = proc_open($command, {descriptors}, $pipes);
                 stream_set_read_buffer($pipes[1], 0); stream_set_chunk_size($pipes[1], 1);
                 Samovar\\checkpoint();
                 if (isset($_GET['say'])) {{
                     fwrite($pipes[0], $_GET['say'] . \"\\n\"); echo fgets($pipes[1]); exit;
                 }}
                 echo getmypid();"
            ))
            .start(),
        );
        assert_eq!(server.get("/?say=ann").text().trim(), "ann", "{descriptors}");
        assert_eq!(server.get("/?say=bob").text().trim(), "bob", "{descriptors}");
        let pid = server.get("/").text();
        assert_eq!(server.get("/").text(), pid, "unused: it stays");
        server.stop();
    }
}

/// Starts a server that sends each datagram back.
pub(crate) fn echoing_datagrams() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = socket.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let mut question = [0; 64];
        while let Ok((len, from)) = socket.recv_from(&mut question) {
            let _ = socket.send_to(&question[..len], from);
        }
    });
    port
}

#[test]
fn late_datagram_does_not_reach_next_visitor() {
    let port = echoing_datagrams();
    let server = script(&format!(
        "$s = stream_socket_client('udp://127.0.0.1:{port}');
         Samovar\\checkpoint();
         if (isset($_GET['tell'])) {{
             fwrite($s, $_GET['tell']); usleep((int) ($_GET['wait'] ?? 0)); }}
         if (isset($_GET['ask'])) {{
             fwrite($s, $_GET['ask']); stream_set_timeout($s, 5); echo fread($s, 64); exit; }}
         echo getmypid();"
    ))
    .start();
    let pid = server.get("/?tell=statistics&wait=20000").text();
    for n in 0..3 {
        assert_eq!(server.get(&format!("/?tell=ann{n}")).text(), pid, "what is only sent is well");
    }
    let response = server.get("/?ask=bob").text();
    assert!(!response.contains("ann"), "another one's answer: {response}");
    for who in ["ann", "bob", "eve"] {
        assert_eq!(server.get(&format!("/?ask={who}")).text(), who);
    }
    eventually("three that have left", || (left(&server) >= 3).then_some(()));
    server.stop();
}

#[test]
fn socket_bound_by_request_does_not_persist() {
    let server = booted(
        script(
            "$u = socket_create(AF_INET, SOCK_DGRAM, SOL_UDP);
             $t = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
             Samovar\\checkpoint();
             if (isset($_GET['bind'])) { socket_bind(${$_GET['bind']}, '127.0.0.1'); }
             socket_getsockname($u, $a, $p); socket_getsockname($t, $b, $q); echo $p + $q;",
        )
        .start(),
    );
    for which in ["u", "t"] {
        assert_ne!(server.get(&format!("/?bind={which}")).text(), "0");
        assert_eq!(server.get("/").text(), "0", "{which}");
    }
    server.stop();
}

/// Each library that starts TLS or SSH sends these bytes, with or without OpenSSL.
#[test]
fn tls_or_ssh_of_any_library_is_detected() {
    let port = two_lines_each();
    for hello in ["\\x16\\x03\\x01\\x00\\x04\\x01abc", "SSH-2.0-libssh2_1.10.0\\r\\n"] {
        let server = script(&format!(
            "$s = stream_socket_client('tcp://127.0.0.1:{port}'); fwrite($s, \"{hello}\");
             Samovar\\checkpoint(); echo 'below';"
        ))
        .start();
        let image = eventually("an image, or none", || {
            let image = server.status()["image"].clone();
            image["mode"].is_string().then_some(image)
        });
        assert_eq!(image["mode"], "script", "{hello}: {image}");
        assert_eq!(image["findings"][0]["kind"], "tls", "{hello}: {image}");
        assert_eq!(server.get("/").text(), "below");
        server.stop();
    }
}

/// Number of sessions that did not stay as they were: of workers that have left, and of resets.
fn replaced_sessions(server: &Server) -> u64 {
    let image = server.status()["image"].clone();
    left(server) + image["connection_resets_total"].as_u64().expect("a count")
}

/// After each of `changes` a visitor sees the first result of `/?see`, and the session was reset or
/// the worker has left. `harmless` requests do neither.
fn leaves_nothing(server: &Server, changes: &[&str], harmless: &[&str]) {
    let first = server.get("/?see").text();
    for target in harmless {
        let response = server.get(target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        assert_eq!(server.get("/?see").text(), first, "after {target}");
    }
    assert_eq!(replaced_sessions(server), 0, "harmless: {}", server.log());
    let mut wrong = Vec::new();
    for (n, target) in changes.iter().enumerate() {
        server.get(target);
        let (seen, replaced) = (server.get("/?see").text(), replaced_sessions(server));
        if seen != first || replaced != n as u64 + 1 {
            wrong.push(format!("after {target}: {seen}; {replaced} were replaced"));
        }
    }
    assert!(wrong.is_empty(), "{}\nfirst: {first}", wrong.join("\n"));
}

#[test]
fn mysql_session_is_unchanged_or_replaced() {
    let database = MariaDb::start();
    for connect in ["mysqli", "pdo"] {
        let php = r#"
            $socket = getenv('DATABASE_SOCKET');
            if ('CONNECT' === 'pdo') {
                $db = new PDO("mysql:unix_socket=$socket", 'root', '', [
                    PDO::ATTR_EMULATE_PREPARES => false,
                    PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => true]);
                $db->exec('CREATE DATABASE IF NOT EXISTS tea'); $db->exec('USE tea');
                $one = fn ($sql) => $db->query($sql)->fetch(PDO::FETCH_NUM)[0];
                $run = fn ($s, $v) => $s->execute([$v]);
            } else {
                $run = fn ($s, $v) => $s->execute([$v]) && $s->get_result() && null;
                $db = new mysqli(null, 'root', '', '', 0, $socket);
                $db->query('CREATE DATABASE IF NOT EXISTS tea'); $db->select_db('tea');
                $one = fn ($sql) => $db->query($sql)->fetch_row()[0];
            }
            $db->query('CREATE TABLE IF NOT EXISTS cups (n INT, t TEXT) ENGINE=InnoDB');
            $db->query('SET SESSION lock_wait_timeout = 77');
            $above = $db->prepare('SELECT ?');
            Samovar\checkpoint();
            if (isset($_GET['see'])) {
                $named = $db->prepare('SELECT ?'); $run($named, 1); unset($named);
                $run($above, 5); unset($above);
                echo json_encode([
                    $one('SELECT @@autocommit'), $one('SELECT @@character_set_client'),
                    $one('SELECT @@lock_wait_timeout'), $one('SELECT @@sql_mode'),
                    $one("SELECT IS_USED_LOCK('l')"),
                    $one('SELECT DATABASE()')]);
                exit;
            }
            eval($_GET['do']);
        "#;
        let socket = database.socket().display().to_string();
        let server = script(&php.replace("CONNECT", connect)).env("DATABASE_SOCKET", &socket);
        let server = booted(server.start());
        let common = [
            "/?do=$db->query('SET%20@a=1');",
            "/?do=$db->query('SET%20NAMES%20gbk');",
            "/?do=$db->query('CREATE%20TEMPORARY%20TABLE%20x%20(n%20INT)');",
            "/?do=$one(\"SELECT%20GET_LOCK('l',0)\");",
            "/?do=$one('SELECT%20@a:=7');",
            "/?do=$one('SELECT%20/*!%20@a:=*/7');",
            "/?do=$one('SELECT%20`x`,%20LAST_INSERT_ID(9)%20FROM%20(SELECT%201%20x)%20y');",
            "/?do=$db->query('USE%20information_schema');",
            "/?do=$db->query(\"PREPARE%20p%20FROM%20'SELECT%201'\");",
            "/?do=$db->query('SET%20autocommit=0');",
        ];
        let own: &[&str] = if connect == "mysqli" {
            &[
                "/?do=$db->autocommit(false);",
                "/?do=$db->set_charset('gbk');",
                "/?do=$db->select_db('information_schema');",
                "/?do=$above->close();",
                "/?do=$db->real_query('SELECT%201');",
            ]
        } else {
            &[
                "/?do=$db->setAttribute(PDO::ATTR_AUTOCOMMIT,0);",
                "/?do=$db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY,false);$above->execute([1]);",
            ]
        };
        let harmless = [
            "/?do=echo%20$one('SELECT%20COUNT(*)%20FROM%20cups');",
            "/?do=$db->query(\"INSERT%20INTO%20cups%20VALUES(1,'ann@example.org;%20--%20/*%20it\\\\'s')\");",
            "/?do=$s=$db->prepare('UPDATE%20cups%20SET%20n=?');$s->execute([5]);",
            "/?do=$db->query('BEGIN');$db->query('DELETE%20FROM%20cups');exit;",
            "/?do=if($one('SELECT%20COUNT(*)%20FROM%20cups')<1)http_response_code(500);",
        ];
        leaves_nothing(&server, &[&common[..], own].concat(), &harmless);
        server.stop();
    }
}

#[test]
fn postgresql_session_is_unchanged_or_replaced() {
    let database = Postgres::with(&["tea"]);
    let host = database.folder();
    for connect in ["pgsql", "pdo"] {
        let php = r#"
            $host = getenv('DATABASE_HOST');
            if ('CONNECT' === 'pdo') {
                $db = new PDO("pgsql:host=$host;dbname=tea;user=postgres");
                $ask = fn ($sql) => $db->query($sql);
                $one = fn ($sql) => $db->query($sql)->fetch(PDO::FETCH_NUM)[0];
                $prepared = function ($v) use ($db) {
                    $s = $db->prepare('SELECT ?::int'); $s->execute([$v]); return $s; };
            } else {
                $db = pg_connect("host=$host dbname=tea user=postgres");
                $ask = fn ($sql) => pg_query($db, $sql);
                $one = fn ($sql) => pg_fetch_row(pg_query($db, $sql))[0];
                $prepared = fn ($v) => pg_fetch_row(pg_query_params($db, 'SELECT $1::int', [$v]));
            }
            $ask('CREATE TABLE IF NOT EXISTS cups (n INT, t TEXT)');
            $ask("SET lock_timeout = '77s'");
            Samovar\checkpoint();
            if (isset($_GET['see'])) {
                $prepared(1);
                echo json_encode([
                    $one('SHOW client_encoding'), $one('SHOW lock_timeout'),
                    $one('SHOW search_path'),
                    $one("SELECT COUNT(*) FROM pg_locks
                        WHERE locktype = 'advisory' AND pid = pg_backend_pid()"),
                    $one('SELECT COUNT(*) FROM pg_prepared_statements'),
                    $one('SELECT COUNT(*) FROM pg_cursors'),
                    $one("SELECT COUNT(*) FROM pg_class
                        WHERE relname = 'x' AND relnamespace = pg_my_temp_schema()")]);
                exit;
            }
            eval($_GET['do']);
        "#;
        let server = script(&php.replace("CONNECT", connect)).env("DATABASE_HOST", host);
        let server = booted(server.start());
        let common = [
            "/?do=$ask(\"SET%20search_path%20TO%20pg_catalog\");",
            "/?do=$ask(\"SET%20client_encoding%20TO%20'LATIN1'\");",
            "/?do=$ask('CREATE%20TEMP%20TABLE%20x%20(n%20INT)');",
            "/?do=$ask('SELECT%201%20AS%20n%20INTO%20TEMP%20x');",
            "/?do=$one('SELECT%20pg_advisory_lock(1)');",
            "/?do=$one('SELECT%20\"pg_advisory_lock\"(1)');",
            "/?do=$one(\"SELECT%20set_config('search_path','pg_catalog',false)\");",
            "/?do=$ask('SELECT%201;SET%20lock_timeout=5');",
            "/?do=$ask('LISTEN%20news');",
            "/?do=$ask('PREPARE%20p%20AS%20SELECT%201');",
            "/?do=$ask('DECLARE%20c%20CURSOR%20WITH%20HOLD%20FOR%20SELECT%201');",
        ];
        let own: &[&str] = if connect == "pgsql" {
            &[
                "/?do=pg_prepare($db,'p','SELECT%201');",
                "/?do=pg_send_query($db,'SELECT%201');",
                "/?do=pg_set_client_encoding($db,'LATIN1');",
            ]
        } else {
            // In an aborted transaction the server refuses to deallocate the prepared statement.
            &[
                "/?do=$db->beginTransaction();$s=$prepared(1);try{$ask('SELECT%201/0');}catch(Throwable$e){}exit;",
            ]
        };
        let harmless = [
            "/?do=echo%20$one('SELECT%20COUNT(*)%20FROM%20cups');",
            "/?do=$ask(\"INSERT%20INTO%20cups%20VALUES(1,'ann@example.org;%20--%20/*%20it''s\\\\')\");",
            "/?do=$prepared(5);",
            "/?do=$ask(\"INSERT%20INTO%20cups%20VALUES(2,'\".str_repeat('x',20000).\"')\");",
            "/?do=$ask('BEGIN');$ask('DELETE%20FROM%20cups');exit;",
            "/?do=try{@$ask('SELECT%20nonsense');}catch(Throwable$e){}",
            "/?do=if($one('SELECT%20COUNT(*)%20FROM%20cups')<2)http_response_code(500);",
        ];
        leaves_nothing(&server, &[&common[..], own].concat(), &harmless);
        server.stop();
    }
}

/// Checks the guide's recommended code against failures of the database: the next visitor gets a
/// response, over a new connection.
fn outlives_its_database(server: &Server, what: &str, mut restart: impl FnMut()) {
    let findings = server.status()["image"]["findings"].clone();
    let kinds: Vec<_> = findings.as_array().into_iter().flatten().map(|f| &f["kind"]).collect();
    assert_eq!(kinds, ["connection"], "{what}: to log in is to ask for nothing: {findings}");
    let id = server.get("/").text();
    assert_eq!(server.get("/").text(), id, "{what}: the connection is kept");
    // The connection is killed while it is idle, so that no request fails.
    let killed = server.get(&format!("/?kill={id}"));
    assert_eq!(killed.status, 200, "{what}: {}", killed.text());
    let next = server.get("/");
    assert_eq!(next.status, 200, "{what}: {}", next.text());
    assert_ne!(next.text(), id, "{what}");
    restart();
    let next = server.get("/");
    assert_eq!(next.status, 200, "{what}, after a restart: {}", next.text());
    // A boot that failed because the database was down is retried later. Until then whole scripts
    // run.
    eventually(&format!("{what}: kept again"), || {
        (server.get("/").text() == server.get("/").text()).then_some(())
    });
    assert!(left(server) >= 2, "{what}: {}", reasons(server));
}

#[test]
fn restarted_database_gets_new_connection() {
    let php = r"
        function connect() { return new PDO(getenv('DATABASE_DSN'), getenv('DATABASE_USER'), ''); }
        $db = connect();
        Samovar\checkpoint();
        if (isset($_GET['kill'])) {
            connect()->query(sprintf(getenv('DATABASE_KILL'), (int) $_GET['kill']));
            exit;
        }
        echo $db->query(getenv('DATABASE_ID'))->fetchColumn();
    ";
    let mut mariadb = MariaDb::start();
    let mut postgres = Postgres::with(&["tea"]);
    let dsn = [
        format!("mysql:unix_socket={}", mariadb.socket().display()),
        format!("pgsql:host={};dbname=tea", postgres.folder()),
    ];
    let started = |dsn: &str, user, id, kill| {
        let server = script(php).env("DATABASE_DSN", dsn).env("DATABASE_USER", user);
        booted(server.env("DATABASE_ID", id).env("DATABASE_KILL", kill).start())
    };
    let server = started(&dsn[0], "root", "SELECT CONNECTION_ID()", "KILL %d");
    outlives_its_database(&server, "MariaDB", || mariadb.restart());
    server.stop();
    let kill = "SELECT pg_terminate_backend(%d, 5000)";
    let server = started(&dsn[1], "postgres", "SELECT pg_backend_pid()", kill);
    outlives_its_database(&server, "PostgreSQL", || postgres.restart());
    server.stop();
}

/// An open transaction, settings and tables of one visitor do not reach the next, in any order of
/// visitors.
#[test]
fn database_session_is_clean_for_visitors_in_any_order() {
    let database = Postgres::with(&["tea"]);
    let php = r#"
        $db = new PDO('pgsql:host=' . getenv('DATABASE_HOST') . ';dbname=tea', 'postgres', '');
        $db->exec('CREATE TABLE IF NOT EXISTS cups (n INT)');
        $db->exec("SET application_name = 'boot'");
        Samovar\checkpoint();
        $one = fn ($sql) => $db->query($sql)->fetchColumn();
        $seen = $one("SELECT current_setting('application_name')
            || ' ' || (SELECT COUNT(*) FROM cups) || ' '
            || (SELECT COUNT(*) FROM pg_locks
                WHERE locktype = 'advisory' AND pid = pg_backend_pid()) || ' '
            || (SELECT COUNT(*) FROM pg_class
                WHERE relname = 'mine' AND relnamespace = pg_my_temp_schema()) || ' '
            || (SELECT COUNT(*) FROM pg_listening_channels())");
        switch ((int) $_GET['do'] % 8) {
            case 0: $db->beginTransaction(); $db->exec('INSERT INTO cups VALUES (1)'); break;
            case 1: $db->exec("SET application_name = 'ann'"); break;
            case 2: $db->exec('CREATE TEMP TABLE mine (n INT)'); break;
            case 3: $one('SELECT pg_advisory_lock(7)'); break;
            case 4: $db->exec('LISTEN news'); break;
            case 5: $kept = $db->prepare('SELECT ?::int'); $kept->execute([1]); break;
            case 6: $db->beginTransaction();
                try { $db->exec('SELECT 1/0'); } catch (PDOException) {} exit;
            case 7: $db->exec("BEGIN; SET LOCAL application_name = 'bob'");
                trigger_error('over', E_USER_ERROR);
        }
        echo $seen;
    "#;
    let host = database.folder().to_owned();
    let server = script(php).env("DATABASE_HOST", &host).define("display_errors", "0");
    let server = booted(server.start());
    for n in 0..80 {
        let response = server.get(&format!("/?do={}", n * 5 + n / 8));
        let is_cut_short = [6, 7].contains(&((n * 5 + n / 8) % 8));
        if !is_cut_short {
            assert_eq!(response.text(), "boot 0 0 0 0", "visitor {n}: {}", server.log());
        }
    }
    server.stop();
}

#[test]
fn redis_connection_is_unchanged_or_worker_leaves() {
    let redis = Redis::start();
    let socket = redis.socket().display().to_string();
    let server = script(
        "$r = new Redis(); $r->connect(getenv('REDIS_SOCKET')); $r->select(1);
         Samovar\\checkpoint();
         if (isset($_GET['see'])) {
             echo json_encode([$r->get('who'), $r->client('list')[0]['db']]); exit; }
         eval($_GET['do']);",
    );
    let server = booted(server.env("REDIS_SOCKET", &socket).start());
    let harmless = [
        "/?do=$r->set('who','ann');",
        "/?do=$r->multi()->set('who','bob')->get('who')->exec();$r->set('who','ann');",
        "/?do=$r->pipeline()->set('x',str_repeat('y',100000))->get('x')->hGetAll('none')->exec();",
        "/?do=$r->rPush('l','a','b');$r->lRange('l',0,-1);$r->lRange('none',0,-1);",
        "/?do=$r->multi(Redis::PIPELINE)->set('who','eve');exit;",
        // phpredis discards it itself.
        "/?do=$r->multi()->set('who','eve');exit;",
    ];
    let first = server.get("/?do=$r->set('who','ann');");
    assert_eq!(first.status, 200);
    for target in harmless {
        assert_eq!(server.get(target).status, 200);
    }
    assert_eq!(server.get("/?do=echo%20$r->get('who');").text(), "ann");
    assert_eq!(left(&server), 0, "{}", server.log());
    let changes = [
        "/?do=$r->select(2);",
        "/?do=$r->watch('who');",
        "/?do=$r->client('setname','x');",
        "/?do=$r->rawCommand('SUBSCRIBE','news');",
    ];
    for (n, target) in changes.iter().enumerate() {
        server.get(target);
        assert_eq!(server.get("/?do=echo%20$r->get('who');").text(), "ann", "after {target}");
        assert_eq!(left(&server), n as u64 + 1, "after {target}");
    }
    server.stop();
}

/// A file lock taken by the boot, and a request that changes it.
#[test]
fn file_lock_of_boot_is_held_or_worker_leaves() {
    let server = booted(
        script(
            "$f = fopen(__DIR__ . '/lock', 'c'); flock($f, LOCK_SH | LOCK_NB);
             Samovar\\checkpoint();
             if (isset($_GET['do'])) { eval($_GET['do']); exit; }
             $lines = file_get_contents('/proc/self/fdinfo/' . fd());
             preg_match_all('/FLOCK.*?(READ|WRITE)/', $lines, $m); echo json_encode($m[1]);
             function fd() { foreach (scandir('/proc/self/fd') as $n) {
                 if (@readlink(\"/proc/self/fd/$n\") === __DIR__ . '/lock') { return $n; } } }",
        )
        .start(),
    );
    assert_eq!(server.get("/").text(), r#"["READ"]"#);
    for change in ["flock($f,LOCK_UN);", "flock($f,LOCK_EX|LOCK_NB);"] {
        server.get(&format!("/?do={change}"));
        assert_eq!(server.get("/").text(), r#"["READ"]"#, "after {change}");
    }
    assert_eq!(reasons(&server)["lock"], 2);
    server.stop();
}

/// `SQLite`'s cached pages are valid only while it holds the lock. A rollback does not restore
/// newer pages.
#[test]
fn locked_sqlite_database_loses_no_row() {
    let second =
        "$other = new PDO('sqlite:' . $file); $other->query('PRAGMA user_version')->fetchAll();";
    for (pragma, second, mode, lost) in [
        ("locking_mode = EXCLUSIVE", "", "script", None),
        ("journal_mode = WAL", second, "worker", Some(2)),
    ] {
        let php = format!(
            "$file = __DIR__ . '/rows.db';
             $db = new PDO('sqlite:' . $file); $db->exec('PRAGMA busy_timeout = 5000');
             $db->exec('PRAGMA {pragma}');
             $db->exec('CREATE TABLE IF NOT EXISTS rows (n INT)');
             {second}
             $db->exec('PRAGMA user_version = 1');
             Samovar\\checkpoint();
             if (isset($_GET['touch'])) {{ file_get_contents($file); }}
             $db->exec('INSERT INTO rows VALUES (1)');
             echo $db->query('SELECT COUNT(*) FROM rows')->fetchColumn();"
        );
        let server = script(&php).start();
        eventually(mode, || (server.status()["image"]["mode"] == mode).then_some(()));
        for n in 1..=8 {
            // Closing a file releases all locks that the process has on it.
            let target = if n % 3 == 0 && lost.is_some() { "/?touch" } else { "/" };
            assert_eq!(server.get(target).text(), n.to_string(), "{pragma}: {}", server.log());
        }
        assert_eq!(reasons(&server)["lock"].as_u64(), lost, "{pragma}");
        server.stop();
    }
}
