"""What the experiments of bench/scenarios share: options, contests with entries of their own, the output.

A scenario hands two functions to run(): one measures, with a Lab, and fills a table of results; the other turns them
into Markdown. So figures that were recorded can be shown again without a server.
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
FORMAT = 1  # Of the raw JSON: raised when older ones can no longer be read.
ERRORS = (LaunchError, ClientError, OSError, ValueError, KeyError)  # What goes wrong with one server.


@dataclasses.dataclass
class Lab:
    """Where a scenario measures: what was asked for, a folder for files, where progress is said."""

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
    """The type of an option: a file that is there."""
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
            help="rounds of each measurement: %(default)s. Fewer are not for publishing")
        add("--seconds", type=float, default=seconds, metavar="N", help="length of a round: %(default)s")
    add("--workers", type=int, default=2, metavar="N", help="PHP workers of each server: %(default)s")
    add("--connections", type=int, default=connections, metavar="N", help="keep-alive connections: %(default)s")
    add("--output", type=pathlib.Path, metavar="DIR", help="write all figures there, as NAME.json, and the table")
    add("--report", type=pathlib.Path, metavar="NAME.json", help="print the table of recorded figures, and leave")
    return made


def some_of(known):
    """The type of an option: names of these, with commas between."""
    def check(text):
        unknown = set(text.split(",")) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
        return text
    return check


def add_choice(made, option, known, of="%(default)s"):
    """An option that takes some of these; all of them if it is not given."""
    made.add_argument(option, type=some_of(known), default=",".join(known), metavar="A,B", help=f"of {of}")


def positive(text):
    """The type of an option: a whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1")
    return int(text)


def settings(asked):
    """A scenario's rounds are the closed loop, and nothing besides."""
    return Settings(asked.rounds, asked.seconds, asked.workers, (asked.connections,), False, "0", False, None, (),
                    None, ())


def run_on_workloads(name, description, known, measure_all, table):
    """The whole of a scenario that has --workloads and no other option of its own."""
    made = parser(description)
    add_choice(made, "--workloads", known, "both: %(default)s")
    run(name, made.parse_args(), measure_all, table)


def run(name, asked, measure_all, table):
    """Measures, prints the table, writes the raw figures; Ctrl-C stops the servers and shows what there is."""
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
        print("interrupted: this is what there is", file=sys.stderr)
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
        # First what cannot be made again.
        output.mkdir(parents=True, exist_ok=True)
        (output / f"{name}.json").write_text(json.dumps(raw, indent=1) + "\n")
    text = table(raw)
    print(text)
    if output:
        (output / f"{name}.md").write_text(text + "\n")


# ---- workloads and servers ------------------------------------------------------------------------


def workload(folder, **entries):
    """The workload of that folder, with further entries, given by their whole paths."""
    folder = pathlib.Path(folder)
    found = workloads.parse(folder.name, folder, (folder / "workload.toml").read_text())
    relative = {key: os.path.relpath(path, folder) for key, path in entries.items()}
    return dataclasses.replace(found, entries={**found.entries, **relative})


def need_packages(found):
    missing = machine.missing_packages(found.packages)
    if missing:
        sys.exit(f"{found.name}: Debian packages are missing\nhint: apt-get install {' '.join(missing)}")


def samovar(key, title, entry, *arguments, environment=None, binary=None):
    """Samovar with that entry, further arguments and further variables; binary: another build of it."""
    def launch(site):
        made = servers.samovar_launch(site)
        program, *others = made.commands[0]
        return dataclasses.replace(made, commands=((binary or program, *others, *arguments),),
                                   environment={**made.environment, **(environment or {})})
    return servers.Kind(key, title, entry, "samovar", "make build", "here", launch)


def php_fpm(key="php-fpm", title="nginx + php-fpm", entry="fpm", pool=""):
    """nginx and php-fpm; pool is what the pool's configuration says besides. None where it is not installed."""
    if not (shutil.which("nginx") and shutil.which("php-fpm8.2")):
        print(f"{title} is missing and left out\nhint: {servers.INSTALL_FPM}", file=sys.stderr)
        return None

    def launch(site):
        made = servers.fpm_launch(site, site.workers)
        file = site.var / "fpm.conf"
        return dataclasses.replace(made, files={**made.files, file: made.files[file] + pool})
    return servers.Kind(key, title, entry, "php-fpm", servers.INSTALL_FPM, "here", launch)


def ask(contestant, seconds_max, **query):
    """What the page of a server says of itself, as JSON, to a query."""
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
    """The figures of a server's rounds, or None where it was not measured."""
    server = record["servers"].get(key)
    rounds = figures.rounds_of(server, "closed") if server else []
    return figures.summarise(rounds) if rounds else None


def gain(found, base, name="rate"):
    """How much more a server does than the base: 0.1 is +10 %. Less CPU per request is more."""
    ours, theirs = figures.middle(found, name), figures.middle(base, name)
    quotient = figures.ratio(ours, theirs) if name == "rate" else figures.ratio(theirs, ours)
    return None if quotient is None else quotient - 1


def times(server, base, name):
    """The median of the rounds' own ratios, and the least and the greatest."""
    mine, theirs = ([figures.place(turn, figures.PLACES[name]) for turn in figures.rounds_of(of, "closed")]
                    for of in (server, base))
    ratios = sorted(one / other for one, other in zip(mine, theirs) if one and other)
    if not ratios:
        return ""
    return f"{ratios[len(ratios) // 2]:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def percent(value):
    return "–" if value is None else f"{value:+.0%}".replace("%", " %")


def note_error(progress, title, result, error):
    """Keeps what went wrong with one server; the others go on."""
    result["error"] = measure.words_of(error)
    progress.note(f"{title}: {result['error']}")


def error_of(server):
    """A server's error in a cell: one line, no bars."""
    return "**error**: " + " ".join((server.get("error") or "not measured").split()).replace("|", "/")


def sections(raw, title, workload_table):
    """The heading, and for each workload its description and its table."""
    return [heading(raw, title), *(f"**{name}**: {record['description']}\n\n{workload_table(record)}"
                                   for name, record in raw["results"].items())]


def rate(found):
    """The cell of requests/s."""
    return report.number(figures.middle(found, "rate"), 0)


def latencies(found):
    """The cells of p50 and p99."""
    return [report.milliseconds(figures.middle(found, name)) for name in ("p50", "p99")]


def faults(found):
    """The cell of errors: hung requests are some, too."""
    return str(found["errors"] + found["hung"])


def row_beside(record, key, server, base):
    """A server's row beside the base: CPU, × CPU, rate, latencies, × p99, errors. Without a base, ratios are empty."""
    found = measured(record, key)
    if found is None:
        return [server["title"], error_of(server), *[""] * 6]
    ratios = [times(server, base, name) if base else "" for name in ("cpu_us", "p99")]
    return [server["title"], report.with_spread(found["cpu_us"]), ratios[0], rate(found), *latencies(found), ratios[1],
            faults(found)]


def heading(raw, title):
    """What stands above the table: what it is, and on what it was measured."""
    asked = raw["settings"]
    rounds = f", median of {asked['rounds']} × {asked['seconds']:g} s" if "rounds" in asked else ""
    state = "" if raw["complete"] else "\n\n**Interrupted: some of it was not measured.**"
    return (f"## {title}\n\n{raw['started'][:10]}, {report.machine_line(raw)}, PHP {raw['versions'].get('php')}. "
            f"{asked['workers']} workers, {asked['connections']} connections{rounds}. `{raw['command']}`{state}")
