#!/usr/bin/python3
"""Cost of bootstrap: the same application run in four ways, from a whole boot in each request to none.

  bench/scenarios/bootstrap.py [--workloads bootstrap,symfony] [--output DIR]

classic           the whole script in each request: Samovar's script model, and nginx + php-fpm for
                  comparison
re-initialised    one resident process that loads its classes once and boots the application again
                  in each request
resident          booted once; memory that a request leaves is visible to the next one
checkpoint        booted once; each request starts from the booted state

The servers of a workload are measured in turn with samovar-load. The client shares the machine, so
CPU per request is the most reliable figure: it counts the server's processes only.
`bench/run.py --workloads symfony` has latencies, memory and more.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import figures, report, scenario  # noqa: E402: the suite is next to this folder

WORKLOADS = ("bootstrap", "symfony")


def main():
    scenario.run_on_workloads("bootstrap", __doc__, WORKLOADS, measure_all, table)


def kinds():
    found = [scenario.php_fpm(), scenario.samovar("classic", "classic: Samovar, script", "fpm"),
             scenario.samovar("re-initialised", "re-initialised in every request", "reinitialised"),
             scenario.samovar("resident", "resident", "resident"),
             scenario.samovar("checkpoint", "checkpoint", "checkpoint")]
    return [kind for kind in found if kind]


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        entry = scenario.SCENARIO_APPS / f"bootstrap/{name}.php"
        lab.contest(scenario.workload(scenario.APPS / name, reinitialised=entry), kinds(), results)


def table(raw):
    parts = scenario.sections(raw, "Cost of the bootstrap", workload_table)
    parts.append("Bootstrap is the cost in excess of resident.")
    return "\n\n".join(parts)


def workload_table(record):
    resident = scenario.measured(record, "resident")
    return report.table(
        ["way", "CPU µs/request (min–max)", "bootstrap, µs", "× resident", "requests/s", "p50 ms", "p99 ms", "errors"],
        [line(server, scenario.measured(record, key), resident) for key, server in record["servers"].items()])


def line(server, found, resident):
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * 6]
    cpu, least = figures.middle(found, "cpu_us"), figures.middle(resident, "cpu_us")
    return [server["title"], report.with_spread(found["cpu_us"]), report.signed(figures.difference(cpu, least)),
            report.number(figures.ratio(cpu, least), 2), scenario.rate(found), *scenario.latencies(found),
            scenario.faults(found)]


if __name__ == "__main__":
    main()
