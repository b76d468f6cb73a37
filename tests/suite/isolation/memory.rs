//! Every page that a request writes is restored, regardless of the writer and the frequency.
//!
//! A rollback does not check all of memory. It counts page faults and excludes those with a known
//! cause. It searches where pages were written before, and stops when all faults are explained.
//! These tests use writes that might escape it. A block of the image is filled with `a`; each
//! request reports the content of the block before its own action.

use crate::isolation::stage::json;
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;

const BLOCK_PAGES: usize = 3000;

/// `$block` is part of the image. `w()` writes to one of its pages, `found()` returns whether it
/// was clean.
const ABOVE: &str = "
$c = FFI::cdef('
    typedef unsigned long word; typedef struct { void *at; word len; } part;
    long read(int, void *, word); int open(const char *, int, ...); int close(int);
    long getrandom(void *, word, unsigned); long syscall(long, ...);
    long process_vm_writev(int, part *, word, part *, word, word);
    int socketpair(int, int, int, int *);
    long send(int, void *, word, int); long recv(int, void *, word, int);
    void *mmap(void *, word, int, int, int, long); int munmap(void *, word);
    void *mremap(void *, word, word, int, ...); int madvise(void *, word, int);
    int mlockall(int); int mlock(void *, word);
    void *malloc(word); void *calloc(word, word); void free(void *);
    int pthread_create(word *, void *, word (*)(word), word); int pthread_join(word, void *);
    word strfry(word);
    void *fopen(const char *, const char *); int fseek(void *, long, int);
    word fwrite(void *, word, word, void *);
    int fclose(void *); int getpid(void);
');
const PAGES = BLOCK_PAGES;
$raw = $c->malloc((PAGES + 2) * 4096);
FFI::memset($raw, 97, (PAGES + 2) * 4096);
$block = $c->cast('char *', $raw);
// Texts that a shuffle changes, one on each page.
for ($i = 0; $i < PAGES; $i++) {
    foreach (['w', 'x', 'y', 'z', chr(0)] as $n => $char) {
        $block[$i * 4096 + 210 + 20 * $n] = $char; } }
$clean = crc32(FFI::string($block, PAGES * 4096));
file_put_contents($file = getenv('MEMORY_FOLDER') . '/file', str_repeat('file', 4096));
function found() {
    global $block, $clean; return crc32(FFI::string($block, PAGES * 4096)) === $clean; }
function w($page, $with = 'b') { global $block; $block[$page * 4096 + 100] = $with; }
";

pub(super) fn start(below: &str) -> Start {
    start_with("", below)
}

/// Starts a server; `more` is additional code above the checkpoint.
fn start_with(more: &str, below: &str) -> Start {
    let above = ABOVE.replace("BLOCK_PAGES", &BLOCK_PAGES.to_string());
    let start = Server::script(&format!("<?php\n{above}\n{more}\nSamovar\\checkpoint();\n{below}"))
        .workers(1)
        .define("ffi.enable", "1")
        .define("memory_limit", "512M");
    let folder = start.folder().display().to_string();
    start.env("MEMORY_FOLDER", &folder)
}

pub(super) fn image(server: &Server) -> Value {
    server.status()["image"].clone()
}

fn number(server: &Server, key: &str) -> u64 {
    image(server)[key].as_u64().unwrap_or_default()
}

/// Sends a request to the server and parses its JSON response.
pub(super) fn ask(server: &Server, target: &str) -> Value {
    json(&server.get(target))
}

pub(super) type Change = fn(Start) -> Start;
pub(super) const KERNELS: [(&str, Change); 2] =
    [("this kernel", |s| s), ("no PAGEMAP_SCAN", Start::without_pagemap_scan)];

/// Each attack runs on pages that no request has touched so far, with other pages in between.
pub(super) const ATTACKS: [(&str, &str); 19] = [
    ("a write", "w($p);"),
    ("a write beside an excused fault", "readfile($file); w($p);"),
    ("two writes beside two excused files", "readfile($file); w($p); readfile($file); w($p + 1);"),
    (
        "a write beside a small mapping",
        "$m = $c->mmap(null, 65536, 3, 34, -1, 0); w($p); FFI::memset($m, 1, 65536);",
    ),
    (
        "a mapping of which nothing is used",
        "$m = $c->mmap(null, 65536, 3, 34, -1, 0); w($p); w($p + 1); w($p + 2);",
    ),
    (
        "a write beside a shared mapping",
        "$fd = $c->open($file, 2); $m = $c->mmap(null, 16384, 3, 1, $fd, 0); w($p); \
         FFI::memset($m, 102, 20); $c->close($fd);",
    ),
    (
        "read()",
        "$fd = $c->open($file, 0); \
         $n = $c->read($fd, $block + $p * 4096 + 4000, 5000); $c->close($fd);",
    ),
    ("getrandom()", "$c->getrandom($block + $p * 4096, 3 * 4096, 0);"),
    (
        "recv()",
        "$s = $c->new('int[2]'); $c->socketpair(1, 1, 0, $s); $c->send($s[0], $block, 4000, 0);
         w($p, 'x'); $c->recv($s[1], $block + $p * 4096 + 4090, 4000, 0);
         $block[$p * 4096 + 4092] = 'x';",
    ),
    (
        "process_vm_writev()",
        "$x = $c->new('char[10]'); FFI::memset($x, 120, 10);
         $from = $c->new('part'); $to = $c->new('part');
         $from->at = FFI::addr($x); $from->len = $to->len = 10; $to->at = $block + $p * 4096;
         $c->process_vm_writev($c->getpid(), FFI::addr($from), 1, FFI::addr($to), 1, 0);",
    ),
    (
        "/proc/self/mem",
        "$f = $c->fopen('/proc/self/mem', 'r+'); $c->fseek($f, $address + $p * 4096, 0);
         $x = $c->new('char[10]'); FFI::memset($x, 120, 10);
         $c->fwrite($x, 1, 10, $f); $c->fclose($f);",
    ),
    (
        "a thread",
        "$t = $c->new('word');
         $c->pthread_create(FFI::addr($t), null, $c->strfry, $address + $p * 4096 + 200);
         $c->pthread_join($t->cdata, null);",
    ),
    (
        "a thread beside this one",
        "$t = $c->new('word');
         $c->pthread_create(FFI::addr($t), null, $c->strfry, $address + $p * 4096 + 200);
         w($p + 1); $c->pthread_join($t->cdata, null);",
    ),
    ("a child before it writes", "shell_exec('true'); w($p); shell_exec('true'); w($p + 1);"),
    (
        "a fork",
        "$pid = pcntl_fork(); if (!$pid) { w($p); posix_kill(posix_getpid(), 9); } \
         pcntl_waitpid($pid, $s); w($p);",
    ),
    (
        "populated, and written without a fault",
        "$c->madvise($aligned($p), 3 * 4096, 23); w($p + 1); w($p + 2);",
    ),
    (
        "given back by a system call of its own, and written again",
        "w($p); w($p + 1); $c->syscall(28, $aligned($p), 2 * 4096, 4); w($p + 1, 'c');",
    ),
    (
        "paged out",
        "w($p); $c->madvise($aligned($p), 3 * 4096, 21); \
         $c->madvise($aligned($p), 3 * 4096, 20); w($p + 1);",
    ),
    (
        "collapsed to huge pages",
        "$c->madvise($aligned(0), 8 << 20, 14); $c->madvise($aligned(0), 8 << 20, 25); w($p);",
    ),
];

pub(super) fn word(name: &str) -> String {
    name.replace(' ', "-")
}

#[test]
fn written_page_is_rolled_back() {
    let case = |(name, php): &(&str, &str)| format!("case '{}': {php} break;", word(name));
    let cases: Vec<_> = ATTACKS.iter().map(case).collect();
    let below = format!(
        "$address = $c->cast($c->type('word'), $block)->cdata;
         $aligned = fn ($p) => $block + ($p * 4096 + 4096 - $address % 4096);
         $p = (int) ($_GET['p'] ?? 0); $was = found();
         ob_start(); switch ($_GET['do'] ?? '') {{ {} }} ob_end_clean();
         echo json_encode(['was' => $was, 'is' => isset($_GET['do']) ? found() : true]);",
        cases.join("\n")
    );
    for (kernel, change) in KERNELS {
        let server = change(start(&below)).start();
        for (name, _) in ATTACKS {
            let target = word(name);
            for p in [5, 400, 401, 1200, 5, 2500, 400] {
                let response = ask(&server, &format!("/?do={target}&p={p}"));
                assert_eq!(response["was"], true, "before {name} of page {p}, {kernel}");
                assert_eq!(response["is"], false, "{name} does nothing, {kernel}");
                for _ in 0..2 {
                    assert_eq!(
                        ask(&server, "/")["was"],
                        true,
                        "after {name} of page {p}, {kernel}"
                    );
                }
            }
        }
        server.stop();
    }
}

/// Makes the kernel watch the first pages of the block: requests that write that many pages are
/// neither rare nor usual.
fn watch(server: &Server) {
    for target in ["/?many", "/", "/", "/", "/?many", "/"] {
        assert_eq!(ask(server, target)["was"], true, "{target}");
    }
}

/// Each attack on pages that equal the image and are watched by the kernel for the next write. Then
/// an attack on the watch itself.
#[test]
fn write_to_watched_page_is_rolled_back() {
    const CLOSED: &str = "foreach (scandir('/proc/self/fd') as $fd) {
        if (@readlink(\"/proc/self/fd/$fd\") === 'anon_inode:[userfaultfd]') {
            $c->syscall(3, (int) $fd); }
    } w($p);";
    let attacks: Vec<_> = ATTACKS.into_iter().chain([("its watch ends", CLOSED)]).collect();
    let case = |(name, php): &(&str, &str)| format!("case '{}': {php} break;", word(name));
    let cases: Vec<_> = attacks.iter().map(case).collect();
    let below = format!(
        "$address = $c->cast($c->type('word'), $block)->cdata;
         $aligned = fn ($p) => $block + ($p * 4096 + 4096 - $address % 4096);
         $p = (int) ($_GET['p'] ?? 0); $was = found();
         if (isset($_GET['many'])) {{ for ($i = 0; $i < 2600; $i++) {{ w($i); }} }}
         ob_start(); switch ($_GET['do'] ?? '') {{ {} }} ob_end_clean();
         echo json_encode(['was' => $was, 'is' => isset($_GET['do']) ? found() : true]);",
        cases.join("\n")
    );
    let server = start(&below).start();
    for (name, _) in attacks {
        watch(&server);
        let target = word(name);
        for p in [5, 400, 401, 1200, 5, 2500, 400] {
            let response = ask(&server, &format!("/?do={target}&p={p}"));
            assert_eq!(response["was"], true, "before {name} of page {p}");
            assert_eq!(response["is"], false, "{name} does nothing");
            for _ in 0..2 {
                assert_eq!(ask(&server, "/")["was"], true, "after {name} of page {p}");
            }
        }
    }
    server.stop();
}

/// Requests of all sizes in an order set by a seed: the set of hot pages changes all the time.
#[test]
fn changing_hot_pages_restore_image() {
    const REQUESTS: u32 = 300;
    let below = "
        mt_srand((int) $_GET['seed']); $was = $_GET['look'] ? found() : true;
        switch (mt_rand(0, 9)) {
            case 0: readfile($file); break;
            case 1: $s = str_repeat('x', mt_rand(1, 9) << 20); break;
            case 2: $m = $c->malloc(3 << 20); FFI::memset($m, 7, 3 << 20); break;
            case 3: shell_exec('true'); break;
            case 4: preg_match('/x' . mt_rand() . '[a-z]*/', 'x'); break;
            case 5: setlocale(LC_ALL, ['C.UTF-8', 'C.utf8']); break;
        }
        $count = [0, 1, 3, 40, 700, PAGES][min(5, (int) (mt_rand(0, 99) ** 2 / 1700))];
        $from = mt_rand(0, PAGES - 1); $step = mt_rand(1, 7);
        for ($i = 0; $i < $count; $i++) {
            w(($from + $i * $step) % PAGES, mt_rand(0, 3) ? 'b' : 'a');
        }
        ob_clean(); echo json_encode(['was' => $was]);";
    for (kernel, change) in KERNELS {
        let server = change(start(&format!("ob_start(); {below}"))).start();
        for n in 0..REQUESTS {
            let seed = n.wrapping_mul(2_654_435_761) >> 3;
            let look = u32::from(n % 3 != 1);
            let response = ask(&server, &format!("/?seed={seed}&look={look}"));
            assert_eq!(response["was"], true, "before request {n}, {kernel}");
        }
        let status = image(&server);
        assert_eq!(status["refork_total"], 0, "{kernel}: {status}");
        server.stop();
    }
}

#[test]
fn unrestorable_mapping_replaces_worker() {
    for (name, attack) in [
        ("mlockall", "$c->mlockall(1); w(7);"),
        ("mlock", "$c->mlock($aligned(7), 4096); w(8);"),
        ("mapped over", "$c->mmap($aligned(9), 4096, 3, 0x32, -1, 0);"),
    ] {
        let server = start(&format!(
            "$address = $c->cast($c->type('word'), $block)->cdata;
             $aligned = fn ($p) => $block + ($p * 4096 + 4096 - $address % 4096);
             $was = found(); if (isset($_GET['do'])) {{ {attack} }}
             echo json_encode(['was' => $was, 'is' => found()]);"
        ))
        .start();
        assert_eq!(ask(&server, "/?do=1")["is"], false, "{name}");
        for _ in 0..3 {
            let response = ask(&server, "/");
            assert_eq!((&response["was"], &response["is"]), (&true.into(), &true.into()), "{name}");
        }
        let status = image(&server);
        assert_eq!(status["refork_reasons"]["mapping"], 1, "{name}: {status}");
        server.stop();
    }
}

/// Memory that no request can write is not part of the image. A check of the mapped addresses alone
/// finds all of them still mapped.
#[test]
fn replaced_mapping_replaces_worker() {
    let above = "$fd = $c->open($file, 0);
        $mapped = $c->mmap(null, 8192, 1, 2, $fd, 0); $c->close($fd);
        $text = $c->cast('char *', $mapped);
        function found_text() {
            global $text; return FFI::string($text, 8192) === str_repeat('file', 2048); }";
    for (name, attack) in [
        ("mapped over", "$c->mmap($text, 4096, 3, 0x32, -1, 0);"),
        (
            "unmapped and filled",
            "$c->munmap($text + 4096, 4096); $c->mmap($text + 4096, 4096, 3, 0x32, -1, 0);",
        ),
        (
            "moved away and filled",
            "$c->mremap($text, 8192, 16384, 1); $c->mmap($text, 8192, 3, 0x32, -1, 0);",
        ),
        (
            "moved there",
            "$m = $c->mmap(null, 4096, 3, 0x22, -1, 0); \
             $c->mremap($m, 4096, 4096, 3, $text + 4096);",
        ),
    ] {
        let below = format!(
            "$was = found_text(); if (isset($_GET['do'])) {{ {attack} }} \
             echo json_encode(['was' => $was]);"
        );
        let server = start_with(above, &below).start();
        assert_eq!(ask(&server, "/?do=1")["was"], true, "{name}");
        for _ in 0..2 {
            assert_eq!(ask(&server, "/")["was"], true, "{name}");
        }
        let status = image(&server);
        assert_eq!(status["refork_reasons"]["mapping"], 1, "{name}: {status}");
        server.stop();
    }
}

#[test]
fn newly_allocated_memory_is_zero() {
    let server = start(
        "$zero = str_repeat(\"\\0\", 2 << 20); $ok = [];
         foreach ([1, 2] as $n) {
             $m = $c->mmap(null, 2 << 20, 3, 34, -1, 0);
             $ok[] = FFI::string($c->cast('char *', $m), 2 << 20) === $zero;
             FFI::memset($m, 1, 2 << 20);
             $m = $c->mmap(null, 65536, 3, 34, -1, 0);
             $ok[] = FFI::string($c->cast('char *', $m), 65536) === substr($zero, 0, 65536);
             FFI::memset($m, 1, 65536);
             $m = $c->calloc(1, 2 << 20);
             $ok[] = FFI::string($c->cast('char *', $m), 2 << 20) === $zero;
             FFI::memset($m, 1, 2 << 20); $c->free($m);
             $m = $c->malloc(3 << 20); FFI::memset($m, 1, 3 << 20); $c->free($m);
             $big = str_repeat('x', 5 << 20); $list = range(1, 200000);
         }
         echo json_encode($ok);",
    )
    .start();
    for _ in 0..5 {
        assert_eq!(ask(&server, "/"), serde_json::json!([true, true, true, true, true, true]));
    }
}

/// Anonymous memory of the worker, in MiB.
fn own_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.worker_pid()));
    let status = status.expect("the worker lives");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux says it");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).expect("kB") / 1024
}

#[test]
fn large_request_releases_its_memory() {
    let server = start(
        "$s = str_repeat('x', (int) ($_GET['mib'] ?? 0) << 20); echo json_encode(strlen($s));",
    )
    .start();
    ask(&server, "/?mib=3");
    let before = own_mib(&server);
    ask(&server, "/?mib=100");
    ask(&server, "/");
    assert!(
        own_mib(&server) < before + 10,
        "one large request: {before} MiB, {}",
        own_mib(&server)
    );
    ask(&server, "/?mib=100");
    ask(&server, "/?mib=100");
    assert!(own_mib(&server) > before + 90, "two in a row are usual, and kept");
    eventually("an idle worker gives it back", || (own_mib(&server) < before + 10).then_some(()));
    assert_eq!(ask(&server, "/?mib=3"), 3 << 20);
}

#[test]
fn hot_pages_of_large_requests_expire() {
    let server = start(
        "$n = (int) ($_GET['n'] ?? 0); \
         for ($i = 0; $i < $n; $i++) { w($i); } echo json_encode($n);",
    )
    .start();
    for _ in 0..4 {
        ask(&server, "/?n=3000");
    }
    assert!(number(&server, "hot_pages") > 2900, "{}", image(&server));
    for (small_requests, pages_max) in [(3, 1500), (60, 300)] {
        for _ in 0..small_requests {
            ask(&server, "/");
        }
        let hot = number(&server, "hot_pages");
        assert!(hot < pages_max, "after {small_requests} more: {}", image(&server));
    }
}

/// More separate ranges than one result of the kernel can hold.
#[test]
fn scattered_written_pages_keep_worker() {
    const PAGES: usize = 20_000;
    let server = Server::script(&format!(
        "<?php $list = []; for ($i = 0; $i < {PAGES}; $i++) {{ $list[] = str_repeat('a', 4060); }}
         Samovar\\checkpoint();
         $dirty = 0; foreach ($list as $at => $text) {{ $dirty += $text[9] !== 'a'; }}
         unset($text);
         if (isset($_GET['w'])) {{
             for ($i = $_GET['w'] % 2; $i < {PAGES}; $i += 2) {{ $list[$i][9] = 'b'; }} }}
         echo json_encode([$dirty, getmypid()]);"
    ))
    .define("memory_limit", "512M")
    .workers(1)
    .start();
    let pid = ask(&server, "/")[1].clone();
    for target in ["/?w=1", "/?w=2", "/", "/?w=1", "/?w=1", "/?w=1", "/"] {
        assert_eq!(ask(&server, target), serde_json::json!([0, pid]), "{target}");
    }
    assert_eq!(number(&server, "refork_total"), 0, "{}", image(&server));
}

/// In the steady state, usual requests do not cause searches of memory.
#[test]
fn usual_requests_need_no_memory_search() {
    let server = start(
        "switch ($_GET['do'] ?? '') {
             case 'file': readfile($file); break;
             case 'pattern': for ($i = 0; $i < 9; $i++) {
                 preg_match(\"/x{$i}[a-z]*(y|z)/\", 'xay'); } break;
             case 'string': $s = str_repeat('x', 3 << 20); break;
             case 'malloc': $m = $c->malloc(7 << 20); FFI::memset($m, 7, 7 << 20); break;
             case 'zone': $d = new DateTime('2026-01-01', new DateTimeZone('Europe/Berlin')); break;
             case 'child': shell_exec('true'); break;
             case 'log': $db = new PDO('sqlite:' . getenv('MEMORY_FOLDER') . '/rows.db');
                 $db->exec('PRAGMA journal_mode = WAL');
                 $db->exec('CREATE TABLE IF NOT EXISTS cups (n INT)');
                 $db->exec('INSERT INTO cups VALUES (1)');
                 $db->query('SELECT COUNT(*) FROM cups')->fetchAll(); break;
         }
         echo 'done';",
    )
    .start();
    for name in ["", "file", "pattern", "string", "malloc", "zone", "child", "log"] {
        let target = format!("/?do={name}");
        let mut client = server.client();
        for _ in 0..40 {
            client.get(&target);
        }
        let before = number(&server, "searches_total");
        for _ in 0..40 {
            assert!(client.get(&target).text().ends_with("done"), "{name}");
        }
        let searches = number(&server, "searches_total") - before;
        assert!(searches <= 8, "{name}: {searches} of 40 rollbacks searched; {}", image(&server));
        let hot = number(&server, "hot_pages");
        assert!(hot < 400, "{name}: {hot} hot pages");
    }
}

/// The faults of other threads are not counted. Pages that other threads wrote must not be taken as
/// the explanation of this thread's faults: the search would end too early. For some number of
/// pages the two counts are equal. Only the first such request of a worker shows this, because the
/// worker then distrusts the count.
#[test]
fn writes_of_threads_do_not_explain_faults_of_request() {
    const PAGES_MAX: usize = 40;
    // At a distant address, so that it is searched after the pages that the thread writes.
    let above = format!(
        "$far = $c->cast('char *', $c->mmap(null, 131072, 3, 34, -1, 0));
         FFI::memset($far, 97, 131072);
         $text = $c->cast('char *', $c->malloc({PAGES_MAX} * 4096));
         FFI::memset($text, 97, {PAGES_MAX} * 4096);
         for ($i = 1; $i < {PAGES_MAX}; $i++) {{ $text[$i * 4096] = 'b'; }}
         $text[{PAGES_MAX} * 4096 - 1] = chr(0);
         $address = $c->cast($c->type('word'), $text)->cdata;
         function all_found() {{
             global $far, $text; return crc32(FFI::string($far, 131072) . FFI::string($text)); }}
         $clean_all = all_found();"
    );
    let below = format!(
        "$n = (int) ($_GET['n'] ?? 0);
         switch ($_GET['do'] ?? '') {{
             case 'die': posix_kill(posix_getpid(), 9);
             case 'look': $was = all_found() === $clean_all; break;
             // The last pages of the text.
             case 'thread': $t = $c->new('word');
                 $at = $address + ({PAGES_MAX} - $n) * 4096;
                 $c->pthread_create(FFI::addr($t), null, $c->strfry, $at);
                 $c->pthread_join($t->cdata, null);
                 $far[70000] = 'b';
         }}
         echo json_encode($was ?? true);"
    );
    let server = start_with(&above, &below).args(["--retries-max", "0"]).start();
    for n in 1..=PAGES_MAX {
        server.get("/?do=die");
        for target in ["/", "/", "/", &format!("/?do=thread&n={n}"), "/?do=look", "/?do=look"] {
            assert_eq!(ask(&server, target), true, "{n} pages");
        }
    }
    server.stop();
}

/// State that a request sets with libc functions and that cannot be reset.
#[test]
fn kernel_state_set_by_libc_replaces_worker() {
    let above = "$k = FFI::cdef('typedef unsigned long word;
             typedef struct { short type, whence; long start, len; int pid; } range;
             int mlock2(void *, word, unsigned); int mlockall(int); int munlockall(void);
             int munlock(void *, word); int mprotect(void *, word, int);
             int fcntl(int, int, ...); int ioctl(int, word, ...);
             int open(const char *, int, ...); long syscall(long, ...);');
         $fd = $k->open($file, 2);
         $address = $c->cast($c->type('word'), $block)->cdata;
         $aligned = fn ($p) => $block + ($p * 4096 + 4096 - $address % 4096);";
    let pair = "$s = $c->new('int[2]'); $c->socketpair(1, 1, 0, $s);";
    for (name, attack, reason) in [
        ("mlockall of what comes", "$k->mlockall(2);", "mapping"),
        ("munlockall", "$k->munlockall();", "mapping"),
        ("mlock2", "$k->mlock2($aligned(7), 4096, 1);", "mapping"),
        ("munlock", "$k->munlock($aligned(7), 4096);", "mapping"),
        ("mprotect", "$k->mprotect($aligned(7), 4096, 1);", "mapping"),
        (
            "a lock by description",
            "$r = $k->new('range'); $r->type = 1; $k->fcntl($fd, 37, FFI::addr($r));",
            "lock",
        ),
        ("its owner", "$k->fcntl($fd, 8, getmypid());", "descriptor"),
        (
            "ioprio_set",
            "$k->syscall(php_uname('m') === 'x86_64' ? 251 : 30, 1, 0, 2 << 13 | 7);",
            "privileges",
        ),
        ("a copy of a connection", "$k->fcntl($s[0], 0, 100);", "connection"),
        ("a copy to close", "$k->fcntl($s[0], 1030, 100);", "connection"),
        (
            "its signals",
            "$o = $c->new('int'); $k->ioctl($s[0], 0x8901, FFI::addr($o));",
            "connection",
        ),
    ] {
        let more =
            if reason == "connection" { format!("{above} {pair}") } else { above.to_owned() };
        let server = start_with(
            &more,
            &format!("if (isset($_GET['do'])) {{ {attack} }} echo json_encode(getmypid());"),
        )
        .args(["--prewarm-boot", "false"])
        .start();
        ask(&server, "/?do=1");
        let pid = ask(&server, "/");
        assert_eq!(ask(&server, "/"), pid, "{name}: {}", server.log());
        let status = image(&server);
        assert_eq!(status["refork_reasons"][reason], 1, "{name}: {status}");
        server.stop();
    }
}
