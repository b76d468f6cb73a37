#!/usr/bin/env python3
"""What the path costs: CPU per request of Samovar's process tree, as a ratio to a bare hyper in the same run.

  bench/path.py [--rounds 5] [--seconds 3] [--connections 64] [--soak REQUESTS]

Servers are measured in turn (A B C, A B C …) with wrk on the same machine; the median of the rounds is printed
with its spread. CPU is utime + stime of all processes of a server, so that the client beside it does
not count. Needs `make build`, the bare server (built here) and wrk.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
READY_SECONDS_MAX = 20
SCRIPTS = {
    "script": '<?php echo "Hello, World!";',
    "resident": '<?php Samovar\\serve(function () { echo "Hello, World!"; });',
    "native": '<?php Samovar\\serve(function (Samovar\\Request $r) { return "Hello, World!"; });',
}


class Server:
    """A server process tree and where it listens."""

    def __init__(self, name, command, log):
        self.name = name
        self.log = open(log, "w+")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log)
        self.address = self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            self.log.flush()
            found = re.search(r"listening on http://(\S+)", pathlib.Path(self.log.name).read_text())
            if found:
                return found.group(1)
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"{self.name} did not start: {pathlib.Path(self.log.name).read_text()}")

    def tree(self):
        pids, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            pids.append(pid)
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                todo += [int(child) for child in task.read_text().split()]
        return pids

    def cpu_us(self):
        total = 0
        for pid in self.tree():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total * TICK_US

    def pss_kib(self):
        total = 0
        for pid in self.tree():
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))
        return total

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def wrk(address, connections, seconds):
    out = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", f"http://{address}/"],
        capture_output=True, text=True, check=True).stdout
    errors = re.findall(r"(Non-2xx.*|Socket errors.*)", out)
    if errors:
        sys.exit(f"errors under load: {errors}")
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    return requests, [milliseconds(out, p) for p in ("50%", "99%")]


def milliseconds(text, percentile):
    value, unit = re.search(rf"{percentile}\s+([\d.]+)(us|ms|s)", text).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def measure(server, options):
    before = server.cpu_us()
    requests, (p50, p99) = wrk(server.address, options.connections, options.seconds)
    return {"cpu_us": (server.cpu_us() - before) / requests,
            "rps": requests / options.seconds, "p50": p50, "p99": p99}


def soak(server, requests):
    """Sends at least that many requests; returns PSS before and after, KiB."""
    wrk(server.address, 64, 2)
    before, sent = server.pss_kib(), 0
    while sent < requests:
        sent += wrk(server.address, 64, 5)[0]
    return before, server.pss_kib(), sent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--soak", type=int, default=0, help="then send this many requests and compare memory")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing\nhint: apt-get install wrk")
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "samovar", "-p", "samovar-php"],
                   cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "samovar-front",
                    "--example", "bare_hello"], cwd=ROOT, check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="samovar-bench-"))
    target = ROOT / "target/release"
    servers = [Server("bare hyper", [target / "examples/bare_hello", "127.0.0.1:0"], folder / "bare.log")]
    for name, text in SCRIPTS.items():
        (folder / name).mkdir()
        (folder / name / "index.php").write_text(text)
        servers.append(Server(name, [
            target / "samovar", "serve", folder / name, "--listen", "127.0.0.1:0",
            "--workers", str(options.workers), "--control", folder / f"{name}.sock"],
            folder / f"{name}.log"))
    results = {server.name: [] for server in servers}
    try:
        for server in servers:
            wrk(server.address, options.connections, 1)
        for round_number in range(options.rounds):
            print(f"round {round_number + 1} of {options.rounds}", file=sys.stderr)
            for server in servers:
                results[server.name].append(measure(server, options))
        report(results, options)
        if options.soak:
            for server in servers[1:]:
                before, after, sent = soak(server, options.soak)
                print(f"{server.name}: {before} KiB PSS before, {after} KiB after {sent} requests")
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder)


def report(results, options):
    bare = statistics.median(r["cpu_us"] for r in results["bare hyper"])
    print(f"\n{options.connections} connections, {options.workers} workers, median of "
          f"{options.rounds} × {options.seconds} s\n")
    print("| server | CPU µs/request (min–max) | × bare hyper | requests/s | p50 ms | p99 ms | p99/p50 |")
    print("|---|---|---|---|---|---|---|")
    for name, runs in results.items():
        median = {key: statistics.median(r[key] for r in runs) for key in runs[0]}
        costs = [r["cpu_us"] for r in runs]
        print(f"| {name} | {median['cpu_us']:.1f} ({min(costs):.1f}–{max(costs):.1f}) "
              f"| {median['cpu_us'] / bare:.2f} | {median['rps']:.0f} | {median['p50']:.2f} "
              f"| {median['p99']:.2f} | {median['p99'] / median['p50']:.1f} |")


if __name__ == "__main__":
    main()
