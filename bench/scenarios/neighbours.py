#!/usr/bin/python3
"""Isolation of pools: a shop under a steady load, next to a pool that misbehaves in each of several ways.

  bench/scenarios/neighbours.py [--kinds crash,loop,…] [--rounds 5] [--seconds 4] [--rate 200] [--nice 19] [--idle]
  bench/scenarios/neighbours.py --fpm      the same two sites by nginx and php-fpm, each with a pool of its own

One server has two pools of two workers. The shop's page takes half a millisecond of PHP after a
checkpoint. It is requested at a constant rate, and latency counts from the instant at which a
request was due: no coordinated omission. Each round of a kind is two measurements, the shop next to
a calm neighbour and next to a bad one, in alternating order. The table has the ratios of such pairs.

The clients of the bad pool have the same priority as the pool: its `nice` value, or only CPU time
that nothing else uses (`--idle`). `burn` shows the effect of the machine itself: programs outside
the server take all the CPU time that is left, at the same priority. The cost of another kind beyond
that is interference of the server, or of the kernel, which cannot always be interrupted.

`--fpm` shows the effect of the same misbehaviour on php-fpm. Its deadlines are full seconds. Its bad
pool has no memory ceiling, so it uses PHP's memory_limit. It cannot be idle.
"""

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("SAMOVAR_BIN", ROOT / "target/release/samovar"))
LOADS = (BINARY.with_name("samovar-load"), ROOT / "target/release/samovar-load")
START_SECONDS_MAX = 60
SETTLE_SECONDS = 0.5  # From the start of the misbehaviour to the start of the measurement.
CONNECTIONS = 16
CHECKPOINT = "if (function_exists('Samovar\\checkpoint')) { Samovar\\checkpoint(); }"
PAGE = f"<?php {CHECKPOINT} for ($i = 0, $x = 0; $i < 60000; $i++) {{ $x += $i & 7; }} echo $x;"
BAD = f"<?php {CHECKPOINT}" + """
switch ($_GET['do'] ?? '') {
    case 'crash': posix_kill(getmypid(), 11); break;
    case 'loop': while (true); break;
    case 'eat': $all = []; while (true) { $all[] = str_repeat('x', 1 << 20); } break;
    case 'stuck': flock(fopen(__DIR__ . '/lock', 'c'), LOCK_EX); break;
    case 'fork':
        for ($i = 0; $i < 100; $i++) {
            if (@pcntl_fork() === 0) {
                usleep(200000);
                posix_kill(getmypid(), SIGKILL);
            }
        }
        break;
    case 'big': for ($i = 0; $i < 500; $i++) { echo str_repeat('x', 100000); } break;
    case 'log': for ($i = 0; $i < 1000; $i++) { error_log("something is wrong: $i"); } break;
}
echo 'ok ', strlen(file_get_contents('php://input'));
"""
CONFIG = """
admin = "127.0.0.1:0"
[php]
memory_limit = "-1"
post_max_size = "64M"
[[pool]]
name = "bad"
match = "/bad/*"
root = "{bad}"
workers = 2
[pool.limits]
queue_max = 32
memory_ceiling = "256M"
processes = 200
nice = {nice}
scheduling = "{scheduling}"
[pool.timeouts]
queue = "1s"
response = "500ms"
grace = "200ms"
boot = "5s"
"""
# php-fpm and nginx, as close to these settings as possible.
FPM = """[global]
daemonize = no
[{name}]
listen = {folder}/{name}.sock
listen.backlog = {backlog}
pm = static
pm.max_children = 2
process.priority = {nice}
rlimit_core = 0
request_terminate_timeout = {timeout}
catch_workers_output = yes
php_admin_value[memory_limit] = {memory}
php_admin_value[post_max_size] = 64M
php_admin_flag[log_errors] = on
"""
NGINX = """{user}daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_max_body_size 64m;
    client_body_temp_path {folder}/nginx; proxy_temp_path {folder}/nginx; fastcgi_temp_path {folder}/nginx;
    uwsgi_temp_path {folder}/nginx; scgi_temp_path {folder}/nginx;
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME {folder}/shop/index.php;
            fastcgi_pass unix:{folder}/shop.sock;
        }}
        location /bad/ {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME {folder}/bad/index.php;
            fastcgi_pass unix:{folder}/bad.sock;
        }}
    }}
}}
"""
# Lines of its log that correspond to Samovar's counters.
FPM_LOG = {"worker_restarts_total": ("exited on signal", "Allowed memory size"),
           "timeouts_total": ("execution timed out",)}


# ---- kinds of misbehaviour
# ----------------------------------------------------------------------------


class Mischief:
    """Threads that repeat an action until the end of the `with`."""

    def __init__(self, lab, act, threads):
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.repeat, args=(lab, act)) for _ in range(threads)]

    def repeat(self, lab, act):
        step_back(lab)
        while not self.over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                act(lab, self.over)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        time.sleep(SETTLE_SECONDS)

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def step_back(lab):
    """Gives the calling thread the same priority as the bad pool."""
    os.nice(lab.nice)
    if lab.idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def asks(what, pause=0.0, body=None):
    """Sends a request for that action to the bad pool and waits for the result."""
    def act(lab, over):
        connection = http.client.HTTPConnection(lab.address, timeout=10)
        with contextlib.closing(connection):
            connection.request("POST" if body else "GET", f"/bad/?do={what}", body=body)
            answer = connection.getresponse()
            if answer.status == 200 and answer.read() == f"ok {len(body or '')}".encode():
                lab.good += 1
        over.wait(pause)
    return act


def slow_reader(lab, over):
    """Requests 50 MB and reads them at 1 MB a second."""
    with socket.create_connection(lab.address.rsplit(":", 1), timeout=10) as stream:
        stream.sendall(b"GET /bad/?do=big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = 0
        while not over.is_set() and (more := len(stream.recv(100_000))):
            got += more
            lab.good += got > 1_000_000
            over.wait(0.1)


def stopped(lab, over):
    """Stops the pool's workers repeatedly; they are killed when a request is overdue."""
    for pid in lab.workers("bad"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    asks("", 0)(lab, over)


def dying_boot(lab, over):
    """Deploys new code that dies while it boots, repeatedly; the old code is booted and continues to serve."""
    (lab.bad / "index.php").write_text("<?php posix_kill(getmypid(), SIGKILL);", encoding="utf-8")
    told = lab.run("reload", "--pool", "bad")
    lab.good += told.returncode != 0
    over.wait(0.05)


def nothing(_lab, over):
    over.wait()


# Kind: the action of a thread, the number of threads, a description, and those counters of the pool
# of which one must grow by it. `good` counts the actions that had their intended effect.
KINDS = {
    "burn": (nothing, 1, "two CPU-bound programs next to the server, as nice as the pool", ()),
    "crash": (asks("crash", 0.1), 2, "twenty crashes a second", ("worker_restarts_total",)),
    "loop": (asks("loop"), 2, "endless loops, each ended by its deadline", ("timeouts_total",)),
    "eat": (asks("eat"), 1, "memory up to the ceiling", ("worker_restarts_total",)),
    "stuck": (asks("stuck"), 40, "workers wait for a lock, forty clients for workers", ("timeouts_total",)),
    "flood": (asks("", 0), 100, "a hundred clients at once, most of them rejected", ("rejected_total",)),
    "stopped": (stopped, 4, "workers are stopped, and requests wait for them",
                ("worker_restarts_total", "timeouts_total", "rejected_total")),
    "boot": (dying_boot, 1, "new code repeatedly crashes during its boot", ("good",)),
    "big": (slow_reader, 8, "50 MB each for clients that take 1 MB a second", ("good",)),
    "upload": (asks("", 0, b"x" * 20_000_000), 2, "20 MB a request", ("good",)),
    "fork": (asks("fork", 0.2), 2, "a hundred children a request, up to the limit of processes", ("good",)),
    "log": (asks("log"), 2, "a thousand lines a request for the log", ("good",)),
}


# ---- the server -----------------------------------------------------------------------------------


class Lab:
    """The server and its two sites."""

    def __init__(self, folder, asked, stack):
        self.folder, self.bad, self.good = folder, folder / "bad", 0
        self.nice, self.idle = asked.nice, asked.idle
        for site, text in (("shop", PAGE), ("bad", BAD)):
            (folder / site).mkdir()
            (folder / site / "index.php").write_text(text, encoding="utf-8")
        config = folder / "samovar.toml"
        scheduling = "idle" if self.idle else "other"
        text = CONFIG.format(bad=self.bad, nice=self.nice, scheduling=scheduling)
        config.write_text(text, encoding="utf-8")
        command = [BINARY, "serve", folder / "shop", "--config", config, "--listen", "127.0.0.1:0", "--workers", "2",
                   "--control", folder / "control.sock"] + (["--allow-root"] if os.getuid() == 0 else [])
        log = stack.enter_context(open(folder / "log", "w", encoding="utf-8"))
        self.server = subprocess.Popen(command, stdout=log, stderr=log)
        stack.callback(self.end)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not (status := self.control("status")) or not status["listen"]:
            if self.server.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the server does not start:\n{(folder / 'log').read_text()}")
            time.sleep(0.05)
        self.address = status["listen"][0].split("//")[-1]

    def run(self, command, *flags):
        asked = [BINARY, command, "--control", self.folder / "control.sock", *flags]
        return subprocess.run(asked, capture_output=True, check=False)

    def control(self, command, *flags):
        with contextlib.suppress(ValueError):
            return json.loads(self.run(command, "--json", *flags).stdout)
        return None

    def counters(self):
        """Counters of the bad pool."""
        pools = (self.control("status") or {"pools": []})["pools"]
        return next((pool for pool in pools if pool["name"] == "bad"), {}) | {"good": self.good}

    def workers(self, pool):
        status = self.control("status") or {"workers": []}
        return [worker["pid"] for worker in status["workers"] if worker.get("pool", "default") == pool]

    def mend(self):
        """Restores the bad pool after any misbehaviour."""
        (self.bad / "index.php").write_text(BAD, encoding="utf-8")
        for pid in self.workers("bad"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.run("reload", "--pool", "bad", "--force")

    def end(self):
        self.server.terminate()
        self.server.wait()


class FpmLab:
    """nginx and php-fpm in place of the server: the same two sites, each with a pool of two children."""

    # php-fpm never kills a stopped child, has no boot that could fail, and no pcntl_fork().
    WITHOUT = ("stopped", "boot", "fork")

    def __init__(self, folder, asked, stack):
        self.folder, self.bad, self.good = folder, folder / "bad", 0
        self.nice, self.idle = asked.nice, asked.idle
        for site, text in (("shop", PAGE), ("bad", BAD)):
            (folder / site).mkdir()
            (folder / site / "index.php").write_text(text, encoding="utf-8")
        (folder / "nginx").mkdir()
        log = stack.enter_context(open(folder / "log", "w", encoding="utf-8"))
        # One master each, so that one site's crashes do not cause work for the other.
        for name, own in (("shop", {"nice": 0, "timeout": 0, "memory": "128M", "backlog": 1024}),
                          ("bad", {"nice": self.nice, "timeout": "1s", "memory": "256M", "backlog": 32})):
            text = FPM.format(folder=folder, name=name, **own)
            (folder / f"{name}.conf").write_text(text, encoding="utf-8")
            self.start(stack, log, "php-fpm8.2", "-R", "-F", "-O", "-y", folder / f"{name}.conf")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        user = "user root;\n" if os.getuid() == 0 else ""
        text = NGINX.format(folder=folder, port=port, user=user)
        (folder / "nginx.conf").write_text(text, encoding="utf-8")
        self.start(stack, log, "nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr")
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.serves():
            if time.monotonic() > deadline:
                sys.exit(f"php-fpm does not start:\n{(folder / 'log').read_text()}")
            time.sleep(0.05)

    @staticmethod
    def start(stack, log, *command):
        program = subprocess.Popen(command, stdout=log, stderr=log)
        stack.callback(program.wait)
        stack.callback(program.terminate)

    def serves(self):
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection(self.address)) as connection:
            connection.request("GET", "/")
            return connection.getresponse().read().isdigit()
        return False

    def counters(self):
        """Counters of the bad pool; nginx's own log counts the refused clients."""
        lines = (self.folder / "log").read_text().splitlines()
        of_bad = [line for line in lines if "[pool bad]" in line]
        found = {name: sum(words in line for line in of_bad for words in ways) for name, ways in FPM_LOG.items()}
        refused = sum("connect() to unix:" in line for line in lines)
        return found | {"rejected_total": refused, "good": self.good}

    def mend(self):
        """Nothing to restore: the misbehaviour has no lasting effect."""


def load():
    """The client; that of the release build if there is none next to the server's."""
    found = next((path for path in LOADS if path.exists()), None)
    return found or sys.exit("samovar-load is not built\nhint: run cargo build --release -p samovar-load")


def shop(lab, asked):
    """Responses of the shop: percentiles in ms, and the number of requests without a good response."""
    command = [load(), f"http://{lab.address}/", "--connections", CONNECTIONS, "--rate", asked.rate, "--seconds",
               asked.seconds]
    out = subprocess.run([str(part) for part in command], capture_output=True, check=True, text=True).stdout
    told = json.loads(out)
    wrong = sum(told["errors"].values()) + told["hung"] + told["unsent"]
    return {name: told["latency_us"][name] / 1000 for name in ("p50", "p99", "p999")} | {"wrong": wrong}


@contextlib.contextmanager
def burners(lab):
    command = [sys.executable, "-c", "while True: pass"]
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            burner = subprocess.Popen(command, preexec_fn=lambda: step_back(lab))
            stack.callback(burner.wait)
            stack.callback(burner.kill)
        yield


def pair(lab, kind, asked, calm_first):
    """The shop next to a calm neighbour, and next to a bad one."""
    act, threads, what, growing = KINDS[kind]
    found = {}
    for way in ("calm", "bad") if calm_first else ("bad", "calm"):
        with contextlib.ExitStack() as stack:
            if way == "bad":
                stack.callback(lab.mend)
                if kind == "burn":
                    stack.enter_context(burners(lab))
                if kind == "stuck":
                    held = stack.enter_context(open(lab.bad / "lock", "w", encoding="utf-8"))
                    lock(held)
                before = lab.counters()
                with Mischief(lab, act, threads):
                    found[way] = shop(lab, asked)
                after = lab.counters()
                if growing and not any(after[name] > before[name] for name in growing):
                    sys.exit(f"{kind} ({what}) had no effect: none of {', '.join(growing)} increased")
            else:
                found[way] = shop(lab, asked)
    return found


def lock(file):
    fcntl.flock(file, fcntl.LOCK_EX)


def row(kind, pairs):
    cells = []
    for name in ("p50", "p99", "p999"):
        ratios = sorted(found["bad"][name] / found["calm"][name] for found in pairs)
        bad = statistics.median(found["bad"][name] for found in pairs)
        cells.append(f"{bad:.1f} ms: {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})")
    wrong = sum(found["bad"]["wrong"] for found in pairs)
    calm = sum(found["calm"]["wrong"] for found in pairs)
    return f"| {kind}: {KINDS[kind][2]} | " + " | ".join(cells) + f" | {wrong} ({calm}) |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kinds", default=",".join(KINDS), metavar="A,B", help="%(default)s")
    add("--rounds", type=int, default=5, help="pairs of each kind: %(default)s")
    add("--seconds", type=float, default=4, help="length of each measurement: %(default)s")
    add("--rate", type=int, default=200, help="requests per second of the shop: %(default)s")
    add("--nice", type=int, default=19, help="`limits.nice` of the bad pool: %(default)s")
    add("--idle", action="store_true", help='the bad pool has `limits.scheduling = "idle"`')
    add("--fpm", action="store_true", help="nginx and php-fpm instead of Samovar")
    asked = parser.parse_args()
    if asked.fpm and asked.idle:
        parser.error("php-fpm's pools cannot be idle")
    kinds = asked.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; valid kinds: {', '.join(KINDS)}")
    if asked.fpm:
        kinds = [kind for kind in kinds if kind not in FpmLab.WITHOUT]
    print("| neighbour | p50 of the shop (ratio to a calm neighbour) | p99 | p99.9 | failed requests (calm) |")
    print("|---|---:|---:|---:|---:|")
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="samovar-neighbours-") as folder, contextlib.ExitStack() as stack:
            lab = (FpmLab if asked.fpm else Lab)(pathlib.Path(folder), asked, stack)
            shop(lab, argparse.Namespace(rate=asked.rate, seconds=1))
            pairs = [pair(lab, kind, asked, number % 2 == 0) for number in range(asked.rounds)]
            print(row(kind, pairs), flush=True)


if __name__ == "__main__":
    main()
