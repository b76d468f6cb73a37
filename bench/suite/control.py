"""Status of a running Samovar from its control socket, and the resources of its workers."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import time

from . import accounting
from .client import ClientError

IDLE_SECONDS_MAX = 10
SUCCESSOR_SECONDS_MAX = 60
# A worker that dies young is replaced with a delay, which is not to be measured.
BETWEEN_KILLS_SECONDS = 1
POLL_SECONDS = 0.0002


def status(var):
    """Status of the server with that folder."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(str(var / "control.sock"))
        connection.sendall(b"status\n")
        with connection.makefile() as answer:
            return json.loads(answer.readline())


def at_rest(var):
    """Status while no request is in flight: during a request a worker may be large."""
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while True:
        found = status(var)
        if found["workers"] and all(worker["state"] == "idle" for worker in found["workers"]):
            return found
        if time.monotonic() > deadline:
            raise ClientError(f"a worker does not become idle: {found['workers']}")
        time.sleep(0.01)


def weigh(pid):
    """Resources of a process."""
    proc = pathlib.Path(f"/proc/{pid}")
    return {**accounting.rollup((proc / "smaps_rollup").read_text()), "descriptors": len(list((proc / "fd").iterdir())),
            "mappings": len((proc / "maps").read_text().splitlines())}


def reading(var, roots, requests, names):
    """Resources of a server and its workers at rest after this number of requests, with these figures of its image."""
    found = at_rest(var)
    image = found.get("image") or {}
    return {"requests": requests, **{name: image.get(name) for name in names}, "tree": accounting.memory(roots),
            "workers": {str(worker["pid"]): {**weigh(worker["pid"]), "hot_pages": worker.get("hot_pages")}
                        for worker in found["workers"]}}


def births_ms(var, kills):
    """Time from a worker's kill -9 until its successor is first seen idle, for each kill."""
    known, times = {worker["pid"] for worker in at_rest(var)["workers"]}, []
    for _ in range(kills):
        victim = status(var)["workers"][0]["pid"]
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        born = wait_for_successor(var, victim, known, begin)
        times.append((time.monotonic() - begin) * 1000)
        known.add(born)
        time.sleep(BETWEEN_KILLS_SECONDS)
    return times


def wait_for_successor(var, victim, known, begin):
    while True:
        workers = status(var)["workers"]
        born = successor(workers, victim, known)
        if born is not None:
            return born
        if time.monotonic() - begin > SUCCESSOR_SECONDS_MAX:
            raise ClientError(f"no successor of a killed worker after {SUCCESSOR_SECONDS_MAX} s")
        time.sleep(POLL_SECONDS)


def successor(workers, victim, known):
    """The process that has replaced the victim and waits for requests, or None."""
    if any(worker["pid"] == victim for worker in workers):
        return None
    born = [worker["pid"] for worker in workers if worker["pid"] not in known and worker["state"] == "idle"]
    return born[0] if born else None
