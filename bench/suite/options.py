"""The command line -> Settings and the other options of run.py."""

import argparse
import dataclasses
import pathlib
import shutil

QUICK_WORKLOADS = "hello,echo"
QUICK_SECONDS = 1
DESCRIPTION = """\
PHP servers side by side: CPU per request, latency, memory and system calls of each, on the same application code.

  make bench                          installs and builds what it needs, then measures everything
  bench/run.py --quick                one short round of two workloads, as a quick check
  bench/run.py --workloads symfony --servers samovar-checkpoint,php-fpm,alone
  bench/run.py --readme bench/results/DATE/raw.json     the section of the README, from recorded figures
  bench/run.py --report bench/results/DATE/raw.json     results.md and the plots, from recorded figures

Servers of a workload are measured in turn (A B C, A B C, …); medians are printed with their spread."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Selection and duration of the measurements."""

    rounds: int
    seconds: int
    workers: int
    connections: tuple
    new_connections: bool
    rate: str
    system_calls: bool
    ladder: str | None
    ladder_shares: tuple
    memory_workload: str | None
    memory_workers: tuple


def numbers(text):
    """1,16,64 -> (1, 16, 64); an empty text is an empty tuple."""
    found = tuple(sorted({int(part) for part in text.split(",") if part}))
    if any(number < 1 for number in found):
        raise argparse.ArgumentTypeError(f"{text!r}: whole numbers from 1")
    return found


def rate(text):
    """50% or 2000 or 0, unchanged."""
    try:
        if float(text.removesuffix("%")) >= 0:
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: requests/s, or a share of php-fpm's throughput such as 50%")


def parser():
    made = argparse.ArgumentParser(description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--quick", action="store_true", help=f"1 round of {QUICK_SECONDS} s of {QUICK_WORKLOADS}")
    add("--workloads", metavar="A,B", help="workloads of bench/apps [default: all]")
    add("--servers", metavar="A,B", help="servers, such as samovar-script,php-fpm,alone [default: all installed ones]")
    add("--list", action="store_true", help="list workloads and servers, and exit")
    add("--rounds", type=int, metavar="N",
        help="rounds of each measurement [default: 3]; do not publish results of fewer")
    add("--seconds", type=int, metavar="N", help="length of a round [default: 3]")
    add("--workers", type=int, default=2, metavar="N", help="PHP workers of each server: %(default)s")
    add("--connections", type=numbers, default=(64,), metavar="N,N",
        help="keep-alive connections, such as 1,16,64 [default: 64]")
    add("--new-connections", action="store_true", help="also measure with a new connection for each request")
    add("--rate", type=rate, default="50%", metavar="R",
        help="constant rate: requests/s, a share of php-fpm's throughput, or 0 for none [default: 50%%]")
    add("--no-system-calls", action="store_true", help="do not count system calls with perf")
    add("--ladder", default="symfony", metavar="WORKLOAD", help="workload for latency against load: %(default)s")
    add("--ladder-percent", type=numbers, default=(10, 30, 50, 70, 90), metavar="N,N",
        help="load steps in percent of each server's capacity [default: 10,30,50,70,90]")
    add("--memory", default="symfony", metavar="WORKLOAD",
        help="workload for memory against workers: %(default)s")
    add("--memory-workers", type=numbers, default=(1, 2, 4, 8), metavar="N,N",
        help="numbers of workers [default: 1,2,4,8]")
    add("--output", type=pathlib.Path, metavar="DIR", help="folder for the results [default: bench/results/DATE]")
    add("--readme", type=pathlib.Path, metavar="RAW.json", help="print the section of the README, and exit")
    add("--report", type=pathlib.Path, metavar="RAW.json", help="create the report from recorded figures, and exit")
    return made


def parse(arguments):
    """Parses the options. --quick changes only values that are not given."""
    options = parser().parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (QUICK_SECONDS if options.quick else 3)
    if options.quick and not options.workloads:
        options.workloads = QUICK_WORKLOADS
    return options


def settings(options):
    return Settings(options.rounds, options.seconds, options.workers, options.connections, options.new_connections,
                    options.rate, not options.no_system_calls and shutil.which("perf") is not None,
                    options.ladder or None, tuple(n / 100 for n in options.ladder_percent), options.memory or None,
                    options.memory_workers)
