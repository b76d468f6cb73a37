#!/usr/bin/python3
"""What bootstrap costs: the same application by four ways of running it, from a whole boot in each request to none.

  bench/scenarios/bootstrap.py [--workloads bootstrap,symfony] [--output DIR]

classic           the whole script in each request: Samovar's script model, and nginx + php-fpm beside it
re-initialised    one resident process that loads its classes once and boots the application anew in each request
resident          booted once; what a request leaves in memory, the next one finds
checkpoint        booted once; each request begins with it as it was booted

The servers of a workload are measured in turn with samovar-load. The client shares the machine, so CPU per request,
of the server's processes alone, says most. `bench/run.py --workloads symfony` has latencies, memory and more.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import figures, report, scenario  # noqa: E402: the suite is beside this folder

WORKLOADS = ("bootstrap", "symfony")
# The article's figure for each way: issue 4 quotes none for this experiment, and nothing is made up here.
ARTICLE = {}


def main():
    made = scenario.parser(__doc__)
    made.add_argument("--workloads", default=",".join(WORKLOADS), metavar="A,B", help="of both: %(default)s")
    asked = made.parse_args()
    unknown = set(asked.workloads.split(",")) - set(WORKLOADS)
    if unknown:
        made.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    scenario.run("bootstrap", asked, measure_all, table)


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
    parts = [scenario.heading(raw, "What bootstrap costs")]
    parts += [f"**{name}**: {record['description']}\n\n{workload_table(record)}"
              for name, record in raw["results"].items()]
    parts.append("Bootstrap is what a way costs over resident. Issue 4 quotes no figure of the article for this one.")
    return "\n\n".join(parts)


def workload_table(record):
    resident = scenario.measured(record, "resident")
    return report.table(
        ["way", "article", "CPU µs/request (min–max)", "bootstrap, µs", "× resident", "requests/s", "p50 ms", "p99 ms",
         "errors"],
        [line(key, server, scenario.measured(record, key), resident) for key, server in record["servers"].items()])


def line(key, server, found, resident):
    if found is None:
        return [server["title"], ARTICLE.get(key, "–"), scenario.error_of(server), *[""] * 6]
    cpu, least = figures.middle(found, "cpu_us"), figures.middle(resident, "cpu_us")
    return [server["title"], ARTICLE.get(key, "–"), report.with_spread(found["cpu_us"]),
            report.signed(figures.difference(cpu, least)), report.number(figures.ratio(cpu, least), 2),
            report.number(figures.middle(found, "rate"), 0), report.milliseconds(figures.middle(found, "p50")),
            report.milliseconds(figures.middle(found, "p99")), str(found["errors"] + found["hung"])]


if __name__ == "__main__":
    main()
