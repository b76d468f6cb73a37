#!/usr/bin/python3
"""Cost of one operation on shared memory: Table, Cache, Counter, published values, APCu's functions.

  bench/scenarios/shared.py [--turns 9] [--calls 50000] [--output DIR]

Compares a server with compat = "apcu" and one with Debian's extension apcu, each with one worker.
Each operation runs --calls times in one request, on both servers in turn, turn after turn. A figure
is the median of the turns minus the median of an empty loop, with the minimum and the maximum turn.
The limits are the product's own targets.
"""

import http.client
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario  # noqa: E402: the suite is next to this folder

WORKLOAD = scenario.SCENARIO_APPS / "shared"
OURS, EXTENSION = "samovar", "extension"
SERVERS = ((OURS, "Samovar", ("--compat", "apcu")), (EXTENSION, "with the extension", ("-d", "extension=apcu")))
EMPTY = "an empty loop"
# Nanoseconds.
LIMITS = {"Table::get, one column": 500, "Table::get, a row": 500, "Table::set": 500, "Cache::get, 1 KB": 1000,
          "Counter::incr": 100, "Counter::get": 100, "published, array of 100,000": 100}
PATIENCE_SECONDS = 60


def main():
    made = scenario.parser(__doc__, rounds=0, connections=1)
    made.add_argument("--turns", type=scenario.positive, default=9, metavar="N",
                      help="turns of all operations on both servers: %(default)s")
    made.add_argument("--calls", type=scenario.positive, default=50_000, metavar="N",
                      help="operations in a request: %(default)s")
    made.set_defaults(workers=1)
    scenario.run("shared", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    found = scenario.workload(WORKLOAD)
    scenario.need_packages(found)
    contestants = {}
    try:
        for key, title, arguments in SERVERS:
            results[key] = {"title": title, "error": None, "operations": {}}
            options = ["--disable-checkpoint", "--shared-bytes-max", "256M", *arguments]
            kind = scenario.samovar(key, title, "script", *options)
            contestants[key] = lab.alone(found, kind)
            try:
                contestants[key].start()
            except scenario.ERRORS as error:
                scenario.note_error(lab.progress, title, results[key], error)
        for turn in range(lab.asked.turns):
            lab.progress.note(f"turn {turn + 1} of {lab.asked.turns}")
            take_turn(lab, contestants, results)
    finally:
        for contestant in contestants.values():
            contestant.stop()


def take_turn(lab, contestants, results):
    """Each operation once on each server, one right after the other."""
    going = {key: contestant for key, contestant in contestants.items() if not results[key]["error"]}
    operations = {key: scenario.ask(contestant, PATIENCE_SECONDS) for key, contestant in going.items()}
    for operation in dict.fromkeys(name for names in operations.values() for name in names):
        for key, contestant in going.items():
            if operation not in operations[key] or results[key]["error"]:
                continue
            try:
                ns = scenario.ask(contestant, PATIENCE_SECONDS, operation=operation, calls=lab.asked.calls)["ns"]
                results[key]["operations"].setdefault(operation, []).append(ns)
            except (*scenario.ERRORS, http.client.HTTPException) as error:
                scenario.note_error(lab.progress, results[key]["title"], results[key], error)


# ---- tables ---------------------------------------------------------------------------------------


def cost(result, operation):
    """Nanoseconds of one call: median, minimum and maximum of the turns; None if it was not measured."""
    turns, empty = result["operations"].get(operation), result["operations"].get(EMPTY)
    if not turns or not empty:
        return None
    loop = statistics.median(empty)
    return [max(0.0, value - loop) for value in (statistics.median(turns), min(turns), max(turns))]


def shown(found):
    return "" if found is None else "{:.3f} ({:.3f}–{:.3f})".format(*(ns / 1000 for ns in found))


def table(raw):
    parts = [scenario.heading(raw, "Cost of an operation on shared memory"),
             f"µs of one call: medians of {raw['settings']['turns']} turns, less an empty loop."]
    results = raw["results"]
    parts.extend(f"{result['title']}: {scenario.error_of(result)}" for result in results.values() if result["error"])
    names = dict.fromkeys(name for result in results.values() for name in result["operations"] if name != EMPTY)
    lines = []
    for name in names:
        ours, limit = cost(results[OURS], name), LIMITS.get(name)
        verdict = "" if not limit or ours is None or ours[0] <= limit else "**above**"
        theirs = cost(results[EXTENSION], name) if name.startswith("apcu_") else None
        lines.append([name, shown(ours), f"{limit / 1000:.1f}" if limit else "", verdict, shown(theirs)])
    parts.append(report.table(["operation", "µs (min–max)", "limit", "", "the extension's"], lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
