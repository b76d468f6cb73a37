//! Each kind of object outside the process that an application may open above its checkpoint, with
//! each end of a request that uses it. The next visitor receives its own data, and no acknowledged
//! write is lost.
//!
//! `ask` is a complete exchange that names its visitor. `half` leaves an exchange unfinished.

use crate::isolation::beside::Beside;
use crate::isolation::outside::{echoing_datagrams, script, two_lines_each};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Ldap, MariaDb, Mongo, Postgres, Redis, Server, Ssh, eventually};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

pub(crate) struct Kind {
    name: &'static str,
    above: &'static str,
    ask: &'static str,
    half: &'static str,
}

pub(crate) const fn kind(
    name: &'static str,
    above: &'static str,
    ask: &'static str,
    half: &'static str,
) -> Kind {
    Kind { name, above, ask, half }
}

const ENDINGS: &str = "
switch ($_GET['ends'] ?? '') {
    case 'exit': exit;
    case 'fatal': ob_end_flush(); ini_set('memory_limit', '8M'); str_repeat('x', 1 << 26);
    case 'exception': throw new Exception('nobody catches it');
    case 'time': posix_kill(posix_getpid(), SIGPROF); while (true);
    case 'abort': while (true) { echo str_repeat(' ', 1 << 16); flush(); }
}
// Number of acknowledged writes that a visitor finds.
function all(int $count): string {
    return $count === (int) $_GET['n'] ? 'all' : $count . ' of ' . $_GET['n']; }";

/// Action of the request, and its end.
const ENDS: [(&str, &str); 7] = [
    ("ask", "normal"),
    ("ask", "exit"),
    ("half", "fatal"),
    ("half", "exception"),
    ("half", "time"),
    ("half", "abort"),
    ("half", "exit"),
];

/// State shared by all kinds during a trial.
pub(crate) struct Trial {
    server: Server,
    name: String,
    /// Number of acknowledged writes, and number of visitors, from which their names are made.
    asked: usize,
    visitors: usize,
    beside: Option<Beside>,
}

impl Trial {
    fn target(&mut self, does: &str, ends: &str) -> (String, String) {
        self.visitors += 1;
        let who = format!("visitor{}.", self.visitors);
        self.asked += usize::from(does == "ask");
        (format!("/?who={who}&does={does}&ends={ends}&n={}", self.asked), who)
    }

    fn request(&mut self, does: &str, ends: &str) {
        let (target, who) = self.target(does, ends);
        let text = if ends == "abort" {
            goes_away(self.server.client(), &target)
        } else {
            self.server.get(&target).text()
        };
        let label = format!("{}, {does}, {ends}: {text}\n{}", self.name, self.server.log());
        assert!(!text.replace(&who, "").contains("visitor"), "another one's: {label}");
        if does == "ask" {
            assert!(text.contains(&who) && !text.contains(" of "), "not its own: {label}");
        }
    }

    pub(crate) fn run(mut self) {
        for (does, ends) in ENDS {
            self.request(does, ends);
            if let Some(beside) = &mut self.beside {
                beside.write();
                self.asked += 1;
            }
            self.request("ask", "normal");
        }
        let status = self.server.status();
        assert_eq!(status["worker_restarts_total"], 0, "{}: {}", self.name, self.server.log());
        self.server.stop();
    }
}

/// Reads the first piece of the response, and disconnects.
fn goes_away(mut client: Client, target: &str) -> String {
    client.send(&Request::get(target).bytes());
    client.read_head().expect("a head");
    let piece = client.read_chunk().expect("a piece").unwrap_or_default();
    client.abort();
    String::from_utf8_lossy(&piece).into_owned()
}

/// Starts the trial of one kind. `mode` is the image mode that the finding causes.
pub(crate) fn start(kind: &Kind, mode: &str, extensions: &[&str], env: &[(&str, &str)]) -> Trial {
    let Kind { name, above, ask, half } = kind;
    let php = format!(
        "{above}\nSamovar\\checkpoint(); $who = $_GET['who'];
         if ($_GET['does'] === 'ask') {{ {ask} }} else {{ {half} }}\n{ENDINGS}"
    );
    let start = script(&php).extensions(extensions).args(["--prewarm-boot", "false"]);
    let start = env.iter().fold(start, |start, (key, value)| start.env(key, value));
    let server = start.start();
    let mode_is = |mode: &str| server.status()["image"]["mode"] == mode;
    eventually(&format!("{name}: {mode}"), || mode_is(mode).then_some(()));
    Trial { server, name: (*name).to_owned(), asked: 0, visitors: 0, beside: None }
}

/// Starts an HTTP server that keeps its connections. Each response contains the requested target.
pub(crate) fn kept_http() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let serve = |client: TcpStream| -> std::io::Result<()> {
        let mut writer = client.try_clone()?;
        let mut target = String::new();
        for line in BufReader::new(client).lines() {
            let line = line?;
            if let Some(rest) = line.strip_prefix("GET ") {
                rest.clone_into(&mut target);
            } else if line.is_empty() {
                let body = format!("{target}\n{}{target}\n", " ".repeat(100_000));
                write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
            }
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || serve(client));
        }
    });
    port
}

const SLOWLY: &str = "stream_set_read_buffer($s, 0); stream_set_chunk_size($s, 1);";

const STREAMS: [Kind; 12] = [
    kind(
        "tcp",
        "$s = stream_socket_client(getenv('RAW')); SLOWLY",
        "fwrite($s, \"$who\\n\"); echo fgets($s), fgets($s);",
        "fwrite($s, \"$who\\n\"); echo fgets($s);",
    ),
    kind(
        "ext/sockets",
        "$s = socket_create(AF_INET, SOCK_STREAM, SOL_TCP); \
         socket_connect($s, '127.0.0.1', getenv('RAW_PORT'));",
        "socket_write($s, \"$who\\n\"); \
         echo socket_read($s, 99, PHP_NORMAL_READ), socket_read($s, 99, PHP_NORMAL_READ);",
        "socket_write($s, \"$who\\n\"); echo socket_read($s, 99, PHP_NORMAL_READ);",
    ),
    kind(
        "a socket without a peer",
        "$s = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);",
        "socket_connect($s, '127.0.0.1', getenv('RAW_PORT')); socket_write($s, \"$who\\n\"); \
         echo socket_read($s, 99, PHP_NORMAL_READ);",
        "socket_connect($s, '127.0.0.1', getenv('RAW_PORT')); socket_write($s, \"$who\\n\");",
    ),
    kind(
        "a pair of sockets",
        "[$a, $s] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); SLOWLY",
        "fwrite($a, \"$who\\n\"); echo fgets($s);",
        "fwrite($a, \"$who\\n$who\\n\"); echo fgets($s);",
    ),
    kind(
        "pipes",
        "$p = proc_open(['sed', '-u', 'p'], [['pipe', 'r'], ['pipe', 'w']], $pipes); \
         $s = $pipes[1]; SLOWLY",
        "fwrite($pipes[0], \"$who\\n\"); echo fgets($s), fgets($s);",
        "fwrite($pipes[0], \"$who\\n\"); echo fgets($s);",
    ),
    kind(
        "terminals",
        "$p = proc_open(['setpriv', '--pdeathsig', 'KILL', 'sed', '-u', 'p'], \
         [['pty'], ['pty']], $pipes); $s = $pipes[1]; SLOWLY",
        "fwrite($pipes[0], \"$who\\n\"); echo fgets($s), fgets($s);",
        "fwrite($pipes[0], \"$who\\n\"); echo fgets($s);",
    ),
    kind(
        "popen",
        "$s = popen('seq 1 100000', 'r'); SLOWLY",
        "echo fgets($s) === \"1\\n\" ? $who : 'it has moved on';",
        "fgets($s);",
    ),
    kind(
        "a FIFO",
        "@posix_mkfifo(__DIR__ . '/fifo', 0600); $s = fopen(__DIR__ . '/fifo', 'r+'); SLOWLY",
        "fwrite($s, \"$who\\n\"); echo fgets($s);",
        "fwrite($s, \"$who\\n\");",
    ),
    // A response to a datagram sent earlier may arrive now; it must not be read from this socket.
    kind(
        "udp",
        "$s = stream_socket_client(getenv('UDP'));",
        "fwrite($s, $who); stream_set_timeout($s, 5); echo fread($s, 99) ?: $who;",
        "fwrite($s, $who);",
    ),
    kind(
        "udp without a peer",
        "$s = socket_create(AF_INET, SOCK_DGRAM, SOL_UDP);",
        "socket_sendto($s, $who, strlen($who), 0, '127.0.0.1', getenv('UDP_PORT'));
         echo @socket_recvfrom($s, $is, 99, 0, $from, $port) ? $is : $who;",
        "socket_sendto($s, $who, strlen($who), 0, '127.0.0.1', getenv('UDP_PORT'));",
    ),
    kind(
        "curl",
        "$c = curl_init(getenv('HTTP') . '/above'); \
         curl_setopt($c, CURLOPT_RETURNTRANSFER, true); curl_exec($c);",
        "curl_setopt($c, CURLOPT_URL, getenv('HTTP') . \"/$who\"); echo trim(curl_exec($c));",
        "curl_setopt_array($c, [CURLOPT_URL => getenv('HTTP') . \"/$who\", \
         CURLOPT_WRITEFUNCTION => fn () => 0]); curl_exec($c);",
    ),
    kind(
        "curl_multi",
        "$m = curl_multi_init(); $c = curl_init(getenv('HTTP') . '/above');
         curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
         curl_multi_add_handle($m, $c);
         do { curl_multi_exec($m, $on); curl_multi_select($m); } while ($on);
         curl_multi_remove_handle($m, $c);",
        "curl_setopt($c, CURLOPT_URL, getenv('HTTP') . \"/$who\"); curl_multi_add_handle($m, $c);
         do { curl_multi_exec($m, $on); curl_multi_select($m, 0.1); } while ($on);
         echo trim(curl_multi_getcontent($c));",
        "curl_setopt($c, CURLOPT_URL, getenv('HTTP') . \"/$who\"); \
         curl_multi_add_handle($m, $c); curl_multi_exec($m, $on);",
    ),
];

#[test]
fn streams_of_each_kind_are_isolated_after_each_end() {
    let (raw, udp, http) = (two_lines_each(), echoing_datagrams(), kept_http());
    let env = [
        ("RAW", format!("tcp://127.0.0.1:{raw}")),
        ("RAW_PORT", raw.to_string()),
        ("UDP", format!("udp://127.0.0.1:{udp}")),
        ("UDP_PORT", udp.to_string()),
        ("HTTP", format!("http://127.0.0.1:{http}")),
    ];
    let env = env.each_ref().map(|(key, value)| (*key, value.as_str()));
    for each in STREAMS {
        let above = each.above.replace("SLOWLY", SLOWLY).leak();
        // Forks can share sockets that never receive, and sockets without a peer.
        let mode = if each.name.starts_with("udp") || each.name.contains("peer") {
            "shared"
        } else {
            "worker"
        };
        start(&Kind { above, ..each }, mode, &[], &env).run();
    }
}

const DATABASES: [Kind; 6] = [
    kind(
        "PostgreSQL by PDO",
        "$db = new PDO('pgsql:host=' . getenv('PG') . ';dbname=pdo;user=postgres');
         $db->exec('CREATE TABLE IF NOT EXISTS cups (who TEXT)');",
        "$s = $db->prepare('INSERT INTO cups VALUES (?) RETURNING who');
         $s->execute([$who]); echo $s->fetchColumn();
         echo ' ', all($db->query('SELECT count(*) FROM cups')->fetchColumn());",
        "$db->beginTransaction(); \
         $s = $db->prepare('INSERT INTO cups VALUES (?)'); $s->execute([$who]);",
    ),
    kind(
        "PostgreSQL",
        "$db = pg_connect('host=' . getenv('PG') . ' dbname=pg user=postgres');
         pg_query($db, 'CREATE TABLE IF NOT EXISTS cups (who TEXT)');",
        "$add = 'INSERT INTO cups VALUES ($1) RETURNING who';
         echo pg_fetch_row(pg_query_params($db, $add, [$who]))[0];
         echo ' ', all(pg_fetch_row(pg_query($db, 'SELECT count(*) FROM cups'))[0]);",
        "pg_send_query($db, \"SELECT '$who' FROM generate_series(1, 100000)\");",
    ),
    kind(
        "MariaDB by PDO",
        "$db = new PDO('mysql:unix_socket=' . getenv('MYSQL'), 'root', '',
             [PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false]);
         $db->exec('CREATE DATABASE IF NOT EXISTS pdo'); $db->exec('USE pdo');
         $db->exec('CREATE TABLE IF NOT EXISTS cups (who TEXT)');",
        "$s = $db->prepare('INSERT INTO cups VALUES (?)'); $s->execute([$who]); echo $who;
         echo ' ', all($db->query('SELECT count(*) FROM cups')->fetchAll()[0][0]);",
        "$s = $db->query(\"SELECT '$who' UNION ALL SELECT '$who'\"); echo $s->fetchColumn();",
    ),
    kind(
        "MariaDB",
        "$db = new mysqli(null, 'root', '', '', 0, getenv('MYSQL'));
         $db->query('CREATE DATABASE IF NOT EXISTS my'); $db->select_db('my');
         $db->query('CREATE TABLE IF NOT EXISTS cups (who TEXT)');",
        "$s = $db->prepare('INSERT INTO cups VALUES (?)'); $s->execute([$who]);
         echo $db->query(\"SELECT '$who'\")->fetch_row()[0];
         echo ' ', all($db->query('SELECT count(*) FROM cups')->fetch_row()[0]);",
        "$db->begin_transaction(); $db->query(\"INSERT INTO cups VALUES ('$who')\"); \
         $db->query(\"SELECT '$who'\", MYSQLI_USE_RESULT);",
    ),
    kind(
        "Redis",
        "$r = new Redis(); $r->connect(getenv('REDIS'));",
        "$r->rPush('cups', $who); echo $r->lIndex('cups', -1), ' ', all($r->lLen('cups'));",
        "$r->multi(Redis::PIPELINE)->echo($who); $r->rawCommand('ECHO', $who);",
    ),
    kind(
        "Redis, in a transaction",
        "$r = new Redis(); $r->connect(getenv('REDIS')); $r->select(1);",
        "$r->rPush('cups', $who); echo $r->lIndex('cups', -1), ' ', all($r->lLen('cups'));",
        "$r->watch('cups'); $r->multi(); $r->rPush('cups', $who);",
    ),
];

#[test]
fn databases_are_isolated_after_each_end() {
    let (postgres, mariadb) = (Postgres::with(&["pdo", "pg"]), MariaDb::start());
    let redis = Redis::start();
    let (my, re) = (mariadb.socket().display().to_string(), redis.socket().display().to_string());
    let env = [("PG", postgres.folder()), ("MYSQL", &my), ("REDIS", &re)];
    for each in DATABASES {
        start(&each, "worker", &[], &env).run();
    }
}

const DIRECTORY: Kind = kind(
    "OpenLDAP",
    "$l = ldap_connect(getenv('LDAP')); \
     ldap_set_option($l, LDAP_OPT_PROTOCOL_VERSION, 3); ldap_bind($l);",
    "$found = ldap_get_entries($l, ldap_search($l, 'dc=tea', '(cn=ann)', ['cn']));
     echo $found[0]['cn'][0] === 'ann' ? $who : 'nobody', ' ', ldap_exop_whoami($l);",
    "ldap_bind($l, 'cn=visitor,dc=tea', 'secret'); ldap_search($l, 'dc=tea', '(objectClass=*)');",
);

const DOCUMENTS: Kind = kind(
    "MongoDB",
    "$m = new MongoDB\\Driver\\Manager(getenv('MONGO')); \
     $m->executeCommand('admin', new MongoDB\\Driver\\Command(['ping' => 1]));",
    "$b = new MongoDB\\Driver\\BulkWrite(); $b->insert(['who' => $who]);
     $m->executeBulkWrite('tea.cups', $b);
     echo $m->executeCommand('admin',
         new MongoDB\\Driver\\Command(['ping' => 1, 'echo' => $who]))->toArray()[0]->echo;",
    "$b = new MongoDB\\Driver\\BulkWrite(); $b->insert(['who' => $who]); \
     $m->executeBulkWrite('tea.cups', $b); $b = new MongoDB\\Driver\\BulkWrite();",
);

const SHELL: Kind = kind(
    "SSH",
    "$s = ssh2_connect('127.0.0.1', getenv('SSH_PORT')); $key = getenv('SSH_KEY');
     ssh2_auth_pubkey_file($s, posix_getpwuid(posix_getuid())['name'], \"$key.pub\", $key)
         || exit('not let in');",
    "$o = ssh2_exec($s, \"echo $who\"); stream_set_blocking($o, true); \
     echo stream_get_contents($o);",
    "ssh2_exec($s, \"echo $who\");",
);

#[test]
fn libraries_with_own_protocols_are_isolated_after_each_end() {
    let ldap = Ldap::with(&["ann", "visitor"]);
    start(&DIRECTORY, "worker", &["ldap"], &[("LDAP", &ldap.url())]).run();

    let mongo = Mongo::start();
    start(&DOCUMENTS, "worker", &["mongodb"], &[("MONGO", &mongo.url())]).run();
    assert_eq!(mongo.repeated(), [""; 0]);
    assert_eq!(mongo.writes(), 2 * ENDS.len(), "each was sent once");

    let ssh = Ssh::start();
    let (port, key) = (ssh.address().port().to_string(), ssh.key().display().to_string());
    start(&SHELL, "script", &["ssh2"], &[("SSH_PORT", &port), ("SSH_KEY", &key)]).run();
}

/// `LITE` is the path of the file. Without a journal SQLite cannot roll back, so requests in that
/// mode do not try it.
const LITE_ABOVE: &str = "$db = new PDO('sqlite:' . getenv('LITE'));
    $db->exec('PRAGMA busy_timeout = 20000'); $db->exec('PRAGMA synchronous = OFF');
    $db->exec('PRAGMA journal_mode = MODE');
    $db->exec('CREATE TABLE IF NOT EXISTS cups (who TEXT)');
    $db->query('SELECT count(*) FROM cups')->fetchColumn();";
const LITE_ASK: &str = "$db->exec(\"INSERT INTO cups VALUES ('$who')\");
    echo $db->query('SELECT who FROM cups ORDER BY rowid DESC')->fetchColumn(), ' ',
        all($db->query('SELECT count(*) FROM cups')->fetchColumn());";
const LITE_HALF: &str = "$db->beginTransaction(); $db->exec(\"INSERT INTO cups VALUES ('$who')\");
    $rows = $db->query(\"SELECT '$who' UNION ALL SELECT 'row' FROM cups\");
    echo $rows->fetchColumn();";
const LITE_READS: &str = "$rows = $db->query(\"SELECT '$who' UNION ALL SELECT 'row' FROM cups\"); \
    echo $rows->fetchColumn();";

#[test]
fn sqlite_in_each_journal_mode_is_isolated_after_each_end() {
    for mode in ["delete", "truncate", "persist", "memory", "wal", "off"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("cups.db");
        let above = LITE_ABOVE.replace("MODE", mode).leak();
        let half = if mode == "off" { LITE_READS } else { LITE_HALF };
        let lite = kind(mode, above, LITE_ASK, half);
        let text = file.display().to_string();
        let model = if mode == "wal" { "worker" } else { "shared" };
        let trial = start(&lite, model, &[], &[("LITE", &text)]);
        Trial { beside: Some(Beside::start(&file)), ..trial }.run();
    }
}

/// The `SQLite3` class: each worker keeps the connection of the boot, and statements prepared in
/// the boot are run again.
const LITE_CLASS: Kind = kind(
    "SQLite3",
    "$db = new SQLite3(getenv('LITE')); $db->busyTimeout(20000);
     $db->exec('PRAGMA synchronous = OFF');
     $db->exec('CREATE TABLE IF NOT EXISTS cups (who TEXT)');
     $add = $db->prepare('INSERT INTO cups VALUES (?)');",
    "$add->bindValue(1, $who); $add->execute();
     echo $db->querySingle('SELECT who FROM cups ORDER BY rowid DESC'),
     ' ', all($db->querySingle('SELECT count(*) FROM cups'));",
    "$db->exec('BEGIN IMMEDIATE'); $add->bindValue(1, $who); $add->execute(); \
     $db->openBlob('cups', 'who', 1);",
);

#[test]
fn sqlite3_class_is_isolated_after_each_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("cups.db");
    let trial = start(&LITE_CLASS, "shared", &[], &[("LITE", &file.display().to_string())]);
    Trial { beside: Some(Beside::start(&file)), ..trial }.run();
}

#[test]
fn dba_with_each_handler_is_isolated_after_each_end() {
    for handler in ["db4", "qdbm", "flatfile", "inifile", "lmdb"] {
        let above = format!("$d = dba_open(__DIR__ . '/cups', 'c', '{handler}');").leak();
        let ask = "dba_insert($who, 'x', $d);
                   for ($n = 0, $k = dba_firstkey($d); $k !== false; $k = dba_nextkey($d)) { $n++; }
                   dba_sync($d);
                   echo dba_fetch($who, $d) === 'x' ? $who : 'nobody', ' ', all($n);";
        let half = "dba_firstkey($d); dba_fetch('none', $d);";
        start(&kind(handler, above, ask, half), "script", &["dba"], &[]).run();
    }
}
