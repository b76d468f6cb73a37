//! Statements of each client of a database, and of parallel HTTP requests: text, count, rows, and
//! the place of repeated ones, in each execution model.

use crate::request_accounting::bench::{MODELS, ask, figures, serving, started};
use samovar_testkit::{MariaDb, Postgres, Redis};
use serde_json::Value;

const REQUESTS: u64 = 2;
/// Executions of the repeated statement in a request.
const REPEATS: u64 = 12;

/// A client, and the statements of one request: text, calls and rows.
struct Client {
    name: &'static str,
    work: &'static str,
    statements: &'static [(&'static str, u64, u64)],
    /// Text of the repeated statement.
    repeated: &'static str,
    kind: &'static str,
}

/// The request reports the line of the repeated statement.
const MARK: &str = "header('x-line: ' . __LINE__);";

const MYSQL: [Client; 3] = [
    Client {
        name: "mysqli, methods",
        work: r#"
            $db = new mysqli(null, 'root', '', 'test', 0, getenv('MYSQL'));
            $db->query('CREATE TEMPORARY TABLE tea (id INT, name VARCHAR(9))');
            $db->query("INSERT INTO tea VALUES (1, 's3cr3t'), (2, 'b'), (3, \"s3cr3t\")");
            $db->query("SELECT id FROM tea WHERE name <> 's3cr3t!' -- s3cr3t
                ORDER BY id")->fetch_all();
            $db->query('SELECT name FROM tea', MYSQLI_USE_RESULT)->free();
            $one = $db->prepare('SELECT name FROM tea WHERE id = ?');
            for ($n = 0; $n < 12; $n++) {
                $id = 1 + $n % 3;
                $one->bind_param('i', $id);
                $one->execute(); MARK
                $one->get_result()->fetch_all();
            }
            $change = new mysqli_stmt($db, 'UPDATE tea SET id = id + ?');
            $change->execute([10]);
            $db->execute_query('SELECT id FROM tea WHERE id > ?', [11])->fetch_all();
            $cursor = $db->prepare('SELECT name, id FROM tea');
            $cursor->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
            $cursor->execute();
            count($cursor->get_result()->fetch_all()) === 3 || throw new Error('rows');
            $db->begin_transaction();
            $db->rollback();
            $db->multi_query('DELETE FROM tea WHERE id = 11; SELECT 1');
            while ($db->next_result()) {
                $db->store_result();
            }
            try {
                $db->query("SELECT gone FROM tea WHERE name = 's3cr3t'");
            } catch (mysqli_sql_exception) {
            }
        "#,
        statements: &[
            ("CREATE TEMPORARY TABLE tea (id INT, name VARCHAR(?))", 1, 0),
            ("INSERT INTO tea VALUES (?)", 1, 3),
            ("SELECT id FROM tea WHERE name <> ? ORDER BY id", 1, 3),
            ("SELECT name FROM tea", 1, 0),
            ("UPDATE tea SET id = id + ?", 1, 3),
            ("SELECT id FROM tea WHERE id > ?", 1, 2),
            ("SELECT name, id FROM tea", 1, 3),
            ("BEGIN", 1, 0),
            ("ROLLBACK", 1, 0),
            ("DELETE FROM tea WHERE id = ?; SELECT ?", 1, 1),
            ("SELECT gone FROM tea WHERE name = ?", 1, 0),
            ("SELECT name FROM tea WHERE id = ?", REPEATS, REPEATS),
            ("(connect)", 1, 0),
        ],
        repeated: "SELECT name FROM tea WHERE id = ?",
        kind: "sql",
    },
    Client {
        name: "mysqli, functions",
        work: r#"
            $db = mysqli_init();
            mysqli_real_connect($db, null, 'root', '', 'test', 0, getenv('MYSQL'));
            mysqli_query($db, 'CREATE TEMPORARY TABLE tea (id INT)');
            mysqli_real_query($db, 'INSERT INTO tea VALUES (1), (2)');
            for ($n = 0; $n < 12; $n++) {
                mysqli_fetch_all(mysqli_query($db, "SELECT id FROM tea WHERE id > $n - 12")); MARK
            }
            $one = mysqli_stmt_init($db);
            mysqli_stmt_prepare($one, 'SELECT id + ? FROM tea');
            mysqli_stmt_execute($one, ['s3cr3t']);
            mysqli_fetch_all(mysqli_stmt_get_result($one));
            $two = mysqli_prepare($db, 'DELETE FROM tea WHERE id = ?');
            mysqli_execute($two, [1]);
            mysqli_begin_transaction($db);
            mysqli_commit($db);
        "#,
        statements: &[
            ("INSERT INTO tea VALUES (?)", 1, 2),
            ("SELECT id FROM tea WHERE id > ? - ?", REPEATS, 2 * REPEATS),
            ("SELECT id + ? FROM tea", 1, 2),
            ("DELETE FROM tea WHERE id = ?", 1, 1),
            ("BEGIN", 1, 0),
            ("COMMIT", 1, 0),
            ("(connect)", 1, 0),
        ],
        repeated: "SELECT id FROM tea WHERE id > ? - ?",
        kind: "sql",
    },
    Client {
        name: "PDO mysql",
        work: r#"
            foreach ([true, false] as $is_emulated) {
                $db = new PDO('mysql:dbname=test;unix_socket=' . getenv('MYSQL'), 'root', '');
                $db->setAttribute(PDO::ATTR_EMULATE_PREPARES, $is_emulated);
                $db->exec('CREATE TEMPORARY TABLE tea (id INT, name VARCHAR(9))');
                $db->exec('INSERT INTO tea VALUES (1, "s3cr3t"), (2, "b")');
                $db->query('SELECT id FROM tea WHERE name <> "s3cr3t!"')->fetchAll();
                $one = $db->prepare('SELECT name FROM tea WHERE id > :id');
                for ($n = 0; $n < 6; $n++) {
                    $one->execute(['id' => 's3cr3t']); MARK
                    $one->fetchAll();
                }
            }
        "#,
        statements: &[
            ("INSERT INTO tea VALUES (?)", 2, 4),
            ("SELECT id FROM tea WHERE name <> ?", 2, 4),
            ("SELECT name FROM tea WHERE id > ?", REPEATS, 2 * REPEATS),
            ("(connect)", 2, 0),
        ],
        repeated: "SELECT name FROM tea WHERE id > ?",
        kind: "sql",
    },
];

const PGSQL: [Client; 2] = [
    Client {
        name: "pgsql",
        work: r#"
            $db = pg_connect('host=' . getenv('PGSQL') . ' dbname=tea user=postgres',
                PGSQL_CONNECT_FORCE_NEW);
            pg_query($db, 'CREATE TEMPORARY TABLE tea (id INT, name TEXT)');
            pg_query("INSERT INTO tea VALUES (1, 's3cr3t'), (2, $\$s3cr3t$\$), (3, E'\\'s3cr3t')");
            pg_fetch_all(pg_query($db, 'SELECT "id" FROM tea /* s3cr3t */ ORDER BY id'));
            pg_prepare($db, 'one', 'SELECT name FROM tea WHERE id = $1');
            for ($n = 0; $n < 12; $n++) {
                pg_execute($db, 'one', [1 + $n % 3]); MARK
            }
            pg_prepare('two', 'DELETE FROM tea WHERE id = $1');
            pg_execute('two', [1]);
            pg_query_params($db, 'UPDATE tea SET id = id + $1 WHERE id > $2', [1, 0]);
            pg_query_params('SELECT name FROM tea WHERE name <> $1', ['s3cr3t!']);
            @pg_query($db, "SELECT gone FROM tea WHERE name = 's3cr3t'");
        "#,
        statements: &[
            ("CREATE TEMPORARY TABLE tea (id INT, name TEXT)", 1, 0),
            ("INSERT INTO tea VALUES (?)", 1, 3),
            ("SELECT \"id\" FROM tea ORDER BY id", 1, 3),
            ("SELECT name FROM tea WHERE id = ?", REPEATS, REPEATS),
            ("DELETE FROM tea WHERE id = ?", 1, 1),
            ("UPDATE tea SET id = id + ? WHERE id > ?", 1, 2),
            ("SELECT name FROM tea WHERE name <> ?", 1, 2),
            ("SELECT gone FROM tea WHERE name = ?", 1, 0),
            ("(connect)", 1, 0),
        ],
        repeated: "SELECT name FROM tea WHERE id = ?",
        kind: "sql",
    },
    Client {
        name: "PDO pgsql",
        work: r#"
            $db = new PDO('pgsql:host=' . getenv('PGSQL') . ';dbname=tea', 'postgres');
            $db->exec('CREATE TEMPORARY TABLE tea (id INT, name TEXT)');
            $db->exec("INSERT INTO tea VALUES (1, 's3cr3t'), (2, 'b')");
            $one = $db->prepare('SELECT name FROM tea WHERE id >= :id');
            for ($n = 0; $n < 12; $n++) {
                $one->execute(['id' => 1]); MARK
                $one->fetchAll();
            }
            $db->query("UPDATE tea SET name = 's3cr3t'");
            $db->beginTransaction();
            $db->rollBack();
        "#,
        statements: &[
            ("INSERT INTO tea VALUES (?)", 1, 2),
            ("SELECT name FROM tea WHERE id >= ?", REPEATS, 2 * REPEATS),
            ("UPDATE tea SET name = ?", 1, 2),
            ("BEGIN", 1, 0),
            ("ROLLBACK", 1, 0),
            ("(connect)", 1, 0),
        ],
        repeated: "SELECT name FROM tea WHERE id >= ?",
        kind: "sql",
    },
];

const REDIS: [Client; 1] = [Client {
    name: "phpredis",
    work: r"
        $redis = new Redis;
        $redis->connect(getenv('REDIS'));
        $redis->hMSet('s3cr3t', ['a' => 's3cr3t', 'b' => 2]);
        for ($n = 0; $n < 12; $n++) {
            $redis->get('s3cr3t'); MARK
        }
        $redis->hGetAll('s3cr3t');
        $redis->multi()->set('a', 's3cr3t')->incr('b')->exec();
        $redis->rawCommand('GET', 's3cr3t');
        $redis->del('a', 'b', 's3cr3t');
    ",
    statements: &[
        ("(connect)", 1, 0),
        ("HMSET", 1, 0),
        ("GET", REPEATS, 0),
        ("HGETALL", 1, 0),
        ("SET", 1, 0),
        ("INCR", 1, 0),
        ("EXEC", 1, 0),
        ("RAWCOMMAND", 1, 0),
        ("DEL", 1, 0),
    ],
    repeated: "GET",
    kind: "redis",
}];

/// The three ways to use the interface: with its messages, without, and only with its end.
const PARALLEL: [Client; 2] = [
    Client {
        name: "curl_multi",
        work: r"
        $run = function (CurlMultiHandle $multi): void {
            do {
                curl_multi_exec($multi, $running);
                $running && curl_multi_select($multi, 0.01);
            } while ($running);
        };
        $add = function (CurlMultiHandle $multi, string $url, array $options = []): CurlHandle {
            $curl = curl_init($url);
            curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true] + $options);
            curl_multi_add_handle($multi, $curl); MARK
            return $curl;
        };
        $multi = curl_multi_init();
        $all = [];
        for ($n = 0; $n < 12; $n++) {
            $all[] = $add($multi, 'http://u:s3cr3t@127.0.0.1:1/teas/' . $n . '?t=s3cr3t');
        }
        $run($multi);
        while ($message = curl_multi_info_read($multi)) {
            curl_multi_remove_handle($multi, $message['handle']);
        }
        $post = $add($multi, 'http://127.0.0.1:1/orders', [CURLOPT_POSTFIELDS => 's3cr3t']);
        $run($multi);
        curl_multi_remove_handle($multi, $post);
        $put = $add($multi, 'http://127.0.0.1:1/orders/7', [CURLOPT_CUSTOMREQUEST => 'PUT']);
        $run($multi);
        curl_multi_close($multi);
        $never = $add($left = curl_multi_init(), 'http://127.0.0.1:1/never');
    ",
        statements: &[
            ("GET 127.0.0.1:1/teas/{n}", REPEATS, 0),
            ("POST 127.0.0.1:1/orders", 1, 0),
            ("PUT 127.0.0.1:1/orders/{n}", 1, 0),
            ("HTTP", 1, 0),
        ],
        repeated: "GET 127.0.0.1:1/teas/{n}",
        kind: "http",
    },
    Client {
        name: "curl_multi beyond its limit",
        work: r"
        for ($n = 0; $n < 3; $n++) {
            $dropped = curl_multi_init();
            curl_multi_add_handle($dropped, curl_init('http://127.0.0.1:1/dropped'));
            unset($dropped);
        }
        $multi = curl_multi_init();
        for ($n = 0; $n < 300; $n++) {
            $all[$n] = curl_init('http://127.0.0.1:1/many/' . $n);
            curl_multi_add_handle($multi, $all[$n]); MARK
        }
        do {
            curl_multi_exec($multi, $running);
        } while ($running);
        foreach ($all as $curl) {
            curl_multi_remove_handle($multi, $curl);
            curl_multi_remove_handle($multi, $curl);
        }
    ",
        statements: &[("GET 127.0.0.1:1/many/{n}", 256, 0), ("HTTP", 3, 0)],
        repeated: "GET 127.0.0.1:1/many/{n}",
        kind: "http",
    },
];

/// Runs the work of a client in each model, and compares all figures.
fn check(client: &Client, variables: &[(&str, &str)]) {
    for model in MODELS {
        let work = client.work.replace("MARK", MARK);
        let work = format!("Samovar\\route('shop');\n{work}");
        let start = serving(model, &work).workers(1);
        let start = variables.iter().fold(start, |start, (name, value)| start.env(name, value));
        let server = started(start, model);
        let mut line = String::new();
        for _ in 0..REQUESTS {
            let response = server.get("/");
            assert_eq!(response.status, 200, "{}, {model}: {}", client.name, response.text());
            response.header("x-line").expect("a line").clone_into(&mut line);
        }
        let found = figures(&server, "shop", REQUESTS);
        let all = found["statements"].as_array().expect("a list");
        for (text, calls, rows) in client.statements {
            let one = all.iter().find(|one| one["text"] == *text);
            let one = one.unwrap_or_else(|| panic!("{}, {model}: {text}: {all:#?}", client.name));
            let expected = (&Value::from(calls * REQUESTS), &Value::from(rows * REQUESTS));
            assert_eq!((&one["calls"], &one["rows"]), expected, "{}, {model}: {one}", client.name);
            assert_eq!(one["kind"], client.kind, "{}, {model}: {one}", client.name);
            let repeats = if *text == client.repeated { REQUESTS } else { 0 };
            assert_eq!(one["repeating_requests"], repeats, "{}, {model}: {one}", client.name);
            if repeats > 0 {
                assert_eq!(one["line"].to_string(), line, "{}, {model}: {one}", client.name);
                assert!(one["ns"].as_u64().is_some_and(|ns| ns > 0), "{}: {one}", client.name);
            }
        }
        for text in [found.to_string(), ask(&server, "/route?name=shop")] {
            assert!(!text.contains("s3cr3t"), "{}, {model}: {text}", client.name);
        }
        server.stop();
    }
}

#[test]
fn mysql_clients_report_statements() {
    let database = MariaDb::start();
    database.query("CREATE DATABASE IF NOT EXISTS test");
    for client in &MYSQL {
        check(client, &[("MYSQL", &database.socket().display().to_string())]);
    }
}

#[test]
fn pgsql_clients_report_statements() {
    let database = Postgres::with(&["tea"]);
    for client in &PGSQL {
        check(client, &[("PGSQL", database.folder())]);
    }
}

#[test]
fn redis_client_reports_commands() {
    let database = Redis::start();
    check(&REDIS[0], &[("REDIS", &database.socket().display().to_string())]);
}

#[test]
fn parallel_http_requests_are_reported() {
    for client in &PARALLEL {
        check(client, &[]);
    }
}
