#!/usr/bin/python3
"""PSR-7 objects compared with plain superglobals: one resident handler, called in several ways; and classic ones.

  bench/scenarios/psr7.py [--workloads hello,echo] [--output DIR]

php-fpm           classic, with superglobals: the base of the gains
script            the same in Samovar's script model
superglobals      Samovar\\serve(function () { … }): $_SERVER, php://input, header(), echo
PSR-7             Samovar\\Runtime\\Psr15\\serve($handler): a request over the native one, with
                  values read on demand; responses made with nyholm/psr7
PSR-7 by Nyholm   objects of nyholm/psr7 alone, filled from the native request beforehand
PSR-7 by Guzzle   ServerRequest::fromGlobals() over superglobals, as on a server without a native
                  request
native            Samovar\\serve(function (Samovar\\Request $request) { … })
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import dataclasses  # noqa: E402: the suite is next to this folder

from suite import figures, report, scenario  # noqa: E402

WORKLOADS = ("hello", "echo")
APP = scenario.SCENARIO_APPS / "psr7"
PACKAGES = ("php-psr-http-message", "php-psr-http-factory", "php-guzzlehttp-psr7", "php-nyholm-psr7")
WAYS = ("psr15", "nyholm", "guzzle")  # Each has its own script.
PUBLISHED = {"psr15": "+17 %", "superglobals": "less"}
QUOTE = ('Published elsewhere: "PSR-7 objects against plain superglobals (then +17 % against less)". '
         "It is read as gains in requests/s over the classic model.")
CLASSIC = ("php-fpm", "script")  # The first one that was measured is the base of the gains.


def main():
    scenario.run_on_workloads("psr7", __doc__, WORKLOADS, measure_all, table)


def kinds():
    found = [scenario.php_fpm(), scenario.samovar("script", "script, superglobals", "fpm"),
             scenario.samovar("superglobals", "resident, superglobals", "resident"),
             scenario.samovar("psr15", "resident, PSR-7", "psr15"),
             scenario.samovar("nyholm", "resident, PSR-7 by Nyholm from the native request", "nyholm"),
             scenario.samovar("guzzle", "resident, PSR-7 by Guzzle from superglobals", "guzzle"),
             scenario.samovar("native", "resident, native request", "native")]
    return [kind for kind in found if kind]


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        found = scenario.workload(scenario.APPS / name, **{way: APP / f"{name}-{way}.php" for way in WAYS})
        lab.contest(dataclasses.replace(found, packages=(*found.packages, *PACKAGES)), kinds(), results)


def table(raw):
    return "\n\n".join([*scenario.sections(raw, "PSR-7 objects compared with superglobals", workload_table), QUOTE])


def workload_table(record):
    base = next(filter(None, (scenario.measured(record, key) for key in CLASSIC)), None)
    plain = scenario.measured(record, "superglobals")
    return report.table(
        ["way", "CPU µs/request (min–max)", "+ over superglobals, µs", "requests/s", "gain over classic",
         "published gain", "against superglobals", "p50 ms", "p99 ms", "errors"],
        [line(key, server, scenario.measured(record, key), base, plain) for key, server in record["servers"].items()])


def line(key, server, found, base, plain):
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * 8]
    over, against = "", ""
    if key not in (*CLASSIC, "superglobals"):
        over = report.signed(figures.difference(figures.middle(found, "cpu_us"), figures.middle(plain, "cpu_us")))
        against = scenario.percent(scenario.gain(found, plain))
    return [server["title"], report.with_spread(found["cpu_us"]), over, scenario.rate(found),
            "" if found == base else scenario.percent(scenario.gain(found, base)), PUBLISHED.get(key, ""), against,
            *scenario.latencies(found), scenario.faults(found)]


if __name__ == "__main__":
    main()
