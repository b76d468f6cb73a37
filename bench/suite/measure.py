"""One workload: starts its servers, measures them in turn (A B C, A B C, …), stops them; records the rounds."""

import contextlib
import json
import subprocess
import time

from . import accounting, client, figures, servers
from .launch import LaunchError, Running, free_port

WARMUP_SECONDS = 2
SYSCALL_SECONDS = 1
SETTLE_SECONDS = 0.3  # The last server's connections are closed and its workers at rest.
SETUP_SECONDS_MAX = 180
LADDER_GROUPS = ("samovar", "php-fpm", "peer")


class Contestant:
    """A running server (or the loop without one), and its measurements."""

    def __init__(self, kind, workload, site):
        self.kind, self.workload, self.site = kind, workload, site
        self.running, self.targets = None, None
        self.record = {"title": kind.title, "group": kind.group, "note": kind.note, "error": None, "commands": [],
                       "rounds": []}

    def __str__(self):
        return self.kind.key

    def fits(self, pass_name):
        return self.record["error"] is None and (self.running is not None or pass_name == "closed")

    def start(self):
        environment = servers.prepare(self.site)
        if self.workload.setup:
            set_up(self.workload, environment)
        if self.kind.launch is None:
            self.record["commands"] = [" ".join(self.loop_command("SECONDS"))]
            return
        launch = self.kind.launch(self.site)
        self.record["commands"] = launch.as_text()
        self.running = Running(launch)
        client.check(self.workload, self.running.address, self.site.var)
        self.targets = client.write_targets(self.workload, self.running.address, self.site.var)

    def stop(self):
        if self.running is not None:
            self.running.stop()
            self.running = None

    def loop_command(self, seconds):
        return ["php8.2", str(self.site.entry), str(seconds)]

    def loop(self, seconds):
        """The handler without a server, which measures itself."""
        out = run_php(self.loop_command(seconds), self.workload.folder, servers.prepare(self.site), seconds + 60)
        answer = json.loads(out)
        return {"cpu_us": answer["cpu_us"], "requests": answer["requests"], "rate": answer["requests"] / seconds}

    def load(self, seconds, connections, rate=None, new=False, prefix=()):
        """The client's figures, with the CPU per request and the memory of the server's processes."""
        roots = self.running.roots()
        before = accounting.cpu_us(roots)
        answer = client.run([*prefix, *client.command(self.running.address, self.targets, seconds, connections, rate,
                                                      new)], seconds)
        used = accounting.cpu_us(roots) - before
        if not answer.get("requests"):
            raise client.ClientError(f"no successful response: {json.dumps(answer.get('errors'))}, "
                                     f"{answer.get('hung')} hung")
        if not self.running.alive():
            raise client.ClientError(f"ended under load: {self.running.log_tail()}")
        return {**answer, "cpu_us": used / answer["requests"], **accounting.memory(roots)}

    def system_calls(self, connections):
        """System calls per request, or None if perf cannot count."""
        output = self.site.var / "perf.csv"
        prefix = accounting.perf_prefix(self.running.roots(), output)
        with contextlib.suppress(OSError, client.ClientError):
            answer = self.load(SYSCALL_SECONDS, connections, prefix=prefix)
            count = accounting.perf_count(output.read_text())
            return count / answer["requests"] if count is not None else None
        return None


def words_of(error):
    """An exception as text for a record: some have no text of their own."""
    return str(error) or repr(error)


def set_up(workload, environment):
    run_php(["php8.2", str(workload.folder / workload.setup)], workload.folder, environment, SETUP_SECONDS_MAX)


def run_php(command, folder, environment, seconds_max):
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=seconds_max)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise client.ClientError(f"{command[1]}: {error}") from error
    if done.returncode != 0:
        raise client.ClientError(f"{command[1]} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


class Contest:
    """All servers of one workload."""

    def __init__(self, workload, kinds, settings, folder, environment, progress):
        self.workload, self.settings, self.progress = workload, settings, progress
        # A workload may require fewer: 64 concurrent uploads fill the machine, and none ends within
        # a round.
        self.connections = (workload.connections,) if workload.connections else settings.connections
        self.main = figures.main_connections(self.connections)
        self.contestants = [Contestant(kind, workload, self.site(kind, folder, environment)) for kind in kinds]
        self.record = {
            "description": workload.description, "figure": workload.figure, "connections": self.main,
            "workers": self.workers(), "rate": None, "visitors": workload.visitors,
            "servers": {contestant.kind.key: contestant.record for contestant in self.contestants}}

    def workers(self):
        return self.workload.workers or self.settings.workers

    def site(self, kind, folder, environment):
        connections_max = max(self.connections)
        return servers.Site(self.workload.name, self.workload.entry(kind.entry) if kind.entry else None,
                            folder / self.workload.name / kind.key, free_port(), self.workers(), connections_max,
                            environment)

    def run(self):
        try:
            self.start()
            self.closed_loop()
            self.system_calls()
            self.constant_rate()
            if self.workload.name == self.settings.ladder:
                self.climb()
        finally:
            for contestant in self.contestants:
                contestant.stop()

    @contextlib.contextmanager
    def attempt(self, contestant):
        """Runs a step. An error of one server is noted in its record, and the others continue."""
        try:
            yield
        except (LaunchError, client.ClientError, OSError, ValueError, KeyError) as error:
            contestant.record["error"] = words_of(error)
            contestant.stop()
            self.progress.note(f"{contestant}: {contestant.record['error']}")

    def taking_part(self, pass_name):
        return [contestant for contestant in self.contestants if contestant.fits(pass_name)]

    def start(self):
        for contestant in self.contestants:
            self.progress.step(f"{self.workload.name}: {contestant} starts", start_seconds(contestant.kind))
            with self.attempt(contestant):
                contestant.start()
                if contestant.running:
                    contestant.load(WARMUP_SECONDS, self.main)

    def turn(self, pass_name, text, seconds, measure):
        """One round of all servers; measure returns the record, or None."""
        for contestant in self.taking_part(pass_name):
            self.progress.step(f"{self.workload.name}: {text}: {contestant}", seconds + SETTLE_SECONDS)
            time.sleep(SETTLE_SECONDS)
            with self.attempt(contestant):
                found = measure(contestant)
                if found is not None:
                    contestant.record["rounds"].append({"pass": pass_name, **found})

    def closed_loop(self):
        for number in range(self.settings.rounds):
            text = f"round {number + 1} of {self.settings.rounds}"
            for connections in self.connections:
                self.turn("closed", f"{text}, {connections} connections", self.settings.seconds,
                          lambda c: self.closed_round(c, connections))
            if self.settings.new_connections:
                self.turn("new", f"{text}, new connections", self.settings.seconds, lambda c: {
                    "connections": self.main, **c.load(self.settings.seconds, self.main, new=True)})

    def closed_round(self, contestant, connections):
        if contestant.running is None:
            # The loop has no connections: it has one figure per round for all numbers of
            # connections.
            if connections != self.main:
                return None
            return {"connections": connections, **contestant.loop(self.settings.seconds)}
        return {"connections": connections, **contestant.load(self.settings.seconds, connections)}

    def system_calls(self):
        if not self.settings.system_calls:
            return
        for connections in self.connections:
            self.turn("syscalls", f"system calls, {connections} connections", SYSCALL_SECONDS, lambda c: {
                "connections": connections, "syscalls": c.system_calls(connections)})

    def constant_rate(self):
        base = figures.reference_rate(self.record["servers"], self.main)
        rate = figures.asked_rate(self.settings.rate, base)
        if rate <= 0:
            return
        self.record["rate"] = rate
        for number in range(self.settings.rounds):
            self.turn("rate", f"round {number + 1} of {self.settings.rounds}, {rate:.0f} requests/s",
                      self.settings.seconds, lambda c: {
                          "connections": self.main, "asked_rate": rate,
                          **c.load(self.settings.seconds, self.main, rate)})

    def climb(self):
        """Latency by load: each server at parts of its own capacity in the closed loop."""
        for number in range(self.settings.rounds):
            for share in self.settings.ladder_shares:
                self.turn("step", f"round {number + 1} of {self.settings.rounds}, {share:.0%} of its capacity",
                          self.settings.seconds, lambda c: self.ladder_step(c, share))

    def ladder_step(self, contestant, share):
        if contestant.kind.group not in LADDER_GROUPS:
            return None
        rounds = figures.rounds_of(contestant.record, "closed", self.main)
        rate = share * figures.median([r["rate"] for r in rounds])
        return {"connections": self.main, "share": share, "asked_rate": rate,
                **contestant.load(self.settings.seconds, self.main, rate)}


def start_seconds(kind):
    """Planned duration of a start with its warm-up."""
    return WARMUP_SECONDS + 2 if kind.launch else 0


def planned_seconds(workload, kinds, settings):
    """Planned duration of a workload, with the same steps as in Contest."""
    running = sum(1 for kind in kinds if kind.launch)
    loops = len(kinds) - running
    one = settings.seconds + SETTLE_SECONDS
    connections = 1 if workload.connections else len(settings.connections)
    total = sum(start_seconds(kind) for kind in kinds)
    total += settings.rounds * one * (running * (connections + settings.new_connections) + loops)
    if settings.system_calls:
        total += running * connections * (SYSCALL_SECONDS + SETTLE_SECONDS)
    if settings.rate != "0":
        total += running * settings.rounds * one
    if workload.name == settings.ladder:
        climbing = sum(1 for kind in kinds if kind.launch and kind.group in LADDER_GROUPS)
        total += climbing * settings.rounds * one * len(settings.ladder_shares)
    return total
