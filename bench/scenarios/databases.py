#!/usr/bin/python3
"""Cost of a database connection that is opened for each request, compared with one that is kept.

  bench/scenarios/databases.py [--databases pgsql,mysql] [--questions wait,quick] [--output DIR]

script           a connection for each request; the whole script
persistent       the same with PDO::ATTR_PERSISTENT: a worker keeps its connection
resident         each worker keeps a connection; nothing is reset
checkpoint       each worker opens a connection before the checkpoint and keeps it
per request      checkpoint; the connection is opened after it, in each request

Each request sends two queries, one after the other. The result of "wait" comes after 10 ms, that of
"quick" at once. The scenario starts its own PostgreSQL and MariaDB, with unix sockets and without
passwords. The CPU time of the databases is not included.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import contextlib  # noqa: E402: the suite is next to this folder
import dataclasses  # noqa: E402

from suite import control, figures, mariadb, postgres, report, scenario  # noqa: E402

WORKLOAD = scenario.SCENARIO_APPS / "databases"
DATABASES = {"pgsql": ("PostgreSQL", postgres.Postgres), "mysql": ("MariaDB", mariadb.MariaDb)}
QUESTIONS = {"wait": "two queries of 10 ms each", "quick": "two queries with an immediate result"}
# Minimum ratio to resident's requests/s if the connection is kept.
SHARE_MIN = 0.97
COLUMNS = ["way", "requests/s (min–max)", "× resident", "CPU µs/request (min–max)", "p50 ms", "p99 ms",
           "private MiB per worker", "forks", "errors"]


def main():
    made = scenario.parser(__doc__)
    scenario.add_choice(made, "--databases", DATABASES)
    scenario.add_choice(made, "--questions", QUESTIONS)
    # Requests that wait need more workers than there are cores.
    made.set_defaults(workers=8)
    scenario.run("databases", made.parse_args(), measure_all, table)


def kinds(database, question):
    told = {"BENCH_DATABASE": database, "BENCH_QUESTION": f"{question}-{database}"}

    def samovar(key, title, entry, **more):
        return scenario.samovar(key, title, entry, environment={**told, **more})
    persistent = {**told, "BENCH_PERSISTENT": "1"}
    pool = "".join(f'env[{name}] = "{value}"\n' for name, value in persistent.items())
    found = [samovar("script", "script", "fpm"),
             samovar("resident", "resident", "resident"),
             samovar("checkpoint", "checkpoint, connection opened before it", "above"),
             samovar("per-request", "checkpoint, a connection per request", "below"),
             scenario.php_fpm("persistent", "php-fpm, persistent connections", pool=pool)]
    return [kind for kind in found if kind]


def measure_all(lab, results):
    for database in lab.asked.databases.split(","):
        title, start = DATABASES[database]
        with start() as running:
            for question in lab.asked.questions.split(","):
                workload = dataclasses.replace(
                    scenario.workload(WORKLOAD), name=f"{database}-{question}",
                    description=f"{title}, {QUESTIONS[question]}")
                lab.contest(workload, kinds(database, question), results, finish=weigh,
                            environment=running.environment())


def weigh(contestant):
    """Records Samovar's counters and each worker's private memory."""
    if contestant.kind.group != "samovar":
        return
    var = contestant.site.var
    status = control.at_rest(var)
    contestant.record["status"] = status
    with contextlib.suppress(OSError):
        contestant.record["uss_kib"] = [control.weigh(worker["pid"])["uss_kib"] for worker in status["workers"]]


def table(raw):
    parts = scenario.sections(raw, "Persistent and new database connections", workload_table)
    parts.append(f"Target of the checkpoint with a connection opened before it: {SHARE_MIN} × resident's requests/s.")
    return "\n\n".join(parts)


def workload_table(record):
    resident = scenario.measured(record, "resident")
    return report.table(COLUMNS, [line(server, scenario.measured(record, key), resident)
                                  for key, server in record["servers"].items()])


def line(server, found, resident):
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * (len(COLUMNS) - 2)]
    share = figures.ratio(figures.middle(found, "rate"), figures.middle(resident, "rate"))
    private = figures.median(server.get("uss_kib") or [])
    image = (server.get("status") or {}).get("image") or {}
    return [server["title"], report.with_spread(found["rate"]), report.number(share, 2),
            report.with_spread(found["cpu_us"]), *scenario.latencies(found),
            report.mebibytes(private), str(image.get("refork_total", "")), scenario.faults(found)]


if __name__ == "__main__":
    main()
