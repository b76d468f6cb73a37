#!/usr/bin/python3
"""Predicted and measured ceiling: `samovar plan` from a light load, `samovar plan verify` up to the limit.

  bench/scenarios/plan.py                              hello, Symfony and mixed, some 6 minutes each
  bench/scenarios/plan.py --workloads hello            only one
  SAMOVAR_BIN=… bench/scenarios/plan.py                another build of the server

The history is made of short loads with 10 to 40 % of the closed loop's rate. Each becomes an interval
of five minutes: rates and shares of CPU are those of the short load. The CPU time is that of server
and client, because both share the machine. CPU of other processes is measured in the same time and
given as --others. The time in a worker is not part of this history, so workers are no limit of the
prediction: for mixed, whose requests wait, a difference is expected.

The machine must be quiet: other processes take the CPU time that the prediction counts on.
"""

import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import accounting, client, report, scenario, servers  # noqa: E402: the suite is next to this folder

WORKLOADS = ("hello", "symfony", "mixed")
ENTRY = "resident"
CLOSED_SECONDS = 3
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
TURNS = 4
# A bin of samovar plan.
BIN_SECONDS = 300
VERIFY_SECONDS_MAX = 1200
GOAL = "p99=250ms"


def main():
    made = scenario.parser(__doc__, rounds=TURNS, seconds=3, connections=64)
    made.add_argument("--step-time", default="10s", metavar="TIME", help="length of a step: %(default)s")
    scenario.add_choice(made, "--workloads", WORKLOADS)
    scenario.run("plan", made.parse_args(), measure_all, table)


def measure_all(lab, results):
    for name in lab.asked.workloads.split(","):
        found = scenario.workload(scenario.APPS / name)
        scenario.need_packages(found)
        result = results[name] = {"title": name, "error": None, "history": [], "verification": None}
        contestant = lab.alone(found, scenario.samovar(f"plan-{name}", name, ENTRY))
        try:
            lab.progress.note(f"{name}: starts")
            contestant.start()
            measure(contestant, lab, result)
        except (*scenario.ERRORS, subprocess.SubprocessError) as error:
            scenario.note_error(lab.progress, name, result, error)
        finally:
            contestant.stop()


def measure(contestant, lab, result):
    asked = lab.asked
    result["closed_rate"] = contestant.load(CLOSED_SECONDS, asked.connections)["rate"]
    for turn in range(asked.rounds):
        for share in SHARES:
            rate = max(share * result["closed_rate"], 1)
            result["history"].append(interval(contestant, rate, asked))
            lab.progress.note(f"{result['title']}: turn {turn + 1} of {asked.rounds}, {rate:.0f} requests/s")
    others = sum(one["others"] for one in result["history"]) / len(result["history"])
    result["others"] = others
    history = contestant.site.var / "history.csv"
    history.write_text(csv(result["history"], time.time()))
    targets = contestant.site.var / "verify.jsonl"
    lines = [json.loads(line) for line in contestant.targets.read_text().splitlines()]
    keep = ("weight", "method", "path", "headers", "body")
    targets.write_text("".join(
        json.dumps({key: line[key] for key in keep if key in line}) + "\n" for line in lines))
    command = [str(servers.samovar_binary()), "plan", "verify", "--json", "--against",
               f"http://{contestant.running.address}", "--requests", str(targets), "--csv", str(history), "--cores",
               str(cores()), "--workers", str(asked.workers), "--others", f"{others:.3f}", "--goal", GOAL,
               "--step-time", asked.step_time, "--against-control", str(contestant.site.var / "control.sock")]
    lab.progress.note(f"{result['title']}: verifies")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=VERIFY_SECONDS_MAX, check=False)
    if not ended.stdout:
        raise client.ClientError(ended.stderr.strip())
    result["verification"] = json.loads(ended.stdout)


def interval(contestant, rate, asked):
    """A short load: requests per second, cores of server and client, and of other processes."""
    roots = contestant.running.roots()
    begun, busy, own = time.monotonic(), machine_seconds(), accounting.cpu_us(roots)
    answer = contestant.load(asked.seconds, asked.connections, rate)
    elapsed = time.monotonic() - begun
    busy, own = machine_seconds() - busy, (accounting.cpu_us(roots) - own) / 1e6
    own += (answer["client"]["cpu_us"] or 0) * answer["requests"] / 1e6
    # Rates are those of the window; the rest is the start of the client.
    return {"rate": answer["requests"] / asked.seconds, "cores": own / asked.seconds,
            "others": max(busy - own, 0) / elapsed}


def csv(history, now):
    first = int(now) // BIN_SECONDS * BIN_SECONDS - len(history) * BIN_SECONDS
    lines = [f"{first + n * BIN_SECONDS},{BIN_SECONDS},{one['rate']:.3f},"
             f"{one['cores'] * BIN_SECONDS:.4f}" for n, one in enumerate(history)]
    return "\n".join(["time,seconds,requests_per_second,cpu_seconds", *lines]) + "\n"


def machine_seconds():
    """CPU time of all processes of the machine: user, nice, system, irq, softirq."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(int(fields[n]) for n in (0, 1, 2, 5, 6)) / 100


def cores():
    return len([line for line in pathlib.Path("/proc/stat").read_text().splitlines()
                if line.startswith("cpu") and not line.startswith("cpu ")])


def table(raw):
    lines = [line_of(result) for result in raw["results"].values()]
    head = ["workload", "predicted, requests/s", "limit", "measured", "difference", "other processes, cores", "end"]
    return "\n\n".join([scenario.heading(raw, "Predicted and measured ceiling"), report.table(head, lines)])


def line_of(result):
    found = result["verification"]
    if found is None:
        return [result["title"], "–", "–", "–", "–", "–", result["error"] or "not measured"]
    predicted, measured = found["predicted"], found["measured"]
    difference = found["difference"]
    return [result["title"], f"{predicted['rate']:.0f}" if predicted else "–",
            predicted["resource"] if predicted else "–",
            f"{measured['good']:.0f}" if "good" in measured else "–",
            f"{100 * difference:+.0f} %" if difference is not None else "–", f"{result['others']:.2f}",
            found["outcome"].replace("_", " ")]


if __name__ == "__main__":
    main()
