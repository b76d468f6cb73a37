#!/usr/bin/python3
"""A leaking application, recycled by restart and by rollback: a static array keeps 100 KB of each request.

  bench/scenarios/recycle.py [--every 300] [--output DIR]

no leak            the same work, nothing kept, nothing recycled: the base of all comparisons
memory_limit       no recycling: PHP's memory_limit ends the request that reaches it, and its worker
restart: fork      the worker ends itself after N requests; its successor is a fork of the booted
                   application
restart: boot      the same, but each worker boots on its own, as with an open connection: mostly
                   again in the same process, which is not counted as recycled
rollback           Samovar\\serve($handler, N)
rollback by size   Samovar\\serve($handler, …) and limits.growth_bytes_max for about N requests
php-fpm            classic, pm.max_requests = N: it boots in each request and restarts after N

"lost" counts requests without a good response: errors of any kind and hung requests. A second table
has the time from a worker's kill -9 until its successor is idle.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import statistics  # noqa: E402: the suite is next to this folder

from suite import control, figures, report, scenario  # noqa: E402

WORKLOAD = scenario.SCENARIO_APPS / "recycle"
LEAK_BYTES = 100_000  # As in apps/recycle/leak.php.
GROWTH_BYTES_MIN = 1 << 20  # Minimum that limits.growth_bytes_max accepts.
EVERY = 300
KILLS = 20
NEVER = 1_000_000_000  # Requests between rollbacks, so that only the growth counts.
# Workers that are killed: key, title, folder, entry, environment.
BIRTHS = (
    ("resident", "resident, 300 classes, a fork of the booted application", WORKLOAD, "resident", {}),
    ("own-boot", "resident, 300 classes, own boot", WORKLOAD, "resident", {"BENCH_OWN_BOOT": "1"}),
    ("symfony", "checkpoint, Symfony", scenario.APPS / "symfony", "checkpoint", {}),
)
# Counted as the workers' minor faults on 2026-11-21: 25.1 per request with memory_limit alone,
# 0.002 with rollback.
NOTE = ("Leaked memory is new memory: 100 KB cause 25 page faults in each request. After a rollback, the worker keeps "
        "the written pages, so later requests cause no faults; a forked successor starts without them.")
COLUMNS = ["recycling", "CPU µs/request (min–max)", "× no leak", "requests/s", "p50 ms", "p99 ms", "recycled", "lost",
           "PSS MiB, maximum"]


def main():
    made = scenario.parser(__doc__)
    made.add_argument("--every", type=scenario.positive, default=EVERY, metavar="N",
                      help="requests of a worker between recyclings: %(default)s")
    made.add_argument("--kills", type=int, default=KILLS, metavar="N",
                      help="number of kill -9 of a worker, one per second; 0 for none: %(default)s")
    scenario.run("recycle", made.parse_args(), measure_all, table)


def growth_bytes(every):
    """The limit that this number of leaking requests reaches."""
    return max(GROWTH_BYTES_MIN, every * LEAK_BYTES)


def kinds(every):
    def resident(key, title, *arguments, **environment):
        return scenario.samovar(key, title, "resident", *arguments, environment=environment)
    number = str(every)
    found = [
        resident("no-leak", "no leak", BENCH_KEEPS="0"),
        resident("memory-limit", "none: memory_limit"),
        resident("restart-fork", f"restart after {every}: fork", BENCH_RESTART=number),
        resident("restart-boot", f"restart after {every}: boot", BENCH_RESTART=number, BENCH_OWN_BOOT="1"),
        resident("rollback", f"rollback after {every}", BENCH_ROLLBACK=number),
        resident("rollback-size", f"rollback at {growth_bytes(every) / 1e6:g} MB", "--growth-bytes-max",
                 str(growth_bytes(every)), BENCH_ROLLBACK=str(NEVER)),
        scenario.php_fpm("php-fpm", f"php-fpm, pm.max_requests = {every}", pool=f"pm.max_requests = {every}\n")]
    return [kind for kind in found if kind]


def measure_all(lab, results):
    lab.contest(scenario.workload(WORKLOAD), kinds(lab.asked.every), results, finish=ask_status)
    results["births"] = {}
    if lab.asked.kills:
        bear(lab, results["births"])


def ask_status(contestant):
    """Records Samovar's counter of recycled workers."""
    if contestant.kind.group == "samovar":
        contestant.record["status"] = control.status(contestant.site.var)


def recycled(server):
    """Number of recycled workers, and their kind; None if it is not counted."""
    status = server.get("status")
    if status is None:
        return None
    image = status.get("image") or {}
    return {"rollbacks": image.get("rollbacks_total") or 0, "forks": image.get("refork_total") or 0,
            "restarts": status.get("worker_restarts_total") or 0}


def bear(lab, births):
    """Kills workers of each application without load, and measures the time until there is a successor."""
    for key, title, folder, entry, environment in BIRTHS:
        lab.progress.note(f"{title}: {lab.asked.kills} kills")
        births[key] = {"title": title, "error": None, "ms": []}
        kind = scenario.samovar(f"birth-{key}", title, entry, environment=environment)
        contestant = lab.alone(scenario.workload(folder), kind)
        try:
            contestant.start()
            contestant.load(1, lab.asked.connections)
            births[key]["ms"] = control.births_ms(contestant.site.var, lab.asked.kills)
        except scenario.ERRORS as error:
            scenario.note_error(lab.progress, title, births[key], error)
        finally:
            contestant.stop()


def table(raw):
    parts = [scenario.heading(raw, "Recycling a leaking application")]
    record, births = raw["results"].get("recycle"), raw["results"].get("births")
    if record:
        base = scenario.measured(record, "no-leak")
        parts.append(report.table(COLUMNS, [line(key, server, scenario.measured(record, key), base)
                                            for key, server in record["servers"].items()]))
        parts.append(NOTE)
    if births:
        parts.append(f"From a worker's kill -9 until its successor is idle:\n\n{birth_table(births)}")
    return "\n\n".join(parts)


def line(key, server, found, base):
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * 7]
    cpu = figures.middle(found, "cpu_us")
    counts = recycled(server)
    text = "–" if counts is None else ", ".join(f"{n:,} {name}" for name, n in counts.items() if n) or "0"
    return [server["title"], report.with_spread(found["cpu_us"]),
            report.number(figures.ratio(cpu, figures.middle(base, "cpu_us")), 2),
            scenario.rate(found), *scenario.latencies(found), text, scenario.faults(found),
            report.mebibytes(found["pss_kib"]["max"] if found["pss_kib"] else None)]


def birth_table(births):
    lines = []
    for birth in births.values():
        times = birth["ms"]
        lines.append([birth["title"], f"{statistics.median(times):.1f}", f"{min(times):.1f}–{max(times):.1f}",
                      str(len(times))] if times else [birth["title"], scenario.error_of(birth), "", ""])
    return report.table(["worker", "median ms", "min–max", "kills"], lines)


if __name__ == "__main__":
    main()
