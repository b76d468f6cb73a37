#!/usr/bin/python3
"""Queues of jobs: pushes, batches, intake, Messenger's messages, and the effect of an idle queue on HTTP.

  bench/scenarios/queues.py [--parts push,many,consume,intake,messenger,idle] [--jobs 100000] [--output DIR]

push       durable jobs/s of push(), one per request; next to it fsyncs/s of a file on the same disk
many       the same with pushMany() of 100 jobs per request
consume    empty jobs/s in batches of 100
intake     requests/s of an [[intake]], next to those of a static file of the same server
messenger  messages per CPU second with Symfony Messenger's worker: [[queue]], and the Redis
           transport under php8.2-cli. The CPU time includes the server, and redis-server
idle       p99 of a page at a constant rate, without and with an idle queue that fills the machine

The parts of a round run in turn. A figure is the median of the rounds; a ratio is the median of the
rounds' own ratios.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import accounting, client, report, scenario, servers  # noqa: E402: the suite is next to this folder

APP = scenario.SCENARIO_APPS / "queues"
PARTS = ("push", "many", "consume", "intake", "messenger", "idle")
BATCH, MANY = 100, 100
PUSH_MAX = 1_000
WAIT_SECONDS_MAX = 300
FSYNC_SECONDS = 1
# Jobs of 10 ms: more than all processors finish in a round.
BUSY_JOBS_PER_SECOND = 100
IDLE_RATE = 200
# Part, description, unit, target of the figure, target of the ratio.
ROWS = (("push", "durable push(), one per request; ratio to fsyncs", "jobs/s", None, None),
        ("many", f"durable pushMany() of {MANY}; ratio to fsyncs", "jobs/s", "≥ 20,000", None),
        ("consume", f"empty jobs in batches of {BATCH}", "jobs/s", "≥ 50,000", None),
        ("intake", "intake; ratio to a static file", "requests/s", None, "≥ 0.6"),
        ("messenger", "Messenger; ratio to its Redis transport", "jobs/CPU s", None, "≥ 3"),
        ("idle", "p99 next to an idle queue; ratio to p99 without it", "ms", None, "≤ 1.05"))


def main():
    made = scenario.parser(__doc__)
    scenario.add_choice(made, "--parts", PARTS)
    made.add_argument("--jobs", type=scenario.positive, default=100_000, metavar="N",
                      help="jobs to consume in a round: %(default)s")
    scenario.run("queues", made.parse_args(), measure_all, table)


def settings(var):
    """The settings file. The store is on the disk of the server's folder."""
    queues = {"empty": f"batch = {BATCH}\nhandler = '{APP}/jobs/empty.php'\nworkers = 2",
              "clicks": f"batch = {BATCH}\nhandler = '{APP}/jobs/empty.php'\nworkers = 1",
              "messages": f"batch = {BATCH}\nhandler = '{APP}/jobs/messenger.php'\nworkers = 2",
              "busy": f"handler = '{APP}/jobs/busy.php'\nworkers = {os.cpu_count()}\npriority = 'idle'"}
    tables = "".join(f"[[queue]]\nname = '{name}'\n{keys}\n" for name, keys in queues.items())
    intake = "[[intake]]\nmatch = 'GET /track'\nqueue = 'clicks'\n"
    return f"[jobs]\nstore = '{var}/jobs.sqlite'\nbytes_max = '1G'\n{tables}{intake}"


class Queues:
    """A server with queues."""

    def __init__(self, lab):
        self.lab = lab
        kind = scenario.samovar("queues", "queues", "checkpoint", "--config", lab.folder / "queues.toml")
        self.server = lab.alone(scenario.workload(APP), kind)
        (lab.folder / "queues.toml").write_text(settings(self.server.site.var))

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()

    def command(self, *words):
        command = [servers.samovar_binary(), "queue", *words, "--control", self.server.site.var / "control.sock"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise client.ClientError(f"samovar queue {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def figures(self, queue):
        return next(of for of in json.loads(self.command("ls", "--json"))["queues"] if of["name"] == queue)

    def load(self, path, rate=None, connections=None):
        """The client's figures of one path."""
        targets = self.server.site.var / "targets.jsonl"
        targets.write_text(json.dumps({"class": "all", "weight": 1, "method": "GET", "path": path, "headers": {}}))
        asked = self.lab.asked
        return client.run(client.command(self.server.running.address, targets, asked.seconds,
                                         connections or asked.connections, rate), asked.seconds)

    def fill(self, queue, count, how="many"):
        """Pushes jobs to a paused queue."""
        self.command("pause", queue)
        for _ in range(-(-count // PUSH_MAX)):
            scenario.ask(self.server, WAIT_SECONDS_MAX, queue=queue, **{how: PUSH_MAX})

    def empty(self, queue):
        """Runs all jobs of the queue: jobs/s, and jobs per CPU second of the server's processes."""
        done = self.figures(queue)["done_total"]
        roots = self.server.running.roots()
        used, began = accounting.cpu_us(roots), time.monotonic()
        self.command("resume", queue)
        deadline = began + WAIT_SECONDS_MAX
        while (now := self.figures(queue))["ready"] or now["running"]:
            if time.monotonic() > deadline:
                raise client.ClientError(f"{now['ready']} jobs of {queue} wait after {WAIT_SECONDS_MAX} s")
            time.sleep(0.02)
        seconds, used = time.monotonic() - began, accounting.cpu_us(roots) - used
        done = now["done_total"] - done
        return done / seconds, done / (used / 1e6)

    def drop(self, queue):
        self.command("pause", queue)
        self.command("drop", queue)


def measure_all(lab, results):
    scenario.need_packages(scenario.workload(APP))
    with Queues(lab) as queues, redis(lab) as socket:
        for number in range(lab.asked.rounds):
            for part in lab.asked.parts.split(","):
                lab.progress.note(f"round {number + 1} of {lab.asked.rounds}: {part}")
                result = results.setdefault(part, {"error": None, "figures": [], "bases": []})
                try:
                    figure, base = MEASURES[part](queues, socket)
                except (*scenario.ERRORS, subprocess.CalledProcessError) as error:
                    scenario.note_error(lab.progress, part, result, error)
                    continue
                result["figures"].append(figure)
                result["bases"].append(base)


def push(queues, _, path="/?push=1", jobs=1):
    queues.drop("empty")
    base = fsyncs(queues.server.site.var)
    found = queues.load(path)["rate"] * jobs
    queues.drop("empty")
    return found, base


def many(queues, _):
    return push(queues, _, f"/?many={MANY}", MANY)


def fsyncs(folder):
    """Appends and fsyncs per second."""
    path = folder / "fsync"
    with open(path, "ab", buffering=0) as file:
        count, end = 0, time.monotonic() + FSYNC_SECONDS
        while time.monotonic() < end:
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return count / FSYNC_SECONDS


def consume(queues, _):
    queues.fill("empty", queues.lab.asked.jobs)
    return queues.empty("empty")[0], None


def intake(queues, _):
    queues.drop("clicks")
    base = queues.load("/file.txt")["rate"]
    found = queues.load("/track?page=1")["rate"]
    queues.drop("clicks")
    return found, base


def messenger(queues, socket):
    count = max(PUSH_MAX, queues.lab.asked.jobs // 10 // PUSH_MAX * PUSH_MAX)
    script = ["php8.2", str(APP / "redis.php"), str(socket.path)]
    subprocess.run([*script, "send", str(count)], check=True, capture_output=True, timeout=WAIT_SECONDS_MAX)
    before = accounting.cpu_us([socket.pid])
    out = subprocess.run([*script, "work"], check=True, capture_output=True, timeout=WAIT_SECONDS_MAX).stdout
    used = json.loads(out)["cpu"] + (accounting.cpu_us([socket.pid]) - before) / 1e6
    queues.fill("messages", count, "messages")
    return queues.empty("messages")[1], count / used


def idle(queues, _):
    """p99 in ms; the queue is paused for the base."""
    queues.fill("busy", round(BUSY_JOBS_PER_SECOND * os.cpu_count() * queues.lab.asked.seconds * 2))
    base = queues.load("/", IDLE_RATE, 4)
    queues.command("resume", "busy")
    time.sleep(1)
    found = queues.load("/", IDLE_RATE, 4)
    queues.drop("busy")
    return found["latency_us"]["p99"] / 1000, base["latency_us"]["p99"] / 1000


MEASURES = {"push": push, "many": many, "consume": consume, "intake": intake, "messenger": messenger, "idle": idle}


class Redis:
    """A redis-server with an append-only file, on a unix socket."""

    def __init__(self, folder):
        folder.mkdir()
        self.path = folder / "redis.sock"
        command = ["redis-server", "--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
                   "--unixsocket", str(self.path), "--dir", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid


@contextlib.contextmanager
def redis(lab):
    found = Redis(lab.folder / "redis")
    try:
        yield found
    finally:
        found.process.terminate()
        found.process.wait()


# ---- tables ---------------------------------------------------------------------------------------


def line(name, unit, target, ratio_target, result):
    if not result["figures"]:
        return [name, scenario.error_of(result), "", "", ""]
    figures = result["figures"]
    digits = 2 if unit == "ms" else 0
    spread = f"{statistics.median(figures):,.{digits}f} ({min(figures):,.{digits}f}–{max(figures):,.{digits}f}) {unit}"
    ratios = [figure / base for figure, base in zip(figures, result["bases"]) if base]
    ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else ""
    return [name, spread, ratio, target or "", ratio_target or ""]


def table(raw):
    columns = ["part", "median (min–max)", "ratio", "target", "target of the ratio"]
    lines = [line(name, unit, target, ratio_target, raw["results"][part])
             for part, name, unit, target, ratio_target in ROWS if part in raw["results"]]
    return "\n\n".join([scenario.heading(raw, "Queues of jobs"), report.table(columns, lines)])


if __name__ == "__main__":
    main()
