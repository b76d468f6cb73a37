#!/usr/bin/python3
"""Truth against shown: a shop that measures itself, and the figures of the admin listener for it.

  bench/scenarios/planted.py [--requests 2000] [--models script,checkpoint,resident] [--binary FILE]
                             [--output DIR]

Clients send a mix of five kinds of requests at the same time. Each response has the measurements of its request. The
table compares their sums and percentiles with those of the server, by kind. A script measures at least the truth
without PHP's activation and the transport, its client at most the truth with them. A figure outside of this range, and
of the error of histograms, is wrong.
"""

import concurrent.futures
import http.client
import json
import pathlib
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import report, scenario  # noqa: E402: the suite is next to this folder
from suite.launch import free_port  # noqa: E402: the same

# Entry of each model.
MODELS = {"script": "fpm", "checkpoint": "checkpoint", "resident": "resident"}
# Requests of ten, by kind.
MIX = {"list": 4, "report": 2, "product": 2, "export": 1, "checkout": 1}
FAILING = "checkout"
STATEMENT = "SELECT id FROM part WHERE id = ?"
STATEMENTS = 21
SLEEPS_MS = 40
PATIENCE_SECONDS = 10
COUNT_SECONDS_MAX = 10
POLL_SECONDS = 0.1
PERCENTILES = (50, 95, 99)
TOLERANCE = 0.01  # Error of the histograms.


def main():
    made = scenario.parser(__doc__, rounds=0, connections=4)
    scenario.add_choice(made, "--models", MODELS)
    made.add_argument("--requests", type=scenario.positive, default=2000, metavar="N",
                      help="requests to each model: %(default)s")
    made.add_argument("--binary", type=scenario.existing, metavar="FILE", help="another build of Samovar")
    made.set_defaults(workers=4)
    scenario.run("planted", made.parse_args(), measure_all, table)


# ---- traffic ----------------------------------------------------------------------------------------


def measure_all(lab, results):
    found = scenario.workload(scenario.SCENARIO_APPS / "planted")
    for model in lab.asked.models.split(","):
        result = results[model] = {"error": None, "figures": []}
        admin = f"127.0.0.1:{free_port()}"
        environment = {"SAMOVAR_ADMIN": admin, "SAMOVAR_ADMIN_TOKEN": "none"}
        kind = scenario.samovar(model, model, MODELS[model], environment=environment, binary=lab.asked.binary)
        contestant = lab.alone(found, kind)
        try:
            contestant.start()
            lab.progress.note(f"{model}: {lab.asked.requests} requests")
            result["figures"] = compare(send(contestant, lab.asked), admin)
        except (*scenario.ERRORS, http.client.HTTPException) as error:
            scenario.note_error(lab.progress, model, result, error)
        finally:
            contestant.stop()


def send(contestant, asked):
    """Sends all requests; returns the measurements by kind."""
    ten = [kind for kind, times in MIX.items() for _ in range(times)]
    planned = [(ten[number % len(ten)], number) for number in range(asked.requests)]
    measured = {kind: [] for kind in MIX}
    with concurrent.futures.ThreadPoolExecutor(asked.connections) as pool:
        for kind, answer in pool.map(lambda one: request(contestant.running.address, *one), planned):
            measured[kind].append(answer)
    return measured


def request(address, kind, number):
    begin = time.perf_counter_ns()
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)
    try:
        query = {"kind": kind, "ms": number * 7 % SLEEPS_MS + 1}
        connection.request("GET", f"/?{urllib.parse.urlencode(query)}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if (answer.status == 200) == (kind == FAILING):
        raise ValueError(f"{kind}: {answer.status} {body[:200]!r}")
    own = {} if kind == FAILING else json.loads(body)
    return kind, {**own, "client": time.perf_counter_ns() - begin}


# ---- comparison ---------------------------------------------------------------------------------------


def shown(admin, kind, requests):
    """Figures of a route, as soon as all requests are counted."""
    deadline = time.monotonic() + COUNT_SECONDS_MAX
    while True:
        connection = http.client.HTTPConnection(admin, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", f"/api/routes/{kind}")
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        figures = json.loads(body) if answer.status == 200 else None
        if (figures and figures["costs"]["requests"] >= requests) or time.monotonic() > deadline:
            return figures or {}
        time.sleep(POLL_SECONDS)


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[max(1, -(-len(ordered) * percent // 100)) - 1]


def compare(measured, admin):
    """(kind, figure, minimum, maximum, shown) of all figures; times in ms."""
    lines = []
    for kind, answers in measured.items():
        if answers:
            figures = shown(admin, kind, len(answers))
            lines += [[kind, *line] for line in of_kind(kind, answers, figures)]
    return lines


def of_kind(kind, answers, figures):
    costs = figures["costs"]
    failed = len(answers) if kind == FAILING else 0
    yield "requests", len(answers), len(answers), costs["requests"]
    yield "failed", failed, failed, costs["errors"]
    if kind == FAILING:
        return
    script, client, cpu, slept = ([answer[key] / 1e6 for answer in answers]
                                  for key in ("ns", "client", "cpu", "slept"))
    for percent in PERCENTILES:
        low, high = percentile(script, percent), percentile(client, percent)
        yield f"p{percent}, ms", low, high, costs["wall"][f"p{percent}_ns"] / 1e6
    yield "in a worker, ms", sum(script), sum(client), costs["run_ns"] / 1e6
    yield "CPU, ms", sum(cpu), sum(client) - sum(slept), costs["cpu"]["sum_ns"] / 1e6
    if kind == "list":
        found = sum(wait["ns"] for wait in figures["waits"] if wait["kind"] == "sleep")
        # The script measures its own calls around the wait, too.
        yield "slept, ms", sum(slept) * (1 - TOLERANCE), sum(slept), found / 1e6
    if kind == "product":
        calls = sum(one["calls"] for one in figures["statements"] if one["text"] == STATEMENT)
        yield "statements", STATEMENTS * len(answers), STATEMENTS * len(answers), calls
    if kind == "export":
        peaks = [answer["peak"] / 1e6 for answer in answers]
        yield "peak, MB", max(peaks), max(peaks), costs["peak_bytes_max"] / 1e6


# ---- table --------------------------------------------------------------------------------------------


def result_of(low, high, found):
    if low * (1 - TOLERANCE) <= found <= high * (1 + TOLERANCE):
        return "right"
    bound = low if found < low else high
    return f"{(found / bound - 1) * 100:+.1f} %" if bound else "wrong"


def table(raw):
    columns = ["model", "kind", "figure", "at least", "at most", "shown", "result"]
    lines = []
    for model, result in raw["results"].items():
        if result["error"]:
            lines.append([model, scenario.error_of(result), *[""] * 5])
        for kind, figure, *values in result["figures"]:
            digits = 0 if isinstance(values[0], int) else 2
            lines.append([model, kind, figure, *(report.number(each, digits) for each in values), result_of(*values)])
    return "\n\n".join([scenario.heading(raw, "Truth against shown"), report.table(columns, lines)])


if __name__ == "__main__":
    main()
