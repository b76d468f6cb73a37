#!/usr/bin/python3
"""Effect of a deploy on visitors: lost requests and late responses.

  bench/scenarios/deploy.py [--deploys 5] [--rate 150] [--output DIR]
  bench/scenarios/deploy.py --ways checkpoint-reload,fpm-reload --deploys 2      does it work?

Requests Symfony's page at a constant rate, without coordinated omission. 4 of 100 requests wait for
300 ms first, so that some are in flight when a deploy begins. A deploy switches the link `current`
to a new release whose caches are filled, as `ln -sfn` and `mv -T` do. Then it does the following:

checkpoint, resident, script    samovar reload. The checkpoint's boot has rendered the page once; the
                                resident boot has not, unless --warmup / requests it
restart                         samovar stop, and samovar serve again
php-fpm, reload                 kill -USR2 of the master, as systemctl reload does: children are
                                killed at once
php-fpm, reload, waits          the same with process_control_timeout = 10s: the master waits for
                                the children
php-fpm, link alone             no signal: nginx follows the link in each request ($realpath_root).
                                Files that all releases share, here the framework, stay in opcache.
                                If each release had its own vendor/, the first responses would take
                                longer
no deploy                       the same load without a deploy

The servers take turns, A B C, A B C, … A turn is some seconds of load with one deploy, each with a
new release. One further turn with a deploy measures memory. Measuring takes CPU time, so the
latencies of that turn do not count. Its lost requests do.
"""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import figures, measure, releases, report, scenario  # noqa: E402: the suite is next to this folder
from suite.deploys import WAYS, Served  # noqa: E402

APP = scenario.SCENARIO_APPS / "deploy"
DEPLOYS = 5
RATE = 150
SECONDS = 5
# With 6 slow requests per second, two are in flight at a time: a page must not have to wait for
# them.
WORKERS = 8
# A deploy begins after two seconds at the latest, and its effect must show in the remaining time.
SECONDS_MIN = 3
# Planned durations.
START_SECONDS, BUILD_SECONDS = 4, 1
PAGE, SLOW = "page", "slow"
COLUMNS = ["deploy", "requests", "lost", "p50 ms", "p99 ms", "worst ms (min–max)", "slow, worst ms", "command s",
           "new release after s", "old after new", "PSS MiB, before → maximum"]
NOTE = ("Latencies of a page: p50 and p99 are medians of the turns; worst is the median of each turn's slowest page, "
        "with minimum and maximum. Slow requests are those that wait for 300 ms. Command and new release count from "
        "the switch of the link. Old after new: responses of the old release after the first one of the new.")


def measure_all(lab, results):
    workload = scenario.workload(APP)
    scenario.need_packages(workload)
    kinds = {key: WAYS[key].kind(key) for key in lab.asked.ways.split(",")}
    all_served = [Served(lab, workload, WAYS[key], kind) for key, kind in kinds.items() if kind]
    results["deploy"] = {"description": workload.description, "servers": {
        served.kind.key: served.record for served in all_served}}
    turns = lab.asked.deploys + 1
    lab.progress.planned += len(all_served) * (START_SECONDS + turns * turn_seconds(lab)) + BUILD_SECONDS * (turns + 1)
    try:
        made = build_releases(lab, turns + 1)
        for served in all_served:
            lab.progress.step(f"{served.kind.key} starts", START_SECONDS)
            attempt(lab, served, lambda: served.start(made[0]))
        for number, release in enumerate(made[1:], 1):
            weighed = number == turns
            for served in all_served:
                if served.record["error"]:
                    continue
                text = "memory" if weighed else f"deploy {number} of {lab.asked.deploys}"
                lab.progress.step(f"{served.kind.key}: {text}", turn_seconds(lab))
                time.sleep(measure.SETTLE_SECONDS)
                attempt(lab, served, lambda: served.record["rounds"].append(served.turn(number, release, weighed)))
    finally:
        for served in all_served:
            stop(served)


def turn_seconds(lab):
    return lab.asked.seconds + measure.SETTLE_SECONDS


def build_releases(lab, count):
    made = [lab.folder / "releases" / f"r{number}" for number in range(count)]
    lab.progress.step(f"building {count} releases", BUILD_SECONDS * count)
    made[0].parent.mkdir()
    for folder in made:
        releases.build(APP, folder, folder.name)
    return made


def attempt(lab, served, step):
    """Runs a step. An error of one server is recorded in its row, and the others continue."""
    try:
        step()
    except (*scenario.ERRORS, subprocess.SubprocessError) as error:
        scenario.note_error(lab.progress, served.kind.key, served.record, error)
        stop(served)


def stop(served):
    if served.running is not None:
        served.running.stop()
        served.running = None


def due(rounds):
    """Number of requests that should have got a response."""
    return sum(r["requests"] + sum(r["errors"].values()) + r["hung"] for r in rounds)


def lost(rounds):
    """Requests without a good response by kind: a status as its number, the other errors by name, hung ones."""
    kinds = {}
    for r in rounds:
        bad = {status: n for status, n in r["statuses"].items() if not 200 <= int(status) < 400}
        errors = {name: n for name, n in r["errors"].items() if name != "status"}
        for name, n in {**bad, **errors, "hung": r["hung"]}.items():
            if n:
                kinds[name] = kinds.get(name, 0) + n
    return kinds


def lost_words(rounds):
    kinds = lost(rounds)
    if not kinds:
        return "0"
    return f"{sum(kinds.values()):,}: " + ", ".join(f"{n:,} × {name}" for name, n in sorted(kinds.items()))


def latency(rounds, group, name):
    """One of a class's latencies in each turn."""
    return figures.spread([figures.place(r, ("classes", group, "latency_us", name)) for r in rounds])


def seconds_of(rounds, name):
    """A time of the deploys: median with minimum and maximum."""
    return report.with_spread(figures.spread([figures.place(r, ("deploy", name)) for r in rounds]))


def with_spread_ms(found):
    return report.with_spread({key: value / 1000 for key, value in found.items()} if found else None)


def line(server):
    counted = [r for r in server["rounds"] if not r["weighed"]]
    if not counted:
        return [server["title"], scenario.error_of(server), *[""] * (len(COLUMNS) - 2)]
    title = server["title"] + (" (then an error, see below)" if server["error"] else "")

    def middle(name):
        return report.milliseconds((latency(counted, PAGE, name) or {}).get("median"))

    deployed = [r["deploy"] for r in server["rounds"] if r["deploy"]]
    return [title, f"{due(server['rounds']):,}", lost_words(server["rounds"]), middle("p50"), middle("p99"),
            with_spread_ms(latency(counted, PAGE, "max")),
            report.milliseconds((latency(counted, SLOW, "max") or {}).get("max")),
            seconds_of(counted, "command_s"), seconds_of(counted, "new_after_s"),
            str(sum(deploy["old_afterwards"] for deploy in deployed)) if deployed else "–",
            weight_words(server["rounds"])]


def weight_words(rounds):
    found = next((r["pss_kib"] for r in rounds if r["pss_kib"]), None)
    return f"{report.mebibytes(found['before'])} → {report.mebibytes(found['greatest'])}" if found else "–"


def table(raw):
    asked = raw["settings"]
    parts = [scenario.heading(raw, "Effect of a deploy on visitors")]
    record = raw["results"].get("deploy")
    if record:
        late = [f"- {server['title']}: {scenario.error_of(server)}" for server in record["servers"].values()
                if server["error"] and server["rounds"]]
        parts += [f"{record['description']}. {asked['rate']} requests/s; deploys of each server: {asked['deploys']}, "
                  f"and one for memory, each in {asked['seconds']:g} s of load.",
                  report.table(COLUMNS, [line(server) for server in record["servers"].values()]), NOTE, "\n".join(late)]
    return "\n\n".join(filter(None, parts))


def main():
    made = scenario.parser(__doc__, rounds=0)
    made.set_defaults(workers=WORKERS)
    add = made.add_argument
    add("--deploys", type=scenario.positive, default=DEPLOYS, metavar="N", help="deploys of each server: %(default)s")
    add("--rate", type=scenario.positive, default=RATE, metavar="N", help="requests/s: %(default)s")
    add("--seconds", type=float, default=SECONDS, metavar="N",
        help=f"load around each deploy, at least {SECONDS_MIN}: %(default)s")
    scenario.add_choice(made, "--ways", WAYS)
    asked = made.parse_args()
    if asked.seconds < SECONDS_MIN:
        made.error(f"--seconds: at least {SECONDS_MIN}")
    scenario.run("deploy", asked, measure_all, table)


if __name__ == "__main__":
    main()
