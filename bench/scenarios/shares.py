#!/usr/bin/python3
"""Accuracy of the sampler's CPU shares: a program of known shares, next to others that compete for processors.

  bench/scenarios/shares.py [--busy 0,6,12] [--milliseconds 3,10,40] [--seconds 20] [--hertz 49] [--binary FILE]…

A page calls three functions that run the same loop. By their number of iterations they take 60, 30
and 10 % of its CPU time. Two workers serve two clients, and `--busy` programs compute at the same
time. The table has the share that `samovar profile` assigns to each function, in per cent of the
page's CPU time, and the largest error. With n charged samples, chance alone more often than not
causes an error of up to 50/√n points. Several binaries are measured in turn.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARES = {"six": 60, "three": 30, "one": 10}
COLUMNS = ["binary", "busy", "page", "six: 60 %", "three: 30 %", "one: 10 %", "off by, points", "CPU seconds", "looks",
           "sampler's CPU"]
PAGE = """<?php
function six($n) { for ($i = 0; $i < 6 * $n; $i++) { $x = $i * 3; } }
function three($n) { for ($i = 0; $i < 3 * $n; $i++) { $x = $i * 3; } }
function one($n) { for ($i = 0; $i < $n; $i++) { $x = $i * 3; } }
function page($n) { six($n); three($n); one($n); }
function used() { $u = getrusage(); return $u['ru_utime.tv_sec'] * 1000000 + $u['ru_utime.tv_usec']; }
$before = used();
page((int) $_GET['n']);
echo used() - $before;
"""
BUSY = "while True: pass"
CLIENTS = 2
TRIAL_TURNS = 500_000  # Of all ten parts.
TRIAL_MICROSECONDS = 200_000
TRIALS_MAX = 100
START_SECONDS_MAX = 60


def numbers(text):
    """The type of an option: whole numbers separated by commas."""
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--busy", type=numbers, default=[0, 6, 12], metavar="N,…",
        help="CPU-bound programs next to the server [default: 0,6,12]")
    add("--milliseconds", type=numbers, default=[3, 10, 40], metavar="N,…",
        help="CPU time of a page [default: 3,10,40]")
    add("--seconds", type=float, default=20, help="length of each measurement: %(default)s")
    add("--rounds", type=int, default=1, help="%(default)s")
    add("--hertz", type=int, default=49, help="samples per second: %(default)s")
    add("--binary", action="append", help="another build of samovar; repeatable")
    asked = parser.parse_args()
    binaries = asked.binary or [str(ROOT / "target/release/samovar")]
    print("| " + " | ".join(COLUMNS) + " |\n|---" + "|---:" * (len(COLUMNS) - 1) + "|")
    for busy in asked.busy:
        for length in asked.milliseconds:
            rounds = {binary: [] for binary in binaries}
            for _ in range(asked.rounds):
                for binary in binaries:
                    rounds[binary].append(measure(binary, busy, length, asked))
            for binary, found in rounds.items():
                show(binary, busy, length, found)


def show(binary, busy, length, found):
    middle = {name: statistics.mean(turn[name] for turn in found) for name in SHARES}
    off = max(abs(middle[name] - SHARES[name]) for name in SHARES)
    worst = max(max(abs(turn[name] - SHARES[name]) for name in SHARES) for turn in found)
    looks, cost, seconds = (sum(turn[key] for turn in found) for key in ("looks", "cost", "seconds"))
    share = f"{100 * cost / sum(turn['all'] for turn in found):.2f} %"
    print(f"| {binary} | {busy} | {length} ms | {middle['six']:.1f} | {middle['three']:.1f} | {middle['one']:.1f} "
          f"| {off:.1f} (worst round {worst:.1f}) | {seconds:.1f} | {looks} | {share} |", flush=True)


def measure(binary, busy, length, asked):
    with tempfile.TemporaryDirectory(prefix="samovar-shares-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        (folder / "index.php").write_text(PAGE, encoding="utf-8")
        address = start(stack, binary, folder, asked.hertz)
        turns = turns_of(address, length)
        for _ in range(busy):
            stack.callback(end, subprocess.Popen([sys.executable, "-c", BUSY]))
        over = threading.Event()
        clients = [threading.Thread(target=ask_on, args=(address, turns, over)) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        time.sleep(asked.seconds)
        over.set()
        for client in clients:
            client.join()
        return weigh(binary, folder)


def turns_of(address, length):
    """Number of loop iterations that take `length` milliseconds of a processor."""
    used = trials = 0
    while used < TRIAL_MICROSECONDS and trials < TRIALS_MAX:
        used += fetch(address, TRIAL_TURNS)
        trials += 1
    return max(1, int(trials * TRIAL_TURNS * length * 1000 / max(1, used)))


def start(stack, binary, folder, hertz):
    """The server and its address; it ends with the stack."""
    listener = ["--listen", "127.0.0.1:0", "--workers", "2", "--profile-hertz", str(hertz)]
    flags = ["--control", str(folder / "control.sock"), "--allow-root"] if os.getuid() == 0 else []
    log = open(folder / "log", "w", encoding="utf-8")
    server = subprocess.Popen([binary, "serve", str(folder), *listener, *flags], stderr=log, stdout=log)
    stack.callback(end, server)
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and server.poll() is None:
        status = control(binary, folder, "status")
        if status and status["listen"]:
            return status["listen"][0].split("//")[-1]
        time.sleep(0.05)
    sys.exit(f"{binary} does not start:\n{(folder / 'log').read_text()}")


def end(process):
    process.terminate()
    process.wait()


def control(binary, folder, command, *flags):
    out = subprocess.run([binary, command, "--control", str(folder / "control.sock"), "--json", *flags],
                         capture_output=True, check=False)
    return json.loads(out.stdout) if out.stdout else None


def fetch(address, turns, connection=None):
    """CPU time of a page of ten parts, in µs."""
    connection = connection or http.client.HTTPConnection(address, timeout=600)
    connection.request("GET", f"/?n={max(1, turns // 10)}")
    return int(connection.getresponse().read())


def ask_on(address, turns, over):
    with contextlib.closing(http.client.HTTPConnection(address, timeout=600)) as connection:
        while not over.is_set():
            fetch(address, turns, connection)


def weigh(binary, folder):
    """Each function's share of the page's CPU time, and the cost of the samples."""
    profile = control(binary, folder, "profile", "--last", "10m")
    status = control(binary, folder, "status")
    functions = {one["function"]: one for one in profile["functions"]}
    page = functions["page"]["total"]["cpu_ns"]
    found = {name: 100 * functions.get(name, {"total": {"cpu_ns": 0}})["total"]["cpu_ns"] / page for name in SHARES}
    everybody = status["cpu_seconds"] + sum(worker["cpu_seconds"] for worker in status["workers"])
    return {**found, "looks": int(functions["page"]["total"]["samples"]),
            "seconds": page / 1e9, "cost": status["profile"]["cpu_seconds"], "all": everybody}


if __name__ == "__main__":
    main()
