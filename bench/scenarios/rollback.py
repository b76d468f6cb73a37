#!/usr/bin/python3
"""Cost of the return to the checkpoint: pages written × faults elsewhere × requests before. Is there a cliff?

  bench/scenarios/rollback.py [--turns 3] [--only curve,after,kinds] [--output DIR]

curve   the same request repeatedly: it writes a number of the image's pages and reads a number of
        small files by mmap()
after   small requests after three requests that have written 10,000 pages, one by one
mixed   the mean of small and large requests, if each n-th one is large
kinds   side effects of usual requests: strings, C's memory, patterns, a locale, a child, pages that
        are not adjacent

One worker and one connection, with a new server for each point and round. µs per rollback are the
server's own count (rollback_us_total), read before and after each request: medians over the requests
of a round, then over the rounds, with the minimum and the maximum round. Faults are the worker's.
"searched" is the number of rollbacks that searched for written pages. The limit is 30 µs, and 0.6 µs
for each written page.
"""

import dataclasses
import http.client
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import control, report, scenario  # noqa: E402: the suite is next to this folder

WORKLOAD = scenario.SCENARIO_APPS / "rollback"
PAGES, FILES = (0, 10, 100, 1000, 10_000), (0, 1, 8)
HEAVY = "pages=10000"
WARM, MEASURED, AFTER = 40, 60, 64
SHOWN_AFTER = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
LIMIT_US, LIMIT_US_PER_PAGE = 30, 0.6
# Pages that every request of this application writes: 45 on 2026-11-22.
OWN_PAGES = 45


@dataclasses.dataclass(frozen=True)
class Point:
    part: str
    title: str
    pages: int            # Pages that a request writes, in addition to those of every request.
    first: tuple = ()     # Queries that are not measured.
    measured: tuple = ()  # Queries, one request each.


def again(part, title, pages, query):
    return Point(part, title, pages, (query,) * WARM, (query,) * MEASURED)


def mixed(every, heavy=HEAVY, what="10,000 pages"):
    turn, turns = (heavy,) + ("",) * (every - 1), MEASURED // every
    return Point("mixed", f"one of {every} writes {what}", 10_000 // every, turn * turns, turn * turns)


def points():
    yield from (again("curve", f"{pages:,} pages, {files} files", pages, f"pages={pages}&files={files}")
                for pages in PAGES for files in FILES)
    yield Point("after", "small, after three of 10,000 pages", 0, ("",) * WARM + (HEAVY,) * 3, ("",) * AFTER)
    yield from (mixed(every) for every in (2, 4, 10, 30))
    yield from (mixed(every, HEAVY + "&step=2", "every second of 20,000") for every in (2, 10))
    for title, pages, query in (
            ("a string of 3 MB", 768, "do=string&bytes=3145728"),
            ("a string of 32 MB", 8192, "do=string&bytes=33554432"),
            ("3 MB of malloc()", 768, "do=malloc&bytes=3145728"), ("IntlDateFormatter", 80, "do=date"),
            ("20 new patterns", 40, "do=patterns"), ("setlocale()", 12, "do=locale"), ("shell_exec()", 10, "do=child"),
            ("every second of 20,000 pages", 10_000, "pages=10000&step=2")):
        yield again("kinds", title, pages, query)


def main():
    made = scenario.parser(__doc__, rounds=0, connections=1)
    made.add_argument("--turns", type=scenario.positive, default=3, metavar="N",
                      help="rounds of all points: %(default)s")
    scenario.add_choice(made, "--only", ("curve", "after", "mixed", "kinds"))
    made.set_defaults(workers=1)
    scenario.run("rollback", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    asked = [point for point in points() if point.part in lab.asked.only.split(",")]
    for turn in range(lab.asked.turns):
        for point in asked:
            result = results.setdefault(point.title, {"part": point.part, "pages": point.pages, "error": None,
                                                      "rounds": []})
            lab.progress.note(f"round {turn + 1}: {point.title}")
            kind = scenario.samovar(f"rollback-{turn}", point.title, "checkpoint", "-d", "ffi.enable=1")
            contestant = lab.alone(scenario.workload(WORKLOAD), kind)
            try:
                contestant.start()
                result["rounds"].append(measure(contestant, point))
            except (*scenario.ERRORS, http.client.HTTPException) as error:
                scenario.note_error(lab.progress, point.title, result, error)
            finally:
                contestant.stop()


def measure(contestant, point):
    """µs of each rollback, in order, and the other counters."""
    connection = http.client.HTTPConnection(contestant.running.address)
    for query in point.first:
        get(connection, query)
    var = contestant.site.var
    before = control.at_rest(var)
    times, at = [], total(before)
    faults = minor_faults(before)
    for query in point.measured:
        get(connection, query)
        status = control.at_rest(var)
        times.append(round(total(status) - at, 1))
        at = total(status)
    image = status["image"]
    return {"us": times, "faults": minor_faults(status) - faults, "hot_pages": image["hot_pages"],
            "searched": image["searches_total"] - before["image"]["searches_total"],
            "reforks": image["refork_total"], "same_worker": pid(before) == pid(status)}


def get(connection, query):
    connection.request("GET", f"/?{query}")
    answer = connection.getresponse().read()
    if answer != b"done":
        raise ValueError(f"{query}: {answer[:200]!r}")


def total(status):
    return status["image"]["rollback_us_total"]


def pid(status):
    return status["workers"][0]["pid"]


def minor_faults(status):
    return int(pathlib.Path(f"/proc/{pid(status)}/stat").read_text().rsplit(")", 1)[1].split()[7])


# ---- tables ---------------------------------------------------------------------------------------


def limit(pages):
    return LIMIT_US + LIMIT_US_PER_PAGE * (OWN_PAGES + pages)


def typical(result, middle):
    """The middle of each round's requests: median over the rounds, minimum, maximum."""
    found = [middle(one["us"]) for one in result["rounds"]]
    return statistics.median(found), min(found), max(found)


def per_request(result, name):
    return statistics.median(one[name] / len(one["us"]) for one in result["rounds"])


def table(raw):
    parts = [scenario.heading(raw, "Cost of a rollback"), f"Medians of {raw['settings']['turns']} rounds."]
    for part, title, middle in (("curve", "The same request repeated", statistics.median),
                                ("kinds", "Other actions of requests", statistics.median),
                                ("mixed", "Large requests among small ones: means of all", statistics.mean)):
        found = {title: result for title, result in raw["results"].items() if result["part"] == part}
        if found:
            parts.append(f"**{title}**\n\n{part_table(found, middle)}")
    for title, result in raw["results"].items():
        if result["part"] == "after" and result["rounds"]:
            parts.append(f"**{title}**\n\n{after_table(result)}")
    return "\n\n".join(parts)


def part_table(results, middle):
    lines = []
    for title, result in results.items():
        if not result["rounds"]:
            lines.append([title, scenario.error_of(result), *[""] * 5])
            continue
        us, least, greatest = typical(result, middle)
        most = limit(result["pages"])
        lines.append([title, f"{us:.0f} ({least:.0f}–{greatest:.0f})", f"{most:.0f}", "" if us <= most else "**above**",
                      f"{per_request(result, 'faults'):.1f}", f"{100 * per_request(result, 'searched'):.0f} %",
                      str(max(one["reforks"] for one in result["rounds"]))])
    return report.table(["request", "µs (min–max)", "limit", "", "faults/request", "searched", "re-forks"], lines)


def after_table(result):
    lines = []
    for at in SHOWN_AFTER:
        times = [one["us"][at - 1] for one in result["rounds"] if len(one["us"]) >= at]
        lines.append([str(at), f"{statistics.median(times):.0f} ({min(times):.0f}–{max(times):.0f})"])
    return report.table(["small request", "µs (min–max)"], lines)


if __name__ == "__main__":
    main()
