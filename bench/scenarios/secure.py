#!/usr/bin/python3
"""Cost of TLS and HTTP/2 compared with bare hyper and rustls.

  bench/scenarios/secure.py                          both, 7 interleaved rounds of each server, a
                                                     minute each
  bench/scenarios/secure.py --parts handshakes       full handshakes, 16 at a time
  bench/scenarios/secure.py --parts requests         hello over HTTP/2 and TLS, 64 streams on one
                                                     connection

Builds the examples bare_hello and secure_client. Ratios are those of the rounds. CPU is that of all
processes of a server.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import accounting, scenario, servers  # noqa: E402: the suite is next to this folder
from suite.launch import Launch, Running, free_port  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = servers.TARGET / "examples"
# Number of concurrent operations, and the maximum ratio of our cost to theirs.
PARTS = {"handshakes": (16, 1.10), "requests": (64, 1.30)}
WARM_SECONDS = 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=scenario.some_of(PARTS), default=",".join(PARTS), metavar="A,B")
    parser.add_argument("--rounds", type=scenario.positive, default=7, metavar="N", help="%(default)s")
    parser.add_argument("--seconds", type=float, default=4, metavar="N",
                        help="length of a round of each server: %(default)s")
    parser.add_argument("--examples", type=pathlib.Path, metavar="DIR",
                        help="folder of bare_hello and secure_client, if already built with SAMOVAR_BIN")
    asked = parser.parse_args()
    for example in () if asked.examples else ("bare_hello", "secure_client"):
        subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "-p", "samovar-front", "--example",
                        example], cwd=ROOT, check=True)
    for part in asked.parts.split(","):
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="samovar-secure-", dir="/tmp"))
            place = pathlib.Path(place)
            compare(part, asked, *over_tls(place, part, stack, (asked.examples or EXAMPLES).resolve()))


def compare(part, asked, ours, theirs):
    """Rounds in turn; each server is (name, load, roots)."""
    rounds = []
    for server in (ours, theirs):
        server[1](WARM_SECONDS)
    for number in range(asked.rounds):
        pair = {}
        for server in (ours, theirs) if number % 2 else (theirs, ours):
            pair[server[0]] = measure(server, asked.seconds)
        rounds.append(pair)
    beside, bound = PARTS[part]
    print(f"{part}, {beside} at the same time, {asked.rounds} rounds of {asked.seconds:g} s\n")
    print("| | CPU µs each (min–max) | a second |\n|---|---:|---:|")
    for name in (ours[0], theirs[0]):
        cpu, rate = zip(*(pair[name] for pair in rounds))
        print(f"| {name} | {statistics.median(cpu):.1f} ({min(cpu):.1f}–{max(cpu):.1f}) | "
              f"{statistics.median(rate):,.0f} |")
    for title, at in (("CPU", 0), ("a second", 1)):
        ratios = sorted(pair[ours[0]][at] / pair[theirs[0]][at] for pair in rounds)
        print(f"\n{title}, ours by theirs: {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
              + (f"; the target is {bound:.2f}" if at == 0 else ""))
    print(flush=True)


def measure(server, seconds):
    """CPU per operation, in µs, and operations per second."""
    _, load, roots = server
    before = accounting.cpu_us(roots)
    count, took = load(seconds)
    return (accounting.cpu_us(roots) - before) / count, count / took


# ---- over TLS -------------------------------------------------------------------------------------


def over_tls(place, part, stack, examples):
    chain, key, authority = certificates(place)
    site = servers.Site("hello", scenario.APPS / "hello/native.php", place / "samovar", free_port(), 2, 64, {})
    made, secure = servers.samovar_launch(site), free_port()
    more = ("--listen", f"https://127.0.0.1:{secure}", "--tls-certificates", chain)
    ours = Launch((made.commands[0] + more,), made.port, made.var, made.environment, made.files)
    bare = free_port()
    command = (examples / "bare_hello", f"127.0.0.1:{bare}", chain, key)
    theirs = Launch((command,), bare, place / "bare", servers.outer_environment())

    def server(name, launch, port):
        running = stack.enter_context(Running(launch))
        return name, lambda seconds: client(examples, part, port, authority, seconds), running.roots()
    return server("Samovar", ours, secure), server("bare hyper and rustls", theirs, bare)


def certificates(place):
    """Certificates of an authority, and of the server signed by it: both P-256."""
    def make(name, *more):
        pem, key = place / f"{name}.pem", place / f"{name}.key"
        command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                   "-subj", f"/CN={name}", "-out", pem, "-keyout", key, *more]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return pem, key
    authority, signer = make("authority")
    chain, key = make("own", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE",
                      "-CA", authority, "-CAkey", signer)
    return chain, key, authority


def client(examples, part, port, authority, seconds):
    command = [examples / "secure_client", part, f"127.0.0.1:{port}", authority, str(PARTS[part][0]), str(seconds)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told["count"], told["seconds"]


if __name__ == "__main__":
    main()
