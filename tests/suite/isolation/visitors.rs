//! Visitors in random order on connections of every kind that were opened above the checkpoint. No
//! response contains a byte of another visitor, and no acknowledged write is missing.
//!
//! `OUTSIDE_SEED` repeats an order, `OUTSIDE_REQUESTS` makes it longer.

use crate::isolation::beside::Beside;
use crate::isolation::outside::{echoing_datagrams, script, two_lines_each};
use samovar_testkit::http::Client;
use samovar_testkit::order::{Order, number_of, seed};
use samovar_testkit::{Ldap, MariaDb, Mongo, Postgres, Redis, Server};
use std::sync::Mutex;

const VISITORS: usize = 16;
const REQUESTS: usize = 640;

const PHP: &str = r#"
$raw = stream_socket_client(getenv('RAW'));
stream_set_read_buffer($raw, 0); stream_set_chunk_size($raw, 1);
$udp = stream_socket_client(getenv('UDP')); stream_set_timeout($udp, 0, 200000);
$child = proc_open(['sed', '-u', 'p'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
$teller = proc_open(['setpriv', '--pdeathsig', 'KILL', 'sed', '-u', 'p'], [['pty'], ['pty']], $tty);
foreach ([$pipes[1], $tty[1]] as $end) {
    stream_set_read_buffer($end, 0); stream_set_chunk_size($end, 1); }
$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
stream_set_blocking($pair[1], false);
$loose = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
$db = new PDO('pgsql:host=' . getenv('DATABASE_HOST') . ';dbname=tea;user=postgres');
try {
    $db->exec('CREATE TABLE IF NOT EXISTS cups (who TEXT)');
} catch (PDOException) { /* The other worker makes it. */ }
$redis = new Redis(); $redis->connect(getenv('REDIS_SOCKET'));
$my = new mysqli(null, 'root', '', '', 0, getenv('MYSQL_SOCKET'));
$my->query('CREATE DATABASE IF NOT EXISTS tea'); $my->select_db('tea');
$my->query('CREATE TABLE IF NOT EXISTS cups (who TEXT) ENGINE=InnoDB');
$lite = new PDO('sqlite:' . getenv('LITE'));
$lite->exec('PRAGMA busy_timeout = 20000'); $lite->exec('PRAGMA synchronous = OFF');
$lite->exec('PRAGMA journal_mode = WAL'); $lite->exec('CREATE TABLE IF NOT EXISTS cups (who TEXT)');
$ldap = ldap_connect(getenv('LDAP'));
ldap_set_option($ldap, LDAP_OPT_PROTOCOL_VERSION, 3); ldap_bind($ldap);
$mongo = new MongoDB\Driver\Manager(getenv('MONGO'));
$mongo->executeCommand('admin', new MongoDB\Driver\Command(['ping' => 1]));
Samovar\checkpoint();
$who = $_GET['who'];
switch ($_GET['does']) {
    case 'raw-half': fwrite($raw, "$who\n"); echo fgets($raw); break;
    case 'raw-kept': fwrite($raw, "$who\n"); echo fgets($raw), fgets($raw);
        Samovar\kept($raw); break;
    case 'child': fwrite($pipes[0], "$who\n"); echo fgets($pipes[1]); break;
    case 'teller': fwrite($tty[0], "$who\n"); echo fgets($tty[1]); break;
    case 'pair': echo fread($pair[1], 999); fwrite($pair[0], $who); break;
    case 'loose': echo @socket_write($loose, "$who\n") ? 'visitor: connected' : '';
        [$host, $port] = explode(':', substr(getenv('RAW'), 6));
        socket_connect($loose, $host, (int) $port); socket_write($loose, "$who\n"); break;
    case 'udp-tell': fwrite($udp, $who); echo 'told'; break;
    case 'udp-ask': fwrite($udp, $who); echo fread($udp, 99); break;
    case 'row': $s = $db->prepare('INSERT INTO cups VALUES (?)');
        $s->execute([$who]); echo 'row'; break;
    case 'lost': $db->beginTransaction(); $db->exec("INSERT INTO cups VALUES ('$who')"); break;
    case 'aborted': $db->beginTransaction(); $s = $db->prepare('SELECT 1/?::int');
        try { $s->execute([0]); } catch (PDOException) {} break;
    case 'named': $db->exec("SET application_name = '$who'"); break;
    case 'name': echo $db->query('SHOW application_name')->fetchColumn(); break;
    case 'table': $db->exec("CREATE TEMP TABLE mine AS SELECT '$who'::text AS who"); break;
    case 'mine':
        try {
            echo $db->query('SELECT who FROM mine')->fetchColumn();
        } catch (PDOException) {}
        break;
    case 'my-row': $s = $my->prepare('INSERT INTO cups VALUES (?)');
        $s->execute([$who]); echo 'my-row'; break;
    case 'my-lost': $my->begin_transaction(); $my->query("INSERT INTO cups VALUES ('$who')"); break;
    case 'my-says': echo $my->query("SELECT '$who'")->fetch_row()[0]; break;
    case 'my-half': $two = "SELECT '$who' UNION ALL SELECT '$who'";
        echo $my->query($two, MYSQLI_USE_RESULT)->fetch_row()[0]; break;
    case 'my-named': $my->query("SET @who = '$who'"); break;
    case 'my-name': echo $my->query('SELECT @who')->fetch_row()[0]; break;
    case 'my-table': $my->query("CREATE TEMPORARY TABLE mine AS SELECT '$who' AS who"); break;
    case 'my-mine':
        try {
            echo $my->query('SELECT who FROM mine')->fetch_row()[0];
        } catch (mysqli_sql_exception) {}
        break;
    case 'lite-row': $lite->exec("INSERT INTO cups VALUES ('$who')"); echo 'lite-row'; break;
    case 'lite-lost': $lite->beginTransaction();
        $lite->exec("INSERT INTO cups VALUES ('$who')"); break;
    case 'lite-half': $rows = $lite->query("SELECT '$who' UNION ALL SELECT who || 'y' FROM cups");
        echo $rows->fetchColumn(); break;
    case 'lite-table': $lite->exec("CREATE TEMP TABLE mine AS SELECT '$who' AS who"); break;
    case 'lite-mine':
        try {
            echo $lite->query('SELECT who FROM mine')->fetchColumn();
        } catch (PDOException) {}
        break;
    case 'ldap-bound': echo ldap_bind($ldap, 'cn=visitor,dc=tea', 'secret') ? 'bound' : ''; break;
    case 'ldap-who': echo ldap_exop_whoami($ldap); break;
    case 'mongo-says': $ping = new MongoDB\Driver\Command(['ping' => 1, 'echo' => $who]);
        echo $mongo->executeCommand('admin', $ping)->toArray()[0]->echo; break;
    case 'mongo-row': $b = new MongoDB\Driver\BulkWrite(); $b->insert(['who' => $who]);
        $mongo->executeBulkWrite('tea.cups', $b); echo 'mongo-row'; break;
    case 'key': echo $redis->incr('keys') > 0 ? 'key' : ''; break;
    case 'select': $redis->select(3); $redis->set('who', $who); break;
    case 'selected': echo $redis->get('who'); break;
    case 'queued': $redis->multi(); $redis->set('who', $who); break;
    case 'pipeline': echo implode($redis->pipeline()->echo($who)->echo($who)->exec()); break;
    case 'sees':
        foreach (['row' => $db, 'lite-row' => $lite] as $kind => $any) {
            $found[$kind] = $any->query('SELECT count(*) FROM cups')->fetchColumn(); }
        $found += ['my-row' => $my->query('SELECT count(*) FROM cups')->fetch_row()[0],
            'key' => $redis->get('keys')];
        echo json_encode(array_map('intval', $found)); break;
}
switch ($_GET['ends'] ?? '') {
    case 'exit': exit;
    case 'exception': throw new Exception($who);
    case 'fatal': trigger_error($who, E_USER_ERROR);
    case 'memory': ob_end_flush(); ini_set('memory_limit', '16M'); str_repeat($who, 1 << 26);
    case 'time': posix_kill(posix_getpid(), SIGPROF); while (true);
    case 'flush': flush(); ignore_user_abort(false);
        while (true) { echo str_repeat(' ', 1 << 16); flush(); }
}
"#;

/// Actions that end a worker, or may end it.
const RESTLESS: [&str; 25] = [
    "raw-half",
    "child",
    "teller",
    "pair",
    "loose",
    "udp-ask",
    "aborted",
    "named",
    "table",
    "my-half",
    "my-named",
    "my-table",
    "lite-half",
    "lite-table",
    "ldap-bound",
    "ldap-who",
    "mongo-says",
    "mongo-row",
    "select",
    "queued",
    "lost",
    "my-lost",
    "lite-lost",
    "udp-tell",
    "none",
];
/// Actions that leave no state, and show state left by others.
const CALM: [&str; 18] = [
    "raw-kept",
    "udp-tell",
    "row",
    "row",
    "lost",
    "name",
    "mine",
    "my-row",
    "my-lost",
    "my-says",
    "my-name",
    "my-mine",
    "lite-row",
    "lite-lost",
    "lite-mine",
    "key",
    "selected",
    "pipeline",
];
/// The other requests cause no fault and end normally: a worker that leaves costs a boot.
const RESTLESS_EVERY: usize = 12;
const ENDS: [&str; 8] = ["", "exit", "exit", "exception", "fatal", "memory", "time", "flush"];
const ABRUPT_EVERY: usize = 10;

/// Action of the next request, and its end.
fn next(order: &mut Order) -> (&'static str, &'static str) {
    let restless = order.next(RESTLESS_EVERY) == 0;
    let does =
        if restless { RESTLESS[order.next(RESTLESS.len())] } else { CALM[order.next(CALM.len())] };
    let ends = if order.next(ABRUPT_EVERY) == 0 { ENDS[order.next(ENDS.len())] } else { "" };
    (does, ends)
}

/// Writes that are acknowledged by these words.
const WRITES: [&str; 4] = ["row", "my-row", "lite-row", "key"];

/// The response, or the part of it that arrives before the client disconnects.
fn ask(client: &mut Option<Client>, server: &Server, target: &str, goes_away: bool) -> String {
    let mut one = client.take().unwrap_or_else(|| server.client());
    if !goes_away {
        let response = one.get(target).text();
        *client = Some(one);
        return response;
    }
    one.send(&samovar_testkit::http::Request::get(target).bytes());
    let mut text = String::new();
    if one.read_head().is_ok_and(|head| head.status == 200)
        && let Ok(Some(part)) = one.read_chunk()
    {
        text = String::from_utf8_lossy(&part).into_owned();
    }
    one.abort();
    text
}

#[test]
fn visitors_in_random_order_are_isolated() {
    let (redis, database, mariadb) = (Redis::start(), Postgres::with(&["tea"]), MariaDb::start());
    let (ldap, mongo) = (Ldap::with(&["visitor"]), Mongo::start());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lite = folder.path().join("cups.db");
    let server = script(PHP)
        .extensions(&["ldap", "mongodb"])
        .workers(2)
        .env("RAW", &format!("tcp://127.0.0.1:{}", two_lines_each()))
        .env("UDP", &format!("udp://127.0.0.1:{}", echoing_datagrams()))
        .env("DATABASE_HOST", database.folder())
        .env("REDIS_SOCKET", &redis.socket().display().to_string())
        .env("MYSQL_SOCKET", &mariadb.socket().display().to_string())
        .env("LDAP", &ldap.url())
        .env("MONGO", &mongo.url())
        .env("LITE", &lite.display().to_string())
        .args(["--prewarm-boot", "false"])
        .start();
    let seed = seed("OUTSIDE_SEED");
    let requests = number_of("OUTSIDE_REQUESTS").map_or(REQUESTS, |n| n as usize);
    let written = Mutex::new([0; WRITES.len()]);
    let mongo_rows = Mutex::new(0);
    let beside = Mutex::new(Beside::start(&lite));
    assert_eq!(server.get("/?who=all&does=none").text(), "");
    std::thread::scope(|scope| {
        for visitor in 0..VISITORS {
            let (server, written, beside, mongo_rows) = (&server, &written, &beside, &mongo_rows);
            scope.spawn(move || {
                let mut order = Order::new(seed, visitor);
                let mut client = None;
                for n in 0..requests / VISITORS {
                    let (does, ends) = next(&mut order);
                    let who = format!("visitor{visitor}x{n}y");
                    let target = format!("/?who={who}&does={does}&ends={ends}");
                    let response = ask(&mut client, server, &target, ends == "flush");
                    let of_others = response.replace(&who, "").contains("visitor");
                    assert!(!of_others, "seed {seed}, {who} {does} {ends}: {response}");
                    if let Some(at) = WRITES.iter().position(|word| response.starts_with(word)) {
                        written.lock().expect("nobody has failed")[at] += 1;
                    }
                    if response.starts_with("mongo-row") {
                        *mongo_rows.lock().expect("nobody has failed") += 1;
                    }
                    if does.starts_with("lite") && visitor % 2 == 0 {
                        beside.lock().expect("nobody has failed").write();
                        written.lock().expect("nobody has failed")[2] += 1;
                    }
                }
            });
        }
    });
    let written = written.into_inner().expect("nobody has failed");
    let found: serde_json::Value = serde_json::from_str(&server.get("/?who=all&does=sees").text())
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", server.log()));
    for (word, count) in WRITES.iter().zip(written) {
        assert_eq!(found[word], count, "{word}, seed {seed}: {}", server.log());
    }
    assert_eq!(mongo.repeated(), [""; 0], "seed {seed}");
    assert_eq!(mongo.writes(), mongo_rows.into_inner().expect("nobody has failed"), "seed {seed}");
    let status = server.status();
    println!("{written:?} {}", status["image"]["refork_reasons"]);
    assert_eq!(status["worker_restarts_total"], 0, "{}", server.log());
    server.stop();
}
