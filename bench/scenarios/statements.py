#!/usr/bin/python3
"""Cost of recording statements: the time of twenty queries within a request, insight off and on.

  bench/scenarios/statements.py [--turns 20] [--requests 200] [--models resident,checkpoint]
                              [--binary FILE] [--output DIR]

A request executes a prepared statement of SQLite in memory twenty times, and reads the clock before and after. With
fetchAll, two calls of each query are recorded; with fetch, one. The variants run in turn. A figure is the median of
the requests of a turn, then of the turns. The cost of a query is the difference of "on" and "off" of one turn.
The target is 1 % of a page with twenty queries that takes 1 ms of CPU: 500 ns for each query.
"""

import http.client
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario  # noqa: E402: the suite is next to this folder

MODELS = ("resident", "checkpoint")
QUERIES = 20
WAYS = {"off": {"SAMOVAR_INSIGHT_ENABLED": "false"}, "on": {"SAMOVAR_ADMIN": "127.0.0.1:0"}}
FETCHES = ("fetchAll", "fetch")
TARGET_NS = 500
PATIENCE_SECONDS = 10


def main():
    made = scenario.parser(__doc__, rounds=0, connections=1)
    scenario.add_choice(made, "--models", MODELS)
    made.add_argument("--turns", type=scenario.positive, default=20, metavar="N",
                      help="turns of all variants: %(default)s")
    made.add_argument("--requests", type=scenario.positive, default=200, metavar="N",
                      help="requests of a turn: %(default)s")
    made.add_argument("--binary", type=scenario.existing, metavar="FILE", help="another build of Samovar")
    made.set_defaults(workers=1)
    scenario.run("statements", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    for model in lab.asked.models.split(","):
        measure(lab, model, results.setdefault(model, {}))


def measure(lab, model, results):
    contestants = {}
    found = scenario.workload(scenario.SCENARIO_APPS / "statements")
    try:
        for way, environment in WAYS.items():
            results[way] = {"error": None, "ns": {fetch: [] for fetch in FETCHES}}
            # The key names the server's folder.
            kind = scenario.samovar(f"{model}-{way}", way, model, environment=environment, binary=lab.asked.binary)
            contestants[way] = lab.alone(found, kind)
            try:
                contestants[way].start()
            except scenario.ERRORS as error:
                scenario.note_error(lab.progress, way, results[way], error)
        for turn in range(lab.asked.turns):
            lab.progress.note(f"{model}: turn {turn + 1} of {lab.asked.turns}")
            for way, contestant in contestants.items():
                if not results[way]["error"]:
                    take_turn(lab, contestant, results[way])
    finally:
        for contestant in contestants.values():
            contestant.stop()


def take_turn(lab, contestant, result):
    try:
        answers = [scenario.ask(contestant, PATIENCE_SECONDS, queries=QUERIES) for _ in range(lab.asked.requests)]
        for fetch in FETCHES:
            result["ns"][fetch].append(statistics.median(answer[fetch] for answer in answers) / QUERIES)
    except (*scenario.ERRORS, http.client.HTTPException) as error:
        scenario.note_error(lab.progress, "requests", result, error)


# ---- tables ---------------------------------------------------------------------------------------


def line(model, fetch, results):
    errors = [scenario.error_of(result) for result in results.values() if result["error"]]
    off, on = (results[way]["ns"][fetch] for way in WAYS)
    if errors or len(off) < 2:
        return [model, fetch, *errors[:1], *[""] * 3][:5]
    low, middle, high = statistics.quantiles([after - before for before, after in zip(off, on)], n=4)
    return [model, fetch, *(report.number(statistics.median(each), 0) for each in (off, on)),
            f"{middle:.0f} ({low:.0f}–{high:.0f})"]


def table(raw):
    columns = ["model", "reads with", "off", "on", "recording, median and quartiles"]
    lines = [line(model, fetch, results) for model, results in raw["results"].items() for fetch in FETCHES]
    return "\n\n".join([scenario.heading(raw, "Cost of recording statements"),
                        f"Time of a query in ns. Target of recording: {TARGET_NS}.", report.table(columns, lines)])


if __name__ == "__main__":
    main()
