#!/usr/bin/python3
"""`make bench`: selects workloads and servers, measures them, writes the results. --help lists the options.

The steps of one workload are in suite/measure.py, the figures in suite/figures.py.
"""
# Debian's Python, by its path: matplotlib is installed as a Debian package, for this one.

import dataclasses
import json
import os
import pathlib
import shlex
import sys

from suite import (machine, measure, memory, options, peers, postgres, progress, readme, report, scratch, servers,
                   session, workloads)

BENCH = pathlib.Path(__file__).resolve().parent
FORMAT = 1  # Of raw.json: increased when older files can no longer be read.


def main():
    asked = options.parse(sys.argv[1:])
    os.environ.update(peers.built(os.environ))
    if asked.readme:
        print(readme.section(json.loads(asked.readme.read_text()), shown(asked.readme.parent)), end="")
    elif asked.report:
        write_report(json.loads(asked.report.read_text()), asked.report.parent)
    elif asked.list:
        list_all()
    else:
        sys.exit(bench(asked))


def bench(asked):
    session.end_at_signals()
    session.need_tools()
    settings = options.settings(asked)
    chosen = choose_workloads(asked.workloads)
    kinds, missing = choose_servers(asked.servers)
    raw = begin(settings, kinds, missing)
    output = asked.output or BENCH / "results" / raw["started"][:10]
    output.mkdir(parents=True, exist_ok=True)
    try:
        measure_all(raw, settings, chosen, kinds, output)
        raw["complete"] = True
    except KeyboardInterrupt:
        print("interrupted: writing what there is", file=sys.stderr)
    raw["ended"] = session.now()
    write_report(raw, output)
    return 0 if raw["complete"] else 130


def list_all():
    found, wrong = workloads.load_all(BENCH / "apps")
    for name, workload in found.items():
        print(f"workload  {name:20} {workload.description}")
    for name, error in wrong.items():
        print(f"workload  {name:20} error: {error}")
    for kind in all_kinds():
        print(f"server    {kind.key:20} {kind.version or 'missing: ' + kind.install}")


def choose_workloads(names):
    """The selected workloads. An unreadable one is an error, because it was requested."""
    found, wrong = workloads.load_all(BENCH / "apps")
    wanted = names.split(",") if names else [*found, *wrong]
    for name in wanted:
        if name not in found:
            sys.exit(f"workload {name}: {wrong.get(name, f'there is no bench/apps/{name}/workload.toml')}")
    return [found[name] for name in sorted(wanted, key=workloads.rank)]


def all_kinds():
    found, wrong = peers.load_all(BENCH / "peers")
    if wrong:
        sys.exit("\n".join(f"bench/peers: {error}" for error in wrong.values()))
    return servers.own_kinds(machine.version_of) + servers.peer_kinds(found)


def choose_servers(names):
    """The selected servers that are installed, and those that are missing."""
    kinds = all_kinds()
    wanted = names.split(",") if names else [kind.key for kind in kinds]
    unknown = set(wanted) - {kind.key for kind in kinds}
    if unknown:
        sys.exit(f"unknown servers: {', '.join(sorted(unknown))}\nhint: {', '.join(kind.key for kind in kinds)}")
    kinds = [kind for kind in kinds if kind.key in wanted]
    missing = {kind.key: {"title": kind.title, "install": kind.install} for kind in kinds if kind.version is None}
    for server in missing.values():
        print(f"{server['title']} is missing and is skipped\nhint: run {server['install']}", file=sys.stderr)
    return [kind for kind in kinds if kind.version is not None], missing


def begin(settings, kinds, missing):
    """raw.json before any measurement."""
    return {"format": FORMAT, "complete": False, "started": session.now(), "ended": None,
            "command": shlex.join(["bench/run.py", *sys.argv[1:]]), "settings": dataclasses.asdict(settings),
            "machine": machine.describe(), "versions": machine.versions(), "php_settings": servers.PHP_SETTINGS,
            "servers": {kind.key: {"title": kind.title, "version": kind.version} for kind in kinds},
            "missing": missing, "workloads": {}, "memory": [], "plots": []}


def measure_all(raw, settings, chosen, kinds, output):
    line_ups = {workload.name: [kind for kind in kinds if kind.takes_part(workload)] for workload in chosen}
    weighed = [workload for workload in chosen if workload.name == settings.memory_workload]
    planned = sum(measure.planned_seconds(workload, line_ups[workload.name], settings) for workload in chosen)
    planned += sum(memory.planned_seconds(line_ups[workload.name], settings.memory_workers) for workload in weighed)
    steps = progress.Progress(planned)
    folder = scratch.make("samovar-bench-")
    database = None
    try:
        for workload in chosen:
            problem, database = provide(workload, database)
            if problem:
                raw["workloads"][workload.name] = {"description": workload.description, "error": problem}
                steps.note(f"{workload.name}: {problem}")
                continue
            environment = database.environment() if workload.needs == "postgres" else {}
            contest = measure.Contest(workload, line_ups[workload.name], settings, folder, environment, steps)
            raw["workloads"][workload.name] = contest.record
            contest.run()
            # Measured figures are not lost if the machine stops.
            write_raw(raw, output)
        for workload in weighed:
            memory.weigh(workload, line_ups[workload.name], settings.memory_workers, folder, {}, steps, raw["memory"])
            write_raw(raw, output)
    finally:
        if database:
            database.stop()
        scratch.drop(folder)


def provide(workload, database):
    """Resources that a workload needs in addition to the servers: (missing one or None, the database if one runs)."""
    missing = machine.missing_packages(workload.packages)
    if missing:
        return f"missing Debian packages: run apt-get install {' '.join(missing)}", database
    if workload.needs == "postgres" and database is None:
        try:
            database = postgres.Postgres()
        except postgres.PostgresError as error:
            return str(error), None
    return None, database


def write_raw(raw, output):
    partial = output / "raw.json.partial"
    partial.write_text(json.dumps(raw, indent=1) + "\n")
    partial.replace(output / "raw.json")


def write_report(raw, output):
    # First the data that cannot be created again.
    write_raw(raw, output)
    raw["plots"] = draw(raw, output)
    write_raw(raw, output)
    (output / "results.md").write_text(report.results(raw))
    print(f"{shown(output)}: {', '.join(['results.md', 'raw.json', *raw['plots']])}")


def draw(raw, output):
    try:
        from suite import plots
    except ImportError:
        print("no plots: matplotlib is missing\nhint: run apt-get install python3-matplotlib", file=sys.stderr)
        return []
    return plots.draw_all(raw, output)


def shown(path):
    """A path relative to the repository, if that is shorter."""
    path = path.resolve()
    return path.relative_to(servers.ROOT) if path.is_relative_to(servers.ROOT) else path


if __name__ == "__main__":
    main()
