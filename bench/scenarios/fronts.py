#!/usr/bin/python3
"""What a request moves between the caches of fronts and workers, counted; what that comes to on 64 cores, simulated.

  bench/scenarios/fronts.py [--requests 1000] [--fronts 1,2,4] [--workers 2,8,16] [--output DIR]

The protocol runs with atomics that count (crates/ring/examples/fronts.rs): a line moves when somebody looks at what
another has written since, or writes what others have. Threads give way to each other every few accesses, so that two
cores count what many would. Lines that only a front and the worker of its request share (slots) cost the same on any
machine. What could stop the growth is what all share: the lock and the tail, the head, the sets of sleepers, the
pace.

The simulation has one such line after the other as a station with one place, which a request holds for as long as its
moves take: MOVE_NS each, and LOCKED_NS for each locked instruction. A front and a worker are busy for their own time
besides, which is drawn around recorded ones (--front-us, and each of --worker-us). There are as many front threads as
`front_threads = auto` has, and the workers have the cores that these leave. Linear is: as many requests as workers
alone could finish.
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
MOVE_NS, LOCKED_NS = 100, 20  # Between sockets of a server it is up to 200; within one 40 to 100.
SHARED = ("the fronts' lock", "the queue's tail", "the queue's head", "the queue's entries", "who sleeps", "pace",
          "turns", "bells of the fronts")
# The tail moves while the lock is held: to whoever waits for the lock they are one station.
ONE_STATION = {"the queue's tail": "the fronts' lock", "the queue's entries": "the fronts' lock"}
SHARE_MIN = 0.9
SIMULATED = 20_000
CORES_PER_FRONT = 8


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--requests", type=int, default=1000, metavar="N", help="of each front: %(default)s")
    add("--fronts", type=numbers, default=(1, 2, 4), metavar="N,…", help="threads of the front")
    add("--workers", type=numbers, default=(2, 8, 16), metavar="N,…", help="workers")
    add("--front-us", type=float, default=8.0, metavar="US", help="of a front for a request: %(default)s")
    add("--worker-us", type=times, default=(100.0, 250.0, 2000.0), metavar="US,…",
        help="of a worker, one table row each")
    add("--output", type=pathlib.Path, metavar="DIR", help="write the figures there, as fronts.json")
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
                 of(places, ("who sleeps", "turns"), 2)]
        out.append(f"| {fronts} | {workers} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(out) + "\n"


def stations(places):
    """How long, µs, a request holds each of what all share."""
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
    """Requests a second of so many cores, and its share of what the workers could do if nothing was shared."""
    fronts = max(1, cores // CORES_PER_FRONT)
    held = stations(places)
    # Cores are the fronts' for as much as they have to do, up to a core each, and the workers' else.
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
