"""Shared code of the experiments in bench/scenarios: options, contests with their own entries, the output.

A scenario passes two functions to run(): one measures with a Lab and fills a table of results, the other turns the
results into Markdown. So recorded figures can be shown again without a server.
"""

import argparse
import dataclasses
import http.client
import json
import os
import pathlib
import shlex
import shutil
import sys
import urllib.parse

from . import figures, machine, measure, report, scratch, servers, session, workloads
from .client import ClientError
from .launch import LaunchError, free_port
from .options import Settings
from .progress import Progress

BENCH = pathlib.Path(__file__).resolve().parents[1]
APPS = BENCH / "apps"
SCENARIO_APPS = BENCH / "scenarios/apps"
FORMAT = 1  # Of the raw JSON: increased when older files can no longer be read.
ERRORS = (LaunchError, ClientError, OSError, ValueError, KeyError)  # Errors of one server.


@dataclasses.dataclass
class Lab:
    """Context of a scenario's measurement: the options, a folder for files, the output of progress."""

    asked: argparse.Namespace
    folder: pathlib.Path
    progress: Progress

    def contest(self, workload, kinds, results, finish=None, environment=None):
        """Measures the servers in turn; the record is in results before the first round, and fills.

        finish is called with each contestant after its last round, while it still runs. environment is for all.
        """
        need_packages(workload)
        contest = measure.Contest(workload, kinds, settings(self.asked), self.folder, environment or {},
                                  self.progress)
        results[workload.name] = contest.record
        self.progress.planned += measure.planned_seconds(workload, kinds, settings(self.asked))
        try:
            contest.start()
            contest.closed_loop()
            for contestant in contest.taking_part("closed") if finish else ():
                with contest.attempt(contestant):
                    finish(contestant)
        finally:
            for contestant in contest.contestants:
                contestant.stop()

    def alone(self, workload, kind):
        """One server, for a scenario that does not measure in rounds."""
        site = servers.Site(workload.name, workload.entry(kind.entry), self.folder / "alone" / kind.key, free_port(),
                            self.asked.workers, self.asked.connections, {})
        return measure.Contestant(kind, workload, site)


def existing(text):
    """The type of an option: an existing file."""
    path = pathlib.Path(text).resolve()
    if not path.is_file():
        raise ValueError(text)
    return path


def parser(description, rounds=3, seconds=3, connections=64):
    """The options that all scenarios have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    if rounds:
        add("--rounds", type=int, default=rounds, metavar="N",
            help="rounds of each measurement: %(default)s; do not publish results of fewer")
        add("--seconds", type=float, default=seconds, metavar="N", help="length of a round: %(default)s")
    add("--workers", type=int, default=2, metavar="N", help="PHP workers of each server: %(default)s")
    add("--connections", type=int, default=connections, metavar="N", help="keep-alive connections: %(default)s")
    add("--output", type=pathlib.Path, metavar="DIR", help="folder for all figures, as NAME.json, and the table")
    add("--report", type=pathlib.Path, metavar="NAME.json", help="print the table of recorded figures, and exit")
    return made


def some_of(known):
    """The type of an option: some of these names, separated by commas."""
    def check(text):
        unknown = set(text.split(",")) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
        return text
    return check


def add_choice(made, option, known, of="%(default)s"):
    """An option that takes some of these; default: all of them."""
    made.add_argument(option, type=some_of(known), default=",".join(known), metavar="A,B", help=f"of {of}")


def positive(text):
    """The type of an option: a whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: not a whole number from 1")
    return int(text)


def settings(asked):
    """Settings of a scenario, whose rounds are only the closed loop."""
    return Settings(asked.rounds, asked.seconds, asked.workers, (asked.connections,), False, "0", False, None, (),
                    None, ())


def run_on_workloads(name, description, known, measure_all, table):
    """A complete scenario that has only the option --workloads."""
    made = parser(description)
    add_choice(made, "--workloads", known, "both: %(default)s")
    run(name, made.parse_args(), measure_all, table)


def run(name, asked, measure_all, table):
    """Measures, prints the table, writes the raw figures; Ctrl-C stops the servers and shows the figures so far."""
    if asked.report:
        print(table(json.loads(asked.report.read_text())))
        return
    session.need_tools()
    session.end_at_signals()
    raw = begin(name, asked)
    folder = scratch.make(f"samovar-{name}-")
    try:
        measure_all(Lab(asked, folder, Progress(0)), raw["results"])
        raw["complete"] = True
    except KeyboardInterrupt:
        print("interrupted: partial results", file=sys.stderr)
    finally:
        scratch.drop(folder)
    raw["ended"] = session.now()
    print_and_write(name, raw, asked.output, table)
    if not raw["complete"]:
        sys.exit(130)


def begin(name, asked):
    shown = {key: str(value) if isinstance(value, pathlib.Path) else value for key, value in vars(asked).items()}
    return {"format": FORMAT, "scenario": name, "complete": False, "started": session.now(), "ended": None,
            "command": shlex.join([f"bench/scenarios/{name}.py", *sys.argv[1:]]), "settings": shown,
            "machine": machine.describe(), "versions": machine.versions(), "php_settings": servers.PHP_SETTINGS,
            "results": {}}


def print_and_write(name, raw, output, table):
    if output:
        # First the data that cannot be created again.
        output.mkdir(parents=True, exist_ok=True)
        (output / f"{name}.json").write_text(json.dumps(raw, indent=1) + "\n")
    text = table(raw)
    print(text)
    if output:
        (output / f"{name}.md").write_text(text + "\n")


# ---- workloads and servers ------------------------------------------------------------------------


def workload(folder, **entries):
    """The workload of that folder, with further entries, given by their full paths."""
    folder = pathlib.Path(folder)
    found = workloads.parse(folder.name, folder, (folder / "workload.toml").read_text())
    relative = {key: os.path.relpath(path, folder) for key, path in entries.items()}
    return dataclasses.replace(found, entries={**found.entries, **relative})


def need_packages(found):
    missing = machine.missing_packages(found.packages)
    if missing:
        sys.exit(f"{found.name}: missing Debian packages\nhint: run apt-get install {' '.join(missing)}")


def samovar(key, title, entry, *arguments, environment=None, binary=None):
    """Samovar with that entry, further arguments and further variables; binary: another build of it."""
    def launch(site):
        made = servers.samovar_launch(site)
        program, *others = made.commands[0]
        return dataclasses.replace(made, commands=((binary or program, *others, *arguments),),
                                   environment={**made.environment, **(environment or {})})
    return servers.Kind(key, title, entry, "samovar", "make build", "here", launch)


def php_fpm(key="php-fpm", title="nginx + php-fpm", entry="fpm", pool=""):
    """nginx and php-fpm; pool holds further settings of the pool. None if it is not installed."""
    if not (shutil.which("nginx") and shutil.which("php-fpm8.2")):
        print(f"{title} is missing and is skipped\nhint: run {servers.INSTALL_FPM}", file=sys.stderr)
        return None

    def launch(site):
        made = servers.fpm_launch(site, site.workers)
        file = site.var / "fpm.conf"
        return dataclasses.replace(made, files={**made.files, file: made.files[file] + pool})
    return servers.Kind(key, title, entry, "php-fpm", servers.INSTALL_FPM, "here", launch)


def ask(contestant, seconds_max, **query):
    """The JSON of a server's page for a query."""
    connection = http.client.HTTPConnection(contestant.running.address, timeout=seconds_max)
    try:
        connection.request("GET", f"/?{urllib.parse.urlencode(query)}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise ValueError(f"{query}: {answer.status} {body[:200]!r}")
    return json.loads(body)


# ---- tables ---------------------------------------------------------------------------------------


def measured(record, key):
    """The figures of a server's rounds, or None if it was not measured."""
    server = record["servers"].get(key)
    rounds = figures.rounds_of(server, "closed") if server else []
    return figures.summarise(rounds) if rounds else None


def gain(found, base, name="rate"):
    """Gain of a server compared with the base: 0.1 is +10 %. For CPU per request, less is a gain."""
    ours, theirs = figures.middle(found, name), figures.middle(base, name)
    quotient = figures.ratio(ours, theirs) if name == "rate" else figures.ratio(theirs, ours)
    return None if quotient is None else quotient - 1


def times(server, base, name):
    """Median, minimum and maximum of the rounds' own ratios."""
    mine, theirs = ([figures.place(turn, figures.PLACES[name]) for turn in figures.rounds_of(of, "closed")]
                    for of in (server, base))
    ratios = sorted(one / other for one, other in zip(mine, theirs) if one and other)
    if not ratios:
        return ""
    return f"{ratios[len(ratios) // 2]:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def percent(value):
    return "–" if value is None else f"{value:+.0%}".replace("%", " %")


def note_error(progress, title, result, error):
    """Records the error of one server; the others continue."""
    result["error"] = measure.words_of(error)
    progress.note(f"{title}: {result['error']}")


def error_of(server):
    """A server's error for a cell: one line, no bars."""
    return "**error**: " + " ".join((server.get("error") or "not measured").split()).replace("|", "/")


def sections(raw, title, workload_table):
    """The heading, and for each workload its description and its table."""
    return [heading(raw, title), *(f"**{name}**: {record['description']}\n\n{workload_table(record)}"
                                   for name, record in raw["results"].items())]


def rate(found):
    """The cell with requests/s."""
    return report.number(figures.middle(found, "rate"), 0)


def latencies(found):
    """The cells with p50 and p99."""
    return [report.milliseconds(figures.middle(found, name)) for name in ("p50", "p99")]


def faults(found):
    """The cell with errors, including hung requests."""
    return str(found["errors"] + found["hung"])


def row_beside(record, key, server, base):
    """A server's row compared with the base: CPU, × CPU, rate, latencies, × p99, errors. Ratios are empty without a
    base.
    """
    found = measured(record, key)
    if found is None:
        return [server["title"], error_of(server), *[""] * 6]
    ratios = [times(server, base, name) if base else "" for name in ("cpu_us", "p99")]
    return [server["title"], report.with_spread(found["cpu_us"]), ratios[0], rate(found), *latencies(found), ratios[1],
            faults(found)]


def heading(raw, title):
    """The text above the table: its title, and the conditions of the measurement."""
    asked = raw["settings"]
    rounds = f", median of {asked['rounds']} × {asked['seconds']:g} s" if "rounds" in asked else ""
    state = "" if raw["complete"] else "\n\n**Interrupted: results are incomplete.**"
    return (f"## {title}\n\n{raw['started'][:10]}, {report.machine_line(raw)}, PHP {raw['versions'].get('php')}. "
            f"{asked['workers']} workers, {asked['connections']} connections{rounds}. `{raw['command']}`{state}")
