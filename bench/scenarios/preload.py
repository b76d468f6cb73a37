#!/usr/bin/python3
"""Gain of opcache.preload alone: the script model without and with the application's classes preloaded.

  bench/scenarios/preload.py [--workloads bootstrap,symfony] [--output DIR]

Preloads the classes that the autoloader loads for one request of the page. They are determined on
the command line before the server starts. Everything else is as in `make bench`. Published
elsewhere: about +10 % requests/s.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import dataclasses  # noqa: E402: the suite is next to this folder
import os  # noqa: E402

from suite import figures, measure, report, scenario, servers  # noqa: E402

WORKLOADS = ("bootstrap", "symfony")
APP = scenario.SCENARIO_APPS / "preload"
PUBLISHED = "+10 %"
# Each server, and its variant with preloading.
PAIRS = (("classic", "classic-preload"), ("php-fpm", "php-fpm-preload"))
COLLECT_SECONDS_MAX = 120


def main():
    scenario.run_on_workloads("preload", __doc__, WORKLOADS, measure_all, table)


def kinds():
    classic = scenario.samovar("classic", "Samovar, script", "fpm")
    fpm = scenario.php_fpm()
    return [kind for kind in (fpm, fpm and preloading(fpm), classic, preloading(classic)) if kind]


def preloading(kind):
    """The same server, with the classes of its application preloaded."""
    def launch(site):
        made = kind.launch(site)
        collect(site)
        return dataclasses.replace(made, files={**made.files, site.var / "ini/98-preload.ini": preload_ini()})
    return dataclasses.replace(kind, key=f"{kind.key}-preload", title=f"{kind.title}, preloaded", launch=launch)


def preload_ini():
    # opcache refuses to preload as root unless the user is configured.
    user = "opcache.preload_user = root\n" if os.geteuid() == 0 else ""
    return f"opcache.preload = {APP}/preload.php\n{user}"


def collect(site):
    """Renders the page once, on the command line; the files of its classes are then listed in the server's folder."""
    measure.run_php(["php8.2", str(APP / "collect.php"), str(site.entry)], APP, servers.prepare(site),
                    COLLECT_SECONDS_MAX)


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        found = scenario.workload(scenario.APPS / name)
        lab.contest(found, kinds(), results)
        lists = (lab.folder / name).glob("*-preload/app/preload.json")
        results[name]["classes"] = [file.read_text().count(".php") for file in lists]


def table(raw):
    parts = [scenario.heading(raw, "Gain of opcache.preload alone")]
    parts += [f"**{name}**: {record['description']}; {max(record.get('classes') or [0])} files preloaded\n\n"
              f"{workload_table(record)}" for name, record in raw["results"].items()]
    return "\n\n".join(parts)


def workload_table(record):
    lines = [line for plain, preloaded in PAIRS if plain in record["servers"]
             for line in pair_lines(record, plain, preloaded)]
    return report.table(["server", "CPU µs/request (min–max)", "requests/s", "gain in requests/s", "gain in CPU",
                         "published gain", "p50 ms", "p99 ms", "PSS MiB", "errors"], lines)


def pair_lines(record, plain, preloaded):
    base = scenario.measured(record, plain)
    for key in (plain, preloaded):
        server, found = record["servers"][key], scenario.measured(record, key)
        if found is None:
            yield [server["title"], scenario.error_of(server), *[""] * 8]
            continue
        gains = ["", "", ""] if key == plain else [
            scenario.percent(scenario.gain(found, base)), scenario.percent(scenario.gain(found, base, "cpu_us")),
            PUBLISHED]
        yield [server["title"], report.with_spread(found["cpu_us"]), scenario.rate(found), *gains,
               *scenario.latencies(found), report.mebibytes(figures.middle(found, "pss_kib")), scenario.faults(found)]


if __name__ == "__main__":
    main()
