#!/usr/bin/python3
"""Gain of a custom engine (`make php-engine`) compared with the installed libphp.

  bench/scenarios/engine.py --engine target/engine/libphp8.2.so [--workloads symfony,laravel] [--output DIR]

Measures the same server twice, with and without php_engine, in turns. Laravel is an application that
was not part of the engine's training. Ratios compare each round with "installed" of the same round.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario, servers  # noqa: E402: the suite is next to this folder

WORKLOADS = ("symfony", "bootstrap", "laravel", "echo", "hello")
MODELS = ("resident", "checkpoint", "fpm")
COLUMNS = ["server", "CPU µs/request (min–max)", "CPU × installed", "requests/s", "p50 ms", "p99 ms", "errors"]


def main():
    made = scenario.parser(__doc__, rounds=7, seconds=2)
    made.add_argument("--engine", type=scenario.existing, metavar="FILE", help="the libphp of make php-engine")
    scenario.add_choice(made, "--workloads", WORKLOADS)
    scenario.add_choice(made, "--models", MODELS)
    asked = made.parse_args()
    if not asked.engine and not asked.report:
        made.error("missing --engine FILE: the engine to compare with")
    scenario.run("engine", asked, measure_all, table)


def measure_all(lab, results):
    binary = servers.samovar_binary()
    for name in lab.asked.workloads.split(","):
        found = scenario.workload(scenario.APPS / name)
        for model in lab.asked.models.split(","):
            kinds = [scenario.samovar("installed", "installed", model, binary=binary),
                     scenario.samovar("engine", "engine", model, "--php-engine", lab.asked.engine, binary=binary)]
            # A separate name for each record.
            lab.contest(dataclasses.replace(found, name=f"{name}-{model}"), kinds, results)


def table(raw):
    return "\n\n".join(scenario.sections(raw, "An engine compared with the installed libphp", workload_table))


def workload_table(record):
    installed = record["servers"].get("installed")
    return report.table(COLUMNS, [line(record, key, server, installed) for key, server in record["servers"].items()])


def line(record, key, server, installed):
    found = scenario.measured(record, key)
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * (len(COLUMNS) - 2)]
    return [server["title"], report.with_spread(found["cpu_us"]), scenario.times(server, installed, "cpu_us"),
            scenario.rate(found), *scenario.latencies(found), scenario.faults(found)]


if __name__ == "__main__":
    main()
