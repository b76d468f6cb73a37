#!/usr/bin/python3
"""Two builds of the server side by side: what did a change do to the path of a request?

  git worktree add /tmp/before COMMIT && make -C /tmp/before build
  bench/scenarios/binaries.py --before /tmp/before/target/release/samovar [--workloads hello,symfony] [--output DIR]

before is the other build, now is target/release/samovar (or what SAMOVAR_BIN names). Both serve the same application
with the same settings, in turns. Ratios are those of the rounds, each beside the same round's "before": a machine that
others use as well slows both down.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario, servers  # noqa: E402: the suite is beside this folder

WORKLOADS = ("hello", "echo", "bootstrap", "symfony")
MODELS = ("native", "resident", "checkpoint", "fpm")
COLUMNS = ["server", "CPU µs/request (min–max)", "CPU × before", "requests/s", "p50 ms", "p99 ms", "p99 × before",
           "errors"]


def main():
    made = scenario.parser(__doc__, rounds=7, seconds=2)
    made.add_argument("--before", type=scenario.existing, metavar="BINARY",
                      help="the other build's target/release/samovar")
    scenario.add_choice(made, "--workloads", WORKLOADS)
    scenario.add_choice(made, "--models", MODELS)
    asked = made.parse_args()
    if not asked.before and not asked.report:
        made.error("--before BINARY says what to compare with")
    scenario.run("binaries", asked, measure_all, table)


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        found = scenario.workload(scenario.APPS / name)
        for model in lab.asked.models.split(","):
            kinds = [scenario.samovar("before", "before", model, binary=lab.asked.before),
                     scenario.samovar("now", "now", model, binary=servers.samovar_binary())]
            # A name of its own for each record.
            lab.contest(dataclasses.replace(found, name=f"{name}-{model}"), kinds, results)


def table(raw):
    return "\n\n".join(scenario.sections(raw, "Two builds side by side", workload_table))


def workload_table(record):
    before = record["servers"].get("before")
    return report.table(COLUMNS, [scenario.row_beside(record, key, server, before)
                                  for key, server in record["servers"].items()])


if __name__ == "__main__":
    main()
