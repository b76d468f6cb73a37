#!/usr/bin/python3
"""Elastic number of workers: its benefit if requests wait, and its cost if they compute.

  bench/scenarios/elastic.py [--loads waits,together,computes] [--output DIR]

waits      two queries of 10 ms to PostgreSQL in each request: an elastic number of workers,
           compared with fixed numbers and php-fpm
together   the same queries from one client: one after the other, and by parallel() on two
           connections
computes   a page that does not wait: 2 workers, 64 of which 2 run, 64 of which any number run

The scenario starts its own PostgreSQL with a unix socket. Its CPU time is not included. Memory is
the PSS of all processes of the server right after the last round.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import argparse  # noqa: E402: the suite is next to this folder
import contextlib  # noqa: E402
import dataclasses  # noqa: E402

from suite import control, figures, postgres, report, scenario  # noqa: E402

LOADS = ("waits", "together", "computes")
# Number of php-fpm's children. A server's own number is in its arguments.
CHILDREN = 8
RATE_MIN = 2300
POOL_MIB_MAX = 250
SHARE_MIN = 0.95
TOGETHER_MS_MAX = 12
# Share of all requests that the busiest workers have served together.
BUSIEST_SHARE = 0.95
COLUMNS = ["server", "requests/s (min–max)", "× first", "CPU µs/request (min–max)", "p50 ms", "p99 ms", "workers",
           f"that served {BUSIEST_SHARE:.0%}", "PSS of all MiB", "errors"]


def main():
    made = scenario.parser(__doc__)
    scenario.add_choice(made, "--loads", LOADS)
    made.set_defaults(workers=CHILDREN)
    scenario.run("elastic", made.parse_args(), measure_all, table)


def waiting():
    told = {"BENCH_DATABASE": "pgsql", "BENCH_QUESTION": "wait-pgsql"}
    found = [samovar("elastic", "elastic, 2 to 256, checkpoint, connection opened before it", "above", "2..256", told),
             samovar("fixed-64", "64 workers, same model", "above", "64", told),
             samovar("fixed-8", "8 workers, same model", "above", "8", told),
             samovar("elastic-script", "elastic, 2 to 256, script", "fpm", "2..256", told),
             scenario.php_fpm("php-fpm", f"nginx + php-fpm, {CHILDREN} children, persistent connections",
                              pool=pool({**told, "BENCH_PERSISTENT": "1"}))]
    return [kind for kind in found if kind]


def together():
    told = {"BENCH_DATABASE": "pgsql", "BENCH_QUESTION": "wait-pgsql"}
    return [samovar("after", "one after the other", "together", "1", told),
            samovar("together", "by parallel()", "together", "1", {**told, "BENCH_TOGETHER": "1"})]


def computing():
    return [samovar("two", "2 workers", "checkpoint", "2"),
            samovar("many", "64 workers, 2 run", "checkpoint", "64", None, "--workers-running-max", "2"),
            samovar("crowd", "64 workers, any number run", "checkpoint", "64", None, "--workers-running-max", "64")]


def samovar(key, title, entry, workers, told=None, *more):
    # The last value of a repeated flag counts. Added workers stay until they are counted.
    return scenario.samovar(key, title, entry, "--workers", workers, "--workers-idle-max", "1h", *more,
                            environment=told)


def pool(environment):
    return "".join(f'env[{name}] = "{value}"\n' for name, value in environment.items())


def measure_all(lab, results):
    loads = lab.asked.loads.split(",")
    if "waits" in loads:
        workload = dataclasses.replace(scenario.workload(scenario.SCENARIO_APPS / "databases"), name="waits",
                                       description="two PostgreSQL queries of 10 ms each")
        with postgres.Postgres() as running:
            lab.contest(workload, waiting(), results, finish=weigh, environment=running.environment())
    if "together" in loads:
        workload = dataclasses.replace(scenario.workload(scenario.SCENARIO_APPS / "databases"), name="together",
                                       description="two PostgreSQL queries of 10 ms each, one client")
        alone = dataclasses.replace(lab, asked=argparse.Namespace(**{**vars(lab.asked), "connections": 1}))
        with postgres.Postgres() as running:
            alone.contest(workload, together(), results, environment=running.environment())
    if "computes" in loads:
        workload = dataclasses.replace(scenario.workload(scenario.APPS / "bootstrap"), name="computes",
                                       description="a page without waits")
        lab.contest(workload, computing(), results, finish=weigh)


def weigh(contestant):
    """Records the number of workers after the last round, how few of them served nearly all, and their total memory."""
    if contestant.kind.group != "samovar":
        return
    status = control.status(contestant.site.var)
    pids = [status["pid"], *(worker["pid"] for worker in status["workers"])]
    contestant.record["worker_count"] = len(status["workers"])
    contestant.record["busiest_count"] = busiest([worker["requests"] for worker in status["workers"]])
    with contextlib.suppress(OSError):
        contestant.record["pss_kib"] = sum(control.weigh(pid)["pss_kib"] for pid in pids)


def busiest(requests):
    """Smallest number of workers that have served most of all requests."""
    left, count = BUSIEST_SHARE * sum(requests), 0
    for number in sorted(requests, reverse=True):
        if left <= 0:
            break
        left, count = left - number, count + 1
    return count


def table(raw):
    parts = scenario.sections(raw, "Elastic workers", workload_table)
    parts.append(f"To be reached: {RATE_MIN} requests/s in at most {POOL_MIB_MAX} MiB where requests wait; "
                 f"p50 of {TOGETHER_MS_MAX} ms by parallel(); "
                 f"{SHARE_MIN} × the rate of 2 workers by 64 of which 2 run.")
    return "\n\n".join(parts)


def workload_table(record):
    first = scenario.measured(record, next(iter(record["servers"])))
    return report.table(COLUMNS, [line(server, scenario.measured(record, key), first)
                                  for key, server in record["servers"].items()])


def line(server, found, first):
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * (len(COLUMNS) - 2)]
    share = figures.ratio(figures.middle(found, "rate"), figures.middle(first, "rate"))
    return [server["title"], report.with_spread(found["rate"]), report.number(share, 2),
            report.with_spread(found["cpu_us"]), *scenario.latencies(found), str(server.get("worker_count", "")),
            str(server.get("busiest_count", "")), report.mebibytes(server.get("pss_kib")), scenario.faults(found)]


if __name__ == "__main__":
    main()
