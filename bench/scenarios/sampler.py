#!/usr/bin/python3
"""Cost of the sampler: its own CPU time compared with that of the observed processes, and its effect on requests.

  bench/scenarios/sampler.py [--workloads hello,symfony] [--models resident,checkpoint] [--hertz 49] [--output DIR]

Measures two servers in turn, round after round: one with profile.hertz = 0, and one that takes 49
samples per second of each busy worker. The sampler's share is the CPU time of its thread, as counted
by the scheduler, divided by the CPU time of the server and its workers since their start. It does
not depend on a quiet machine. Ratios compare each round with "off" of the same round. The targets: a
share of 1 %; p99 unchanged.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import control, report, scenario  # noqa: E402: the suite is next to this folder

WORKLOADS = ("hello", "symfony")
MODELS = ("resident", "checkpoint", "fpm")
OFF, ON = "off", "on"
COLUMNS = ["sampler", "CPU µs/request (min–max)", "CPU × off", "p50 ms", "p99 ms", "p99 × off", "requests/s",
           "CPU share of the sampler, %", "µs a look", "torn, %", "errors"]


def main():
    made = scenario.parser(__doc__)
    scenario.add_choice(made, "--workloads", WORKLOADS)
    scenario.add_choice(made, "--models", MODELS)
    made.add_argument("--hertz", type=scenario.positive, default=49, metavar="N",
                      help="samples per second of each busy worker: %(default)s")
    scenario.run("sampler", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        for model in lab.asked.models.split(","):
            found = scenario.workload(scenario.APPS / name)
            found = dataclasses.replace(found, name=f"{name}-{model}")
            kinds = [scenario.samovar(key, title, model, "--profile-hertz", hertz) for key, title, hertz in
                     ((OFF, "off", "0"), (ON, f"{lab.asked.hertz} Hz", str(lab.asked.hertz)))]
            lab.contest(found, kinds, results, finish=weigh)


def weigh(contestant):
    """Records the CPU time of the sampler, and the total."""
    status = control.at_rest(contestant.site.var)
    if profile := status["profile"]:
        contestant.record["sampler"] = {
            "cpu_seconds": profile["cpu_seconds"], "samples": profile["samples_total"], "torn": profile["torn_total"],
            "all_cpu_seconds": status["cpu_seconds"] + sum(worker["cpu_seconds"] for worker in status["workers"])}


# ---- the table ----------------------------------------------------------------------------------------


def table(raw):
    return "\n\n".join(scenario.sections(raw, "Cost of the sampler", workload_table))


def workload_table(record):
    off = record["servers"].get(OFF)
    return report.table(COLUMNS, [line(record, key, server, off) for key, server in record["servers"].items()])


def line(record, key, server, off):
    found = scenario.measured(record, key)
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * 9]
    return [server["title"], report.with_spread(found["cpu_us"]), scenario.times(server, off, "cpu_us"),
            *scenario.latencies(found), scenario.times(server, off, "p99"), scenario.rate(found), *of_sampler(server),
            scenario.faults(found)]


def of_sampler(server):
    """Its share, the cost of a sample, and the number of torn ones."""
    sampler = server.get("sampler")
    if not sampler or not sampler["samples"]:
        return [""] * 3
    share = 100 * sampler["cpu_seconds"] / sampler["all_cpu_seconds"]
    return [f"{share:.2f}", f"{1e6 * sampler['cpu_seconds'] / sampler['samples']:.0f}",
            f"{100 * sampler['torn'] / sampler['samples']:.1f}"]


if __name__ == "__main__":
    main()
