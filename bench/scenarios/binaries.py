#!/usr/bin/python3
"""Compares two builds of the server: how has a change affected the cost of a request?

  git worktree add /tmp/before COMMIT && make -C /tmp/before build
  bench/scenarios/binaries.py --before /tmp/before/target/release/samovar [--workloads hello,symfony] [--output DIR]

"before" is the other build, "now" is target/release/samovar (or the build in SAMOVAR_BIN). Both
serve the same application with the same settings, in turns. Ratios compare each round with "before"
of the same round, because other load on the machine slows both down.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario, servers  # noqa: E402: the suite is next to this folder

WORKLOADS = ("hello", "echo", "bootstrap", "symfony")
MODELS = ("native", "resident", "checkpoint", "fpm")
COLUMNS = ["server", "CPU µs/request (min–max)", "CPU × before", "requests/s", "p50 ms", "p99 ms", "p99 × before",
           "errors"]


def main():
    made = scenario.parser(__doc__, rounds=7, seconds=2)
    made.add_argument("--before", type=scenario.existing, metavar="BINARY",
                      help="target/release/samovar of the other build")
    scenario.add_choice(made, "--workloads", WORKLOADS)
    scenario.add_choice(made, "--models", MODELS)
    asked = made.parse_args()
    if not asked.before and not asked.report:
        made.error("missing --before BINARY: the build to compare with")
    scenario.run("binaries", asked, measure_all, table)


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        found = scenario.workload(scenario.APPS / name)
        for model in lab.asked.models.split(","):
            kinds = [scenario.samovar("before", "before", model, binary=lab.asked.before),
                     scenario.samovar("now", "now", model, binary=servers.samovar_binary())]
            # A separate name for each record.
            lab.contest(dataclasses.replace(found, name=f"{name}-{model}"), kinds, results)


def table(raw):
    return "\n\n".join(scenario.sections(raw, "Comparison of two builds", workload_table))


def workload_table(record):
    before = record["servers"].get("before")
    return report.table(COLUMNS, [scenario.row_beside(record, key, server, before)
                                  for key, server in record["servers"].items()])


if __name__ == "__main__":
    main()
