#!/usr/bin/env python3
"""What a rollback costs: one Symfony page by php-fpm, and by Samovar's three execution models, in the same run.

  bench/rollback.py [--rounds 5] [--seconds 3] [--connections 16] [--json FILE]
  bench/rollback.py --soak [REQUESTS]     a million by default: does anything grow?

Servers are measured in turn (A B C D, A B C D …) with wrk on the same machine; the median of the rounds
is printed with its spread. CPU is utime + stime of all processes of a server (php-fpm with its nginx), so
that the client beside it does not count. Then what a booted worker weighs, and how soon a killed one is
replaced. Needs target/release/samovar (`make build`, or SAMOVAR_BIN), nginx, php-fpm8.2 and wrk.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from path import READY_SECONDS_MAX, ROOT, Server, milliseconds

SYMFONY = ROOT / "examples/symfony/public"
PRISTINE = ROOT / "tests/apps/pristine/index.php"
# What the soak asks for in turn: pages, and what soils most. All answer 200.
SOAK_TARGETS = ["/", "/report", "/soil/list", "/input?a=1", "/soil/globals", "/late/Ann", "/soil/database",
                "/soil/statics", "/soil/open%20files", "/soil/locale", "/sqlite", "/soil/document", "/soil/memory",
                "/soil/include", "/soil/a%20temporary%20file", "/soil/sqlite%20file", "/end/exit", "/end/fiber",
                "/end/generator-left", "/end/destructor", "/soil/fiber,%20ended"]
SOAK_STEP = 50_000
SOAK_ROUND_SECONDS = 5
# Growth of the second half of a soak that is no noise, as a part of what there was.
GROWTH_MAX = 0.05
KILLS = 20
# Visitors that come back: a session's file is locked while a request has it, so more than there are workers.
VISITORS = 64
IDLE_SECONDS_MAX = 10
FPM = """[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
listen = {folder}/fpm.sock
pm = static
pm.max_children = {workers}
env[APP_CACHE_DIR] = {folder}/cache
env[APP_LOG_DIR] = {folder}/log
php_value[session.save_path] = {folder}/sessions
"""
NGINX = """daemon off; master_process off; pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/nginx; proxy_temp_path {folder}/nginx; fastcgi_temp_path {folder}/nginx;
    uwsgi_temp_path {folder}/nginx; scgi_temp_path {folder}/nginx;
    fastcgi_buffers 16 64k; fastcgi_buffer_size 64k;
    server {{
        listen 127.0.0.1:{port};
        root {root};
        location / {{ try_files $uri /index.php$is_args$args; }}
        location ~ \\.php$ {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_pass unix:{folder}/fpm.sock;
        }}
    }}
}}
"""


class Samovar(Server):
    """A Samovar with files of its own."""

    def __init__(self, name, target, folder, workers):
        self.control = folder / f"{name}.sock"
        own = folder / name
        (own / "sessions").mkdir(parents=True)
        binary = os.environ.get("SAMOVAR_BIN", ROOT / "target/release/samovar")
        # The environment is the application's: the log's and the cache's place.
        os.environ.update(APP_CACHE_DIR=str(own / "cache"), APP_LOG_DIR=str(own / "log"))
        super().__init__(name, [
            binary, "serve", target, "--listen", "127.0.0.1:0", "--workers", str(workers), "--control", self.control,
            "--define", f"session.save_path={own / 'sessions'}"], folder / f"{name}.log")

    def status(self):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.connect(str(self.control))
            connection.sendall(b"status\n")
            with connection.makefile() as answer:
                return json.loads(answer.readline())

    def workers(self):
        return [worker["pid"] for worker in self.status()["workers"]]


class PhpFpm(Server):
    """nginx and php-fpm: two trees that are measured as one."""

    def __init__(self, root, folder, workers):
        own = folder / "php-fpm"
        for below in ["sessions", "nginx", "cache", "log"]:
            (own / below).mkdir(parents=True)
            (own / below).chmod(0o777)
        own.chmod(0o777)
        folder.chmod(0o755)
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        self.port = port
        (own / "fpm.conf").write_text(FPM.format(folder=own, workers=workers))
        (own / "nginx.conf").write_text(NGINX.format(folder=own, root=root, port=port))
        self.fpm = subprocess.Popen(["php-fpm8.2", "-R", "-F", "-O", "-y", own / "fpm.conf"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        super().__init__("php-fpm", ["nginx", "-p", own, "-c", own / "nginx.conf", "-e", "stderr"],
                         own / "nginx.log")

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), contextlib.closing(socket.socket(socket.AF_UNIX)) as fpm:
                fpm.connect(str(pathlib.Path(self.log.name).parent / "fpm.sock"))
                socket.create_connection(("127.0.0.1", self.port)).close()
                return f"127.0.0.1:{self.port}"
            time.sleep(0.05)
        sys.exit(f"php-fpm did not start: {pathlib.Path(self.log.name).read_text()}")

    def tree(self):
        of_nginx, self.process = super().tree(), self.process
        nginx, self.process = self.process, self.fpm
        of_fpm = super().tree()
        self.process = nginx
        return of_nginx + of_fpm

    def stop(self):
        self.fpm.send_signal(signal.SIGTERM)
        self.fpm.wait()
        super().stop()


def rollup(pid):
    """PSS and USS of a process, KiB."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    field = lambda name: int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1))
    return {"pss_kib": field("Pss"), "uss_kib": field("Private_Clean") + field("Private_Dirty")}


def weigh(pid):
    """What a process holds."""
    proc = pathlib.Path(f"/proc/{pid}")
    return {**rollup(pid), "descriptors": len(list((proc / "fd").iterdir())),
            "mappings": len((proc / "maps").read_text().splitlines())}


def load(address, script, connections, seconds):
    """Requests, and p50 and p99 in ms, of wrk with that script."""
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script,
                          f"http://{address}"], capture_output=True, text=True, check=True).stdout
    errors = re.findall(r"(Non-2xx.*|Socket errors.*)", out)
    if errors:
        sys.exit(f"errors under load: {errors}")
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    return requests, milliseconds(out, "50%"), milliseconds(out, "99%")


# ---- (a) what a request costs -------------------------------------------------------------------


def start_all(folder, workers):
    # php-fpm's own copy: its front controller is index.php, as the script model's.
    yield PhpFpm(SYMFONY, folder, workers)
    for name, target in [("script", SYMFONY), ("resident", SYMFONY / "resident.php"),
                         ("checkpoint", SYMFONY / "checkpoint.php")]:
        yield Samovar(name, target, folder, workers)


def visitors_script(server, folder):
    """wrk's, which asks for the page as one visitor after the other. Newcomers would fill a folder with sessions."""
    cookies = []
    for _ in range(VISITORS):
        with urllib.request.urlopen(f"http://{server.address}/") as answer:
            cookies.append(answer.headers["Set-Cookie"].split(";")[0])
    script = folder / f"{server.name}.lua"
    names = ", ".join(f'"{cookie}"' for cookie in cookies)
    script.write_text(f"local cookies, n = {{{names}}}, 0\n"
                      "request = function()\n n = n % #cookies + 1\n"
                      " return wrk.format('GET', '/', {Cookie = cookies[n]})\nend\n")
    return script


def measure(server, script, options):
    before = server.cpu_us()
    requests, p50, p99 = load(server.address, script, options.connections, options.seconds)
    return {"cpu_us": (server.cpu_us() - before) / requests, "rps": requests / options.seconds, "p50": p50, "p99": p99}


def compare(servers, folder, options):
    results = {server.name: [] for server in servers}
    scripts = {server.name: visitors_script(server, folder) for server in servers}
    for server in servers:
        load(server.address, scripts[server.name], options.connections, 2)
    for round_number in range(options.rounds):
        print(f"round {round_number + 1} of {options.rounds}", file=sys.stderr)
        for server in servers:
            results[server.name].append(measure(server, scripts[server.name], options))
    medians = {}
    for name, runs in results.items():
        medians[name] = {key: statistics.median(r[key] for r in runs) for key in runs[0]}
        medians[name]["cpu_us_spread"] = [min(r["cpu_us"] for r in runs), max(r["cpu_us"] for r in runs)]
        medians[name]["p99_over_p50"] = medians[name]["p99"] / medians[name]["p50"]
    return medians


def print_costs(medians, options):
    fpm, resident = medians["php-fpm"]["cpu_us"], medians["resident"]["cpu_us"]
    print(f"\nSymfony's page, {options.connections} connections, {options.workers} workers, median of "
          f"{options.rounds} × {options.seconds} s\n")
    print("| server | CPU µs/request (min–max) | × php-fpm | × resident | requests/s | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|")
    for name, m in medians.items():
        low, high = m["cpu_us_spread"]
        print(f"| {name} | {m['cpu_us']:.1f} ({low:.1f}–{high:.1f}) | {m['cpu_us'] / fpm:.2f} "
              f"| {m['cpu_us'] / resident:.2f} | {m['rps']:.0f} | {m['p50']:.2f} | {m['p99']:.2f} |")


# ---- (b) does anything grow ---------------------------------------------------------------------


def soak_script(folder):
    """wrk's, which asks for one target after the other."""
    script = folder / "soak.lua"
    targets = ", ".join(f'"{target}"' for target in SOAK_TARGETS)
    script.write_text(f"local targets, n = {{{targets}}}, 0\n"
                      "request = function() n = n % #targets + 1 return wrk.format('GET', targets[n]) end\n")
    return script


def at_rest(server):
    """The status when no request is under way: wrk leaves some behind, and in one a worker may be large."""
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while True:
        status = server.status()
        if all(worker["state"] == "idle" for worker in status["workers"]):
            return status
        if time.monotonic() > deadline:
            sys.exit(f"a worker does not come to rest: {status['workers']}")
        time.sleep(0.01)


def reading(server, sent):
    status = at_rest(server)
    image = status.get("image") or {}
    return {"requests": sent, "hot_pages": image.get("hot_pages"), "refork_total": image.get("refork_total"),
            "rollbacks_total": image.get("rollbacks_total"), "rollback_us_p50": image.get("rollback_us_p50"),
            "rollback_us_p99": image.get("rollback_us_p99"),
            "workers": {worker["pid"]: {**weigh(worker["pid"]), "hot_pages": worker.get("hot_pages")}
                        for worker in status["workers"]}}


def print_reading(r):
    for pid, w in r["workers"].items():
        print(f"| {r['requests']} | {pid} | {w['pss_kib']} | {w['uss_kib']} | {w['descriptors']} | {w['mappings']} "
              f"| {w['hot_pages']} | {r['refork_total']} | {r['rollback_us_p50']} | {r['rollback_us_p99']} |", flush=True)


def soak(folder, options):
    server = Samovar("soak", PRISTINE, folder, options.workers)
    script, readings, sent, due = soak_script(folder), [], 0, 0
    try:
        print(f"\n{options.soak} requests, {options.workers} workers, {len(SOAK_TARGETS)} pages in turn\n")
        print("| requests | worker | PSS KiB | USS KiB | descriptors | mappings | hot pages | re-forks "
              "| rollback p50 µs | p99 µs |\n|---|---|---|---|---|---|---|---|---|---|")
        while sent < options.soak:
            sent += load(server.address, script, options.connections, SOAK_ROUND_SECONDS)[0]
            if sent >= due or sent >= options.soak:
                readings.append(reading(server, sent))
                print_reading(readings[-1])
                due = (sent // SOAK_STEP + 1) * SOAK_STEP
    finally:
        server.stop()
    verdict = judge(readings)
    print(f"\nverdict: {verdict}")
    return {"readings": readings, "verdict": verdict}


def judge(readings):
    """Compares the mean of the last quarter with that of the second: the first warms up."""
    quarter = len(readings) // 4
    if quarter == 0:
        return f"too short: it needs {4 * SOAK_STEP} requests or more"
    grown = []
    for key in ["pss_kib", "uss_kib", "descriptors", "mappings", "hot_pages"]:
        before, after = (statistics.mean(w[key] or 0 for r in part for w in r["workers"].values())
                         for part in (readings[quarter:2 * quarter], readings[-quarter:]))
        if after > before * (1 + GROWTH_MAX):
            grown.append(f"{key} from {before:.0f} to {after:.0f}")
    replaced = readings[0]["workers"].keys() != readings[-1]["workers"].keys()
    note = "; workers were replaced, so look at the rows" if replaced else ""
    return f"grows: {', '.join(grown)}{note}" if grown else f"nothing grows{note}"


# ---- (c) a booted worker's weight and birth -----------------------------------------------------


def birth_ms(server):
    """From the death of a worker to the first sight of its successor, idle: once per kill."""
    known, times = set(server.workers()), []
    for _ in range(KILLS):
        victim = server.workers()[0]
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        while True:
            workers = server.status()["workers"]
            born = [w for w in workers if w["pid"] not in known and w["state"] == "idle"]
            if born and all(w["pid"] != victim for w in workers):
                break
            if time.monotonic() - begin > READY_SECONDS_MAX:
                sys.exit("no successor of a killed worker")
            time.sleep(0.0002)
        times.append((time.monotonic() - begin) * 1000)
        known.add(born[0]["pid"])
        # A worker that dies young is replaced with a delay: that is not what is measured.
        time.sleep(1)
    return times


def weigh_workers(server):
    image = at_rest(server).get("image") or {}
    workers = [weigh(pid) for pid in server.workers()]
    uss = [w["uss_kib"] for w in workers]
    return {"uss_kib": uss, "pss_kib": [w["pss_kib"] for w in workers], "image": image, "birth_ms": birth_ms(server)}


def print_weights(name, w):
    image = w["image"]
    print(f"\n{name}: USS of a worker {max(w['uss_kib']) / 1024:.1f} MiB, image {image.get('bytes', 0) / 2**20:.1f} MiB "
          f"({image.get('mode')}), boot {image.get('boot_ms')} ms, hot pages {image.get('hot_pages')}, rollback p50 "
          f"{image.get('rollback_us_p50')} µs, p99 {image.get('rollback_us_p99')} µs")
    births = sorted(w["birth_ms"])
    print(f"{name}: from a worker's death by kill -9 to its successor idle: median {statistics.median(births):.1f} ms "
          f"({births[0]:.1f}–{births[-1]:.1f}, {KILLS} kills)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--soak", type=int, nargs="?", const=1_000_000, default=0, metavar="REQUESTS",
                        help="instead, send so many requests to tests/apps/pristine")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    options = parser.parse_args()
    for tool in ["wrk"] if options.soak else ["wrk", "nginx", "php-fpm8.2"]:
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing\nhint: apt-get install wrk nginx-light php8.2-fpm")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="samovar-rollback-"))
    # Servers are stopped and files removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    try:
        figures = soak(folder, options) if options.soak else costs(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def costs(folder, options):
    servers = []
    try:
        for server in start_all(folder, options.workers):
            servers.append(server)
        medians = compare(servers, folder, options)
        print_costs(medians, options)
        weights = {server.name: weigh_workers(server) for server in servers if server.name == "checkpoint"}
        for name, weight in weights.items():
            print_weights(name, weight)
        return {"costs": medians, "weights": weights}
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
