#!/usr/bin/python3
"""Instructions per request in the front, counted: the same on a busy machine as on a quiet one.

  bench/scenarios/instructions.py [--examples target/release/examples] [--functions 30] [--output DIR]

Runs the front and the ring without PHP (crates/front/examples/ring_hello.rs), and a bare hyper
(bare_hello), under valgrind's callgrind. The client requests a response of 13 bytes over keep-alive
connections. Counts the instructions of the process, of its three or four threads together, without
those of the kernel. Workers are threads here and take some hundred instructions. The count does not
show the cost of caches and wake-ups: bench/scenarios/binaries.py measures CPU time.

The table lists functions together with the code that was inlined into them. A function's count does
not include the functions that it calls.
"""

import argparse
import collections
import http.client
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(WORKSPACE / "bench"))

from suite import report  # noqa: E402: the suite is next to this folder
from suite.launch import free_port  # noqa: E402

EXAMPLES = {"bare_hello": "hyper alone", "ring_hello": "front and ring"}
START_SECONDS_MAX = 60
LINE = re.compile(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+\S.*?:(\S.*?)(?: \[[^\]]*\])?$")


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--connections", type=int, default=64, metavar="N", help="keep-alive connections: %(default)s")
    add("--seconds", type=float, default=5, metavar="N", help="duration of the count: %(default)s")
    add("--functions", type=int, default=25, metavar="N", help="functions to show: %(default)s")
    add("--examples", type=pathlib.Path, metavar="DIR", help="folder of the two programs, if already built")
    add("--output", type=pathlib.Path, metavar="DIR", help="folder for the table, as instructions.md")
    asked = made.parse_args()
    missing = [tool for tool in ("valgrind", "callgrind_control", "callgrind_annotate") if not shutil.which(tool)]
    if missing:
        sys.exit(f"instructions: {', '.join(missing)} is missing\nhint: run apt-get install valgrind")
    examples = asked.examples or build()
    counted = {name: count(examples / name, asked) for name in EXAMPLES}
    text = table(counted, asked.functions)
    print(text)
    if asked.output:
        asked.output.mkdir(parents=True, exist_ok=True)
        (asked.output / "instructions.md").write_text(text + "\n")


def build():
    command = ["cargo", "build", "--release", "--locked", "-p", "samovar-front", "-p", "samovar-load"]
    subprocess.run([*command, "--bins", *(word for name in EXAMPLES for word in ("--example", name))], cwd=WORKSPACE,
                   check=True)
    return WORKSPACE / "target/release/examples"


def count(program, asked):
    """Instructions per request, by function."""
    with tempfile.TemporaryDirectory(prefix="samovar-instructions-") as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        port = free_port()
        server = subprocess.Popen(["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}",
                                   program, f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(server, port)
            load(port, asked.connections, 1)
            control(server, "on")
            requests = load(port, asked.connections, asked.seconds)
            control(server, "off")
        finally:
            server.terminate()
            server.wait()
        return by_function(out, requests)


def wait_for(server, port):
    for _ in range(START_SECONDS_MAX * 10):
        if server.poll() is not None:
            sys.exit("instructions: the server exited at its start\nhint: run it manually under valgrind")
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS_MAX).request("GET", "/")
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"instructions: no listener after {START_SECONDS_MAX} s")


def load(port, connections, seconds):
    command = [WORKSPACE / "target/release/samovar-load", "--connections", str(connections), "--seconds", str(seconds),
               f"http://127.0.0.1:{port}/"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if not said["requests"]:
        sys.exit(f"instructions: no response: {said['errors']}")
    return said["requests"]


def control(server, state):
    subprocess.run(["callgrind_control", "-i", state, str(server.pid)], check=True, capture_output=True)


def by_function(out, requests):
    said = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", out], check=True, capture_output=True,
                          text=True).stdout
    return {name: total / requests for name, total in functions(said).items()}


def functions(annotated):
    """Own instructions by function; callgrind separates the parts of each file that were inlined into it."""
    totals = collections.Counter()
    for line in annotated.splitlines():
        if found := LINE.match(line):
            totals[found[2]] += int(found[1].replace(",", ""))
    return totals


def table(counted, shown):
    totals = [[EXAMPLES[name], f"{sum(of.values()):,.0f}"] for name, of in counted.items()]
    most = sorted(counted["ring_hello"].items(), key=lambda item: -item[1])[:shown]
    bare = counted["bare_hello"]
    rows = [[f"`{name}`", f"{own:,.0f}", f"{bare.get(name, 0):,.0f}"] for name, own in most]
    return "\n\n".join(["# Instructions per request", report.table(["server", "instructions per request"], totals),
                        report.table(["function", "front and ring", "hyper alone"], rows)])


if __name__ == "__main__":
    main()
