#!/usr/bin/python3
"""Cache lines that a request moves between fronts and workers, counted; the effect on 64 cores, simulated.

  bench/scenarios/fronts.py [--requests 1000] [--fronts 1,2,4] [--workers 2,8,16] [--output DIR]

Runs the protocol with counting atomics (crates/ring/examples/fronts.rs). A line moves when a thread
reads a line that another thread has written since, or writes a line that others have. Threads yield
to each other every few accesses, so that two cores count the moves of many. Lines that only a front
and the worker of its request share (slots) cost the same on any machine. Only lines that all threads
share could limit the growth: the lock and the tail, the head, the sets of sleepers, the pace.

The simulation models each such line as a station with one place. A request holds the place for the
duration of its moves: MOVE_NS each, and LOCKED_NS for each locked instruction. In addition, a front
and a worker are busy for their own time, drawn around recorded values (--front-us, and each of
--worker-us). The number of front threads is that of `front_threads = auto`; the workers have the
remaining cores. "linear" is the number of requests that the workers alone could finish.
"""

import argparse
import heapq
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
MOVE_NS, LOCKED_NS = 100, 20  # Up to 200 between sockets of a server; 40 to 100 within one.
SHARED = ("the fronts' lock", "the queue's tail", "the queue's head", "the queue's entries", "sleeping workers", "pace",
          "turns", "notifiers of the fronts")
# The tail moves while the lock is held: for a front that waits for the lock they are one station.
ONE_STATION = {"the queue's tail": "the fronts' lock", "the queue's entries": "the fronts' lock"}
SHARE_MIN = 0.9
SIMULATED = 20_000
CORES_PER_FRONT = 8


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--requests", type=int, default=1000, metavar="N", help="requests of each front: %(default)s")
    add("--fronts", type=numbers, default=(1, 2, 4), metavar="N,…", help="threads of the front")
    add("--workers", type=numbers, default=(2, 8, 16), metavar="N,…", help="workers")
    add("--front-us", type=float, default=8.0, metavar="US", help="time of a front per request: %(default)s")
    add("--worker-us", type=times, default=(100.0, 250.0, 2000.0), metavar="US,…",
        help="times of a worker, one table row each")
    add("--output", type=pathlib.Path, metavar="DIR", help="folder for the figures, as fronts.json")
    asked = made.parse_args()
    program = build()
    counted = {}
    for fronts, workers in itertools.product(asked.fronts, asked.workers):
        counted[fronts, workers] = count(program, fronts, workers, asked.requests)
    print(moved_table(counted))
    worst = counted[max(asked.fronts), max(asked.workers)]
    rows = [(cores, us, *simulate(worst, cores, asked.front_us, us)) for us in asked.worker_us
            for cores in (2, 8, 16, 32, 64)]
    print(simulated_table(rows))
    if asked.output:
        record(asked.output, counted, rows)
    low = [row for row in rows if row[3] < SHARE_MIN]
    for cores, us, _, share in low:
        print(f"{cores} cores, {us} µs: {share:.2f} of linear, less than {SHARE_MIN}", file=sys.stderr)
    sys.exit(1 if low else 0)


def numbers(text):
    return tuple(int(number) for number in text.split(","))


def times(text):
    return tuple(float(number) for number in text.split(","))


def build():
    target = WORKSPACE / "target/counted"
    environment = {**os.environ, "RUSTFLAGS": "--cfg counted", "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--locked", "-p", "samovar-ring", "--example", "fronts"], cwd=WORKSPACE,
                   env=environment, check=True)
    return target / "debug/examples/fronts"


def count(program, fronts, workers, requests):
    """By place: plain, locked and moved per request, of the front and of the worker."""
    said = subprocess.run([program, str(fronts), str(workers), str(requests), "0"], check=True, capture_output=True,
                          text=True).stdout
    rows = (json.loads(line) for line in said.splitlines())
    return {row["place"]: (row["front"], row["worker"]) for row in rows}


def of(places, names, column):
    return sum(front[column] + worker[column] for name, (front, worker) in places.items() if name in names)


def moved_table(counted):
    out = ["| fronts | workers | locked, a request | lines moved, a request | of these within its slot "
           "| lock and tail | head | sleepers |",
           "|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for (fronts, workers), places in counted.items():
        cells = [of(places, places, 1), of(places, places, 2), of(places, ("slots",), 2),
                 of(places, ("the fronts' lock", "the queue's tail"), 2), of(places, ("the queue's head",), 2),
                 of(places, ("sleeping workers", "turns"), 2)]
        out.append(f"| {fronts} | {workers} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(out) + "\n"


def stations(places):
    """Time, µs, for which a request holds each of the shared places."""
    held = {}
    for name in SHARED:
        if name not in places:
            continue
        front, worker = places[name]
        ns = (front[2] + worker[2]) * MOVE_NS + (front[1] + worker[1]) * LOCKED_NS
        station = ONE_STATION.get(name, name)
        held[station] = held.get(station, 0) + ns / 1000
    return held


def simulate(places, cores, front_us, worker_us):
    """Requests per second with this number of cores, and their share of the workers' capacity if nothing was shared."""
    fronts = max(1, cores // CORES_PER_FRONT)
    held = stations(places)
    # The fronts get the cores that they need, up to one core each; the workers get the rest.
    of_fronts = min(fronts, cores * front_us / (front_us + worker_us))
    workers = max(1, round(cores - of_fronts))
    drawn = random.Random(cores)
    free_at = {"front": [0.0] * fronts, "worker": [0.0] * workers, **{name: [0.0] for name in held}}
    in_flight = [0.0] * (4 * workers)
    heapq.heapify(in_flight)
    end = 0.0
    for _ in range(SIMULATED):
        now = heapq.heappop(in_flight)
        for name, us in (("front", drawn.expovariate(1 / front_us)), *held.items(),
                         ("worker", drawn.expovariate(1 / worker_us))):
            begin = max(now, heapq.heappop(free_at[name]))
            now = begin + us
            heapq.heappush(free_at[name], now)
        heapq.heappush(in_flight, now)
        end = max(end, now)
    rate = SIMULATED / end * 1e6
    return rate, rate / (workers / worker_us * 1e6)


def simulated_table(rows):
    out = ["| cores | worker µs | requests/s | × linear |", "|---:|---:|---:|---:|"]
    out += [f"| {cores} | {us:g} | {rate:,.0f} | {share:.2f} |" for cores, us, rate, share in rows]
    return "\n".join(out) + "\n"


def record(folder, counted, rows):
    folder.mkdir(parents=True, exist_ok=True)
    cells = [{"fronts": fronts, "workers": workers, "places": places} for (fronts, workers), places in counted.items()]
    (folder / "fronts.json").write_text(json.dumps({"counted": cells, "simulated": rows}, indent=1))


if __name__ == "__main__":
    main()
