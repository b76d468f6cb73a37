"""Kinds of deploys, and a server that serves one release after another, for bench/scenarios/deploy.py."""

import concurrent.futures
import dataclasses
import os
import signal
import subprocess
import time

from . import client, control, figures, measure, releases, scenario, servers
from .launch import Running, free_port

# From the client's start: its connections are open, and the turn shows the state before.
DEPLOY_AFTER_SECONDS = 1.5
# The client draws the same requests in each turn, so each deploy comes at another moment and finds
# other requests in flight.
MOMENTS, BETWEEN_MOMENTS_SECONDS = 7, 0.07
COMMAND_SECONDS_MAX = 90


def reload(served):
    order(served, "reload")


def restart(served):
    order(served, "stop")
    for process in served.running.processes:
        process.wait(COMMAND_SECONDS_MAX)
    served.running.processes = []
    served.running.start()
    served.running.wait_until_ready()


def order(served, word):
    """Runs samovar reload or samovar stop."""
    done = subprocess.run([servers.samovar_binary(), word, "--control", served.site.var / "control.sock"],
                          capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, env=servers.outer_environment())
    if done.returncode:
        raise client.ClientError(f"samovar {word} failed: {(done.stderr or done.stdout).strip()[-300:]}")


def signal_master(served):
    # The first process of a launch is php-fpm's master. It keeps its process id, because it
    # executes itself again.
    os.kill(served.running.processes[0].pid, signal.SIGUSR2)


def nothing_more(_):
    """Does nothing: switching the link is the whole deploy."""


@dataclasses.dataclass(frozen=True)
class Way:
    """A server, and the action after the link is switched; deploy is None if there is no deploy."""

    title: str
    deploy: object
    model: str | None = None  # Samovar's; None is php-fpm.
    arguments: tuple = ()     # Further arguments of samovar serve.
    changes: tuple = ()       # Replacements in the server's files: (file's name, old, new).

    def kind(self, key):
        """The server, or None if it is not installed."""
        if self.model:
            entry = "fpm" if self.model == "script" else self.model
            return scenario.samovar(key, self.title, entry, *self.arguments)
        found = scenario.php_fpm(key, self.title)
        return changed(found, self.changes) if found else None


WAITS = ("fpm.conf", "[global]\n", "[global]\nprocess_control_timeout = 10s\n")
FOLLOWS = ("nginx.conf", "$document_root$fastcgi_script_name", "$realpath_root$fastcgi_script_name")
WAYS = {
    "checkpoint-none": Way("no deploy: Samovar, checkpoint", None, "checkpoint"),
    "checkpoint-reload": Way("Samovar, checkpoint, reload", reload, "checkpoint"),
    "resident-reload": Way("Samovar, resident, reload", reload, "resident"),
    "resident-reload-warm": Way("Samovar, resident, --warmup /, reload", reload, "resident", ("--warmup", "/")),
    "script-reload": Way("Samovar, script, reload", reload, "script"),
    "checkpoint-restart": Way("Samovar, checkpoint, restart", restart, "checkpoint"),
    "fpm-none": Way("no deploy: nginx + php-fpm", None),
    "fpm-reload": Way("php-fpm, reload", signal_master),
    "fpm-reload-waits": Way("php-fpm, reload, with waits", signal_master, changes=(WAITS,)),
    "fpm-link": Way("php-fpm, link alone", nothing_more, changes=(FOLLOWS,)),
}


def changed(kind, changes):
    """A server with these replacements in its files."""
    def launch(site):
        made = kind.launch(site)
        files = dict(made.files)
        for name, old, new in changes:
            if old not in files[site.var / name]:
                raise ValueError(f"{name} has no {old!r}")
            files[site.var / name] = files[site.var / name].replace(old, new)
        return dataclasses.replace(made, files=files)
    return dataclasses.replace(kind, launch=launch)


class Served:
    """A server with its own link to the release that it serves, and its measurements."""

    def __init__(self, lab, workload, way, kind):
        self.lab, self.workload, self.way, self.kind = lab, workload, way, kind
        self.running, self.targets = None, None
        var = lab.folder / "servers" / kind.key
        self.link = var / "current"
        # Through the link, unresolved: for the server, a deploy is only a change of the link.
        self.site = servers.Site("deploy", self.link / workload.entries[kind.entry], var, free_port(),
                                 lab.asked.workers, lab.asked.connections, {})
        self.record = {"title": kind.title, "group": kind.group, "error": None, "commands": [], "rounds": []}

    def start(self, release):
        releases.switch(self.link, release)
        launch = self.kind.launch(self.site)
        self.record["commands"] = launch.as_text()
        self.running = Running(launch)
        client.check(self.workload, self.running.address, self.site.var)
        self.targets = client.write_targets(self.workload, self.running.address, self.site.var)
        self.load(measure.WARMUP_SECONDS)
        self.must_be_its_model()

    def must_be_its_model(self):
        """Checks the model: after a failed boot Samovar falls back, which would be another measurement."""
        if self.way.model:
            found = {worker["model"] for worker in control.status(self.site.var)["workers"]}
            if found != {self.way.model}:
                raise ValueError(f"the workers' model is {found}")

    def load(self, seconds):
        answer = client.run(client.command(self.running.address, self.targets, seconds, self.lab.asked.connections,
                                           self.lab.asked.rate), seconds)
        if not answer["requests"]:
            raise client.ClientError(f"no successful response: {answer['errors']}, {answer['hung']} hung")
        return answer

    def turn(self, number, release, weighed):
        """Some seconds of load with a deploy in them: figures of the client and of the deploy; the memory if weighed.
        """
        scales = releases.Scales(self.running.roots) if weighed else None
        try:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                load = pool.submit(self.load, self.lab.asked.seconds)
                time.sleep(DEPLOY_AFTER_SECONDS + number % MOMENTS * BETWEEN_MOMENTS_SECONDS)
                begin = time.monotonic()
                deploy = self.deploy(release, begin)
                if load.done():
                    self.lab.progress.note(
                        f"{self.kind.key}: the load ended before the deploy\nhint: increase --seconds")
                answer = load.result()
        finally:
            readings = scales.end() if scales else []
        if not self.running.alive():
            raise client.ClientError(f"ended: {self.running.log_tail()}")
        self.must_be_its_model()
        return {**answer, "weighed": weighed, "deploy": deploy, "pss_kib": weights(readings, begin)}

    def deploy(self, release, begin):
        """Figures of a deploy; None if there is none. Its watcher runs in any case, because it is load, too."""
        if self.way.deploy is None:
            releases.Watcher(self.running.address, self.link.resolve().name).see()
            return None
        watcher = releases.Watcher(self.running.address, release.name)
        try:
            releases.switch(self.link, release)
            self.way.deploy(self)
            took = time.monotonic() - begin
        finally:
            seen_at, old_afterwards = watcher.see()
        if seen_at is None or releases.ask(self.running.address) != release.name:
            raise client.ClientError(f"{release.name} was deployed, but another release responds")
        return {"release": release.name, "command_s": took, "new_after_s": seen_at - begin,
                "old_afterwards": old_afterwards}


def weights(readings, begin):
    """The memory before a deploy and the maximum since, of [(when, KiB)]."""
    before = figures.median([weight for when, weight in readings if when < begin])
    since = [weight for when, weight in readings if when >= begin]
    return {"before": before, "greatest": max(since)} if before is not None and since else None
