#!/usr/bin/python3
"""Latency of a client with one request at a time, next to a client that keeps the queue full.

  bench/scenarios/fairness.py [--share 25] [--workers 4] [--milliseconds 10] [--greedy 100] [--seconds 10]
                              [--rounds 3] [--binary FILE]…

Each request waits for `--milliseconds` in its worker. The greedy client has `--greedy` connections
and sends the next request on each as soon as it has a response, also after a 503. The other client
has one connection. Both are named by X-Forwarded-For. The table has the other client's latencies
without and with the greedy client, and the responses of the greedy client per second. Several
binaries are measured in turn.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = ["binary", "alone p50, ms", "p50, ms", "p99, ms", "greedy 200/s", "greedy 503/s"]
PAGE = "<?php usleep((int) $_GET['us']); echo 'ok';"
START_SECONDS_MAX = 60
PAUSE_AFTER_503 = 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--share", type=int, default=25, help="limits.client_share: %(default)s")
    add("--workers", type=int, default=4, help="%(default)s")
    add("--milliseconds", type=float, default=10, help="time of a request: %(default)s")
    add("--greedy", type=int, default=100, help="connections of the greedy client: %(default)s")
    add("--seconds", type=float, default=10, help="length of each measurement: %(default)s")
    add("--rounds", type=int, default=3, help="%(default)s")
    add("--binary", action="append", help="another build of samovar; repeatable")
    asked = parser.parse_args()
    binaries = asked.binary or [str(ROOT / "target/release/samovar")]
    print("| " + " | ".join(COLUMNS) + " |\n|---" + "|---:" * (len(COLUMNS) - 1) + "|")
    for _ in range(asked.rounds):
        for binary in binaries:
            show(binary, measure(binary, asked))


def show(binary, found):
    print(f"| {binary} | " + " | ".join(f"{value:.1f}" for value in found) + " |", flush=True)


def measure(binary, asked):
    with tempfile.TemporaryDirectory(prefix="samovar-fairness-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        (folder / "index.php").write_text(PAGE, encoding="utf-8")
        port = start(stack, binary, folder, asked)
        return asyncio.run(measure_at(port, asked))


def start(stack, binary, folder, asked):
    """The port of a server that ends with the stack."""
    flags = ["--listen", "127.0.0.1:0", "--workers", str(asked.workers), "--trusted-proxies", "127.0.0.1"]
    flags += ["--client-share", str(asked.share), "--control", str(folder / "control.sock")]
    flags += ["--allow-root"] if os.getuid() == 0 else []
    log = open(folder / "log", "w", encoding="utf-8")
    server = subprocess.Popen([binary, "serve", str(folder), *flags], stderr=log, stdout=log)
    stack.callback(end, server)
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and server.poll() is None:
        status = control(binary, folder)
        if status and status["listen"]:
            return int(status["listen"][0].rsplit(":", 1)[-1])
        time.sleep(0.05)
    sys.exit(f"{binary} does not start:\n{(folder / 'log').read_text()}")


def end(process):
    process.terminate()
    process.wait()


def control(binary, folder):
    out = subprocess.run([binary, "status", "--control", str(folder / "control.sock"), "--json"],
                         capture_output=True, check=False)
    return json.loads(out.stdout) if out.stdout else None


async def measure_at(port, asked):
    alone = await latencies(port, asked, asked.seconds / 2)
    counts = {200: 0, 503: 0}
    over = asyncio.Event()
    flood = [asyncio.create_task(greedy(port, asked, counts, over)) for _ in range(asked.greedy)]
    await asyncio.sleep(1)
    before, since = dict(counts), time.monotonic()
    found = await latencies(port, asked, asked.seconds)
    span = time.monotonic() - since
    rates = [(counts[status] - before[status]) / span for status in (200, 503)]
    over.set()
    await asyncio.gather(*flood)
    return [statistics.median(alone), statistics.median(found), percentile(found, 99), *rates]


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


async def latencies(port, asked, seconds):
    """Latencies of one client in ms, one request after another."""
    found = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        since = time.monotonic()
        status = await fetch(reader, writer, asked, "203.0.113.1")
        if status != 200:
            sys.exit(f"the other client got {status}")
        found.append((time.monotonic() - since) * 1000)
    writer.close()
    return found


async def greedy(port, asked, counts, over):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not over.is_set():
        status = await fetch(reader, writer, asked, "203.0.113.2")
        counts[status] += 1
        if status == 503:
            await asyncio.sleep(PAUSE_AFTER_503)
    writer.close()


async def fetch(reader, writer, asked, client):
    target = f"/?us={int(asked.milliseconds * 1000)}"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: {client}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:"))
    await reader.readexactly(length)
    return int(head.split(" ")[1])


if __name__ == "__main__":
    main()
