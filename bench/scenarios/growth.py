#!/usr/bin/python3
"""Checks for growth: many requests to each execution model; memory and descriptors before, in between and after.

  bench/scenarios/growth.py                         10,000 requests to each
  bench/scenarios/growth.py --requests 1000000      for a release
  bench/scenarios/growth.py --servers checkpoint    only tests/apps/pristine: pages that change the
                                                    process in every way

Each worker is measured at rest, at some 20 moments (--output writes all of them). The verdict
compares the last quarter of the readings with the second, because the first is warm-up. PSS counts a
page that n processes share as one n-th for each. USS counts only pages that no other process shares.
Hot pages are pages that a rollback copies back.
"""

import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import control, growth, report, scenario  # noqa: E402: the suite is next to this folder

REQUESTS = 10_000
READINGS = 20
WARMUP_SECONDS = 0.5
# Figures of Samovar's status, kept with each reading.
IMAGE_FIGURES = ("hot_pages", "refork_total", "rollbacks_total", "rollback_us_p50", "rollback_us_p99")
# Key, title, workload, entry.
SERVERS = (
    ("script", "script, hello", scenario.APPS / "hello", "fpm"),
    ("resident", "resident, hello", scenario.APPS / "hello", "resident"),
    ("native", "resident, native request, hello", scenario.APPS / "hello", "native"),
    ("symfony-resident", "resident, Symfony's page", scenario.APPS / "symfony", "resident"),
    ("symfony-checkpoint", "checkpoint, Symfony's page", scenario.APPS / "symfony", "checkpoint"),
    ("checkpoint", "checkpoint, 21 pages that change the process", scenario.SCENARIO_APPS / "pristine", "checkpoint"),
)


def main():
    made = scenario.parser(__doc__, rounds=0, connections=16)
    made.add_argument("--requests", type=scenario.positive, default=REQUESTS, metavar="N",
                      help="requests to each server: %(default)s")
    scenario.add_choice(made, "--servers", [server[0] for server in SERVERS])
    scenario.run("growth", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    for key, title, folder, entry in SERVERS:
        if key not in lab.asked.servers.split(","):
            continue
        found = scenario.workload(folder)
        scenario.need_packages(found)
        results[key] = {"title": title, "error": None, "image": None, "readings": []}
        contestant = lab.alone(found, scenario.samovar(key, title, entry))
        try:
            lab.progress.note(f"{title}: starts")
            contestant.start()
            soak(contestant, lab, results[key])
        except scenario.ERRORS as error:
            scenario.note_error(lab.progress, title, results[key], error)
        finally:
            contestant.stop()


def soak(contestant, lab, result):
    """Sends the requests in slices of time, with a reading after each."""
    connections = lab.asked.connections
    warm = contestant.load(WARMUP_SECONDS, connections)
    seconds = growth.slice_seconds(lab.asked.requests, warm["rate"], READINGS)
    result["warmup_requests"], sent = warm["requests"], 0
    result["readings"].append(reading(contestant, sent))
    result.update(errors=0, hung=0)
    while sent < lab.asked.requests:
        answer = contestant.load(seconds, connections)
        sent += answer["requests"]
        result["errors"] += sum(answer["errors"].values())
        result["hung"] += answer["hung"]
        result["readings"].append(reading(contestant, sent))
        lab.progress.note(f"{result['title']}: {sent:,} of {lab.asked.requests:,} requests")
    result["image"] = control.status(contestant.site.var).get("image")


def reading(contestant, sent):
    """Resources that the server and its workers hold while no request is in flight."""
    return control.reading(contestant.site.var, contestant.running.roots(), sent, IMAGE_FIGURES)


def table(raw):
    lines = [line for result in raw["results"].values() for line in lines_of(result)]
    words = [words_of(result) for result in raw["results"].values()]
    head = ["server", "requests", "PSS of all, MiB", "a worker's PSS, MiB", "USS, MiB", "descriptors", "mappings",
            "hot pages", "re-forks", "rollback p50 µs", "p99 µs"]
    return "\n\n".join([
        scenario.heading(raw, "Growth over many requests"), "\n".join(words), report.table(head, lines)])


def words_of(result):
    if result["error"]:
        return f"- {result['title']}: {scenario.error_of(result)}"
    sent = result["readings"][-1]["requests"] if result["readings"] else 0
    faults = f"; {result['errors']} errors, {result['hung']} hung" if result.get("errors") or result.get("hung") else ""
    return f"- {result['title']}: {growth.verdict(result['readings'])}, {sent:,} requests{image_text(result)}{faults}"


def image_text(result):
    image = result["image"] or {}
    if not image.get("bytes"):
        return ""
    return f"; image {image['bytes'] / 2**20:.1f} MiB ({image.get('mode')}), booted in {image.get('boot_ms')} ms"


def lines_of(result):
    for r in growth.shown(result["readings"]):
        mean = functools.partial(growth.per_worker, r)
        # Models that never roll back have no such figures, and report 0.
        back = (mean("hot_pages"), r["rollback_us_p50"], r["rollback_us_p99"]) if r["rollbacks_total"] else (None,) * 3
        yield [result["title"], f"{r['requests']:,}", report.mebibytes(r["tree"]["pss_kib"]),
               report.mebibytes(mean("pss_kib")), report.mebibytes(mean("uss_kib")), report.number(mean("descriptors")),
               report.number(mean("mappings")), report.number(back[0]), report.number(r["refork_total"], 0),
               report.adaptive(back[1]), report.adaptive(back[2])]


if __name__ == "__main__":
    main()
