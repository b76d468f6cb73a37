#!/usr/bin/python3
"""Cost of an interposed libc call that does not wait: bare, measured for request accounting, next to a task.

  bench/scenarios/hooks.py [--turns 9] [--calls 50000] [--output DIR]

One script with one worker calls libc functions by FFI, batch after batch in turn: by a name that is
interposed and by another name that is not. A figure is the median of the differences between
batches, in nanoseconds, with its quartiles.

bare      as installed, no task
measured  with the dashboard: the clock is read before and after each call, to separate waiting from
          work
beside    as installed, while a task waits
"""

import http.client
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario  # noqa: E402: the suite is next to this folder

WORKLOAD = scenario.SCENARIO_APPS / "hooks"
CALLS = ("read", "write", "poll", "close")
WAYS = {
    "bare": ("bare", (), {}),
    "measured": ("measured", ("--admin", "127.0.0.1:0"), {}),
    "beside": ("next to a task", (), {"task": "1"}),
}
# Nanoseconds, if no task is in flight and nothing is measured.
LIMIT_NS = 5
PATIENCE_SECONDS = 120


def main():
    made = scenario.parser(__doc__, rounds=0, connections=1)
    made.add_argument("--turns", type=scenario.positive, default=9, metavar="N",
                      help="turns of all variants: %(default)s")
    made.add_argument("--calls", type=scenario.positive, default=50_000, metavar="N",
                      help="calls in a request: %(default)s")
    made.set_defaults(workers=1)
    scenario.run("hooks", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    found = scenario.workload(WORKLOAD)
    contestants = {}
    try:
        for key, (title, arguments, _) in WAYS.items():
            results[key] = {"title": title, "error": None, "calls": {}}
            kind = scenario.samovar(key, title, "script", "--disable-checkpoint", "-d", "ffi.enable=1", *arguments)
            contestants[key] = lab.alone(found, kind)
            try:
                contestants[key].start()
            except scenario.ERRORS as error:
                scenario.note_error(lab.progress, title, results[key], error)
        for turn in range(lab.asked.turns):
            lab.progress.note(f"turn {turn + 1} of {lab.asked.turns}")
            for key, contestant in contestants.items():
                if not results[key]["error"]:
                    take_turn(lab, contestant, key, results[key])
    finally:
        for contestant in contestants.values():
            contestant.stop()


def take_turn(lab, contestant, key, result):
    try:
        said = scenario.ask(contestant, PATIENCE_SECONDS, calls=lab.asked.calls, **WAYS[key][2])
        for name, (ours, libcs) in said.items():
            kept = result["calls"].setdefault(name, {"libc": [], "more": []})
            kept["libc"].append(statistics.median(libcs))
            kept["more"].extend(one - other for one, other in zip(ours, libcs))
    except (*scenario.ERRORS, http.client.HTTPException) as error:
        scenario.note_error(lab.progress, result["title"], result, error)


# ---- tables ---------------------------------------------------------------------------------------


def shown(values):
    """The median of the differences, and their quartiles."""
    if len(values) < 2:
        return "".join(f"{value:.1f}" for value in values)
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"


def table(raw):
    parts = [scenario.heading(raw, "Cost of an interposed call that does not block"),
             "Additional ns compared with libc's own function, from PHP by FFI: medians of batches of 1,000 calls, and "
             f"quartiles. Limit where no task is in flight and nobody measures: {LIMIT_NS}."]
    results = raw["results"]
    parts.extend(f"{result['title']}: {scenario.error_of(result)}" for result in results.values() if result["error"])
    lines = []
    for name in CALLS:
        of_all = [result["calls"].get(name, {"libc": [], "more": []}) for result in results.values()]
        alone = [value for found in of_all for value in found["libc"]]
        lines.append([f"`{name}()`", f"{statistics.median(alone):.0f}" if alone else "",
                      *(shown(found["more"]) for found in of_all)])
    titles = [result["title"] for result in results.values()]
    parts.append(report.table(["call", "libc's own, including PHP's part", *titles], lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
