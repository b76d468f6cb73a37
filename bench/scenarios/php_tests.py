#!/usr/bin/python3
"""Run time of a Symfony test suite: phpunit, phpunit with process isolation, one phpunit per processor, samovar test.

  bench/scenarios/php_tests.py [--classes 50] [--tests 20] [--requests 3] [--rounds 3] [--samovar FILE] [--output DIR]

Generates classes of functional tests for examples/symfony. Each test boots the kernel and handles requests. All
runners have the same processors and run in turn; the table has the medians. "One phpunit per processor" divides the
classes between processes, as paratest does: parallel, but without isolation. Process isolation is measured with the
tests of --isolated classes, and its time is multiplied.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
APP = WORKSPACE / "bench/scenarios/apps/php_tests"
PAGES = (("/", 200), ("/?name=tea", 200))
CONFIGURATION = """<?xml version="1.0"?>
<phpunit bootstrap="{app}/bootstrap.php" colors="false">
  <testsuites><testsuite name="all"><directory>{folder}</directory></testsuite></testsuites>
</phpunit>
"""
RUN_SECONDS_MAX = 1800


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--classes", type=int, default=50, metavar="N", help="classes of tests: %(default)s")
    add("--tests", type=int, default=20, metavar="N", help="tests per class: %(default)s")
    add("--requests", type=int, default=3, metavar="N", help="requests per test: %(default)s")
    add("--rounds", type=int, default=3, metavar="N", help="runs of each runner: %(default)s")
    add("--isolated", type=int, default=5, metavar="N", help="classes for process isolation: %(default)s")
    add("--samovar", type=pathlib.Path, default=WORKSPACE / "target/release/samovar", metavar="FILE")
    add("--output", type=pathlib.Path, metavar="DIR", help="folder for php_tests.json and php_tests.md")
    asked = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="samovar-php-tests-") as folder:
        times = measure(pathlib.Path(folder), asked)
    text = table(times, asked)
    print(text)
    if asked.output:
        asked.output.mkdir(parents=True, exist_ok=True)
        (asked.output / "php_tests.json").write_text(json.dumps(times, indent=1) + "\n")
        (asked.output / "php_tests.md").write_text(text)


def generate(folder, classes, asked):
    """Writes the tests of one process; returns its phpunit.xml."""
    folder.mkdir(parents=True)
    for number in classes:
        methods = ""
        for test in range(asked.tests):
            path, status = PAGES[test % len(PAGES)]
            methods += f"""    public function testPage{test}(): void
    {{
        $this->assertPage('{path}', {status}, {asked.requests});
    }}
"""
        name = f"Pages{number}Test"
        text = f"<?php\n\nfinal class {name} extends Bench\\FunctionalTestCase\n{{\n{methods}}}\n"
        (folder / f"{name}.php").write_text(text)
    file = folder.parent / f"{folder.name}.xml"
    file.write_text(CONFIGURATION.format(app=APP, folder=folder))
    return file


def measure(folder, asked):
    processors = len(os.sched_getaffinity(0))
    everything = generate(folder / "all", range(asked.classes), asked)
    few = generate(folder / "few", range(min(asked.isolated, asked.classes)), asked)
    shares = [generate(folder / f"share{n}", range(n, asked.classes, processors), asked) for n in range(processors)]
    runners = {
        "phpunit": lambda: [["phpunit", "-c", everything]],
        "phpunit per processor": lambda: [["phpunit", "-c", file] for file in shares],
        "samovar": lambda: [test(asked, "class", everything)],
        "samovar by test": lambda: [test(asked, "test", everything)],
        "isolation": lambda: [["phpunit", "--process-isolation", "-c", few]],
    }
    # The first run compiles the container.
    run([["phpunit", "-c", few]], folder)
    times = {name: [] for name in runners}
    for _ in range(asked.rounds):
        for name, commands in runners.items():
            factor = asked.classes / min(asked.isolated, asked.classes) if name == "isolation" else 1
            times[name].append(run(commands(), folder) * factor)
    return times


def test(asked, by, file):
    return [asked.samovar.resolve(), "test", "--boot", APP / "boot.php", "--by", by, "--", "phpunit", "-c", file]


def run(commands, folder):
    """Seconds until all commands have ended."""
    environment = {**os.environ, "SAMOVAR_BENCH_FOLDER": str(folder)}
    began = time.monotonic()
    started = [subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True) for command in commands]
    for process in started:
        output, _ = process.communicate(timeout=RUN_SECONDS_MAX)
        if process.returncode != 0:
            sys.exit(f"php_tests: {process.args[0]} ended with status {process.returncode}:\n{output[-2000:]}")
    return time.monotonic() - began


def table(times, asked):
    titles = {
        "isolation": "phpunit --process-isolation",
        "phpunit": "phpunit",
        "phpunit per processor": "one phpunit per processor",
        "samovar": "samovar test",
        "samovar by test": "samovar test --by test",
    }
    medians = {name: statistics.median(found) for name, found in times.items()}
    lines = [
        f"{asked.classes * asked.tests} tests in {asked.classes} classes, {asked.requests} requests each, "
        f"{len(os.sched_getaffinity(0))} processors, {asked.rounds} rounds",
        "",
        "| runner | seconds | times the speed of process isolation | isolation |",
        "|---|---|---|---|",
    ]
    isolated = {"isolation": "each test", "samovar": "each class", "samovar by test": "each test"}
    for name, title in titles.items():
        speed = medians["isolation"] / medians[name]
        lines.append(f"| {title} | {medians[name]:.2f} | {speed:.1f} | {isolated.get(name, 'none')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
