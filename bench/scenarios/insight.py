#!/usr/bin/python3
"""Cost of insight, and whether a client can raise it: invented URLs, full disks, garbage, a hanging peer.

  bench/scenarios/insight.py [--workloads hello,symfony] [--models resident,checkpoint] [--ways on,urls] [--output DIR]

off         insight.enabled = false: the base of all comparisons
on          admin, history, OTLP to a collector, the slow log: everything that can be enabled
urls        the same, and each request has a new URL (soon a million of them)
full        the same, and the history's disk is full (needs root, because it is mounted)
tags        the same, and each request has a timer with one of 10,000 sets of tags (compared with
            the same page and everything off)
hang        the same, each request is traced, and the collector accepts connections but never
            responds
garbage     the same, and another program sends packets that are not Pinba to Pinba's port, as fast
            as it can

Ratios compare each round with "off" of the same round. Memory is that of the server's own process
after the last round. The targets: CPU × 1.04 for hello, × 1.01 for Symfony's page; p99 unchanged.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from suite import control, launch, report, scenario  # noqa: E402: the suite is next to this folder

WORKLOADS = ("hello", "symfony")
MODELS = ("resident", "checkpoint", "fpm")
WAYS = {
    "on": "all on",
    "urls": "all on, new URL in each request",
    "tags": "all on, 10,000 sets of tags",
    "full": "all on, the history's disk is full",
    "hang": "all on, the collector hangs",
    "garbage": "all on, garbage for Pinba's port",
}
DISK_BYTES = 4 << 20
# As the guide recommends for a site with traffic.
TRACE_SHARE = "1%"
# A path that no workload uses.
NEW_URL = "/invented-{n}-url"
GARBAGE_BYTES_MAX = 1400
SEND_AT_ONCE = 64
PAUSE_S = 0.001  # Between bursts: 64,000 packets a second at most, three times the rate of reading.
COLUMNS = ["way", "CPU µs/request (min–max)", "CPU × off", "p50 ms", "p99 ms", "p99 × off", "requests/s",
           "server's memory, MiB", "errors"]


def main():
    made = scenario.parser(__doc__)
    scenario.add_choice(made, "--workloads", WORKLOADS)
    scenario.add_choice(made, "--models", MODELS)
    scenario.add_choice(made, "--ways", WAYS)
    scenario.run("insight", made.parse_args(), measure_all, table)


# ---- load on the server
# -----------------------------------------------------------------------------


class Collector:
    """Accepts connections; responds to each request with success, or never."""

    def __init__(self, hangs):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.hangs = hangs
        self.held = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.held.append(connection)
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError, ValueError), connection.makefile("rb") as reader:
            while line := reader.readline():
                length = 0
                while line.strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                    line = reader.readline()
                reader.read(length)
                if not self.hangs:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def close(self):
        for one in (self.listener, *self.held):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Stranger:
    """Sends garbage until it is closed."""

    def __init__(self, port):
        self.port = port
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()

    def send(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            while not self.over.wait(PAUSE_S):
                for _ in range(SEND_AT_ONCE):
                    # The listener may not exist yet, or no longer.
                    with contextlib.suppress(OSError):
                        own.sendto(os.urandom(1 + os.urandom(1)[0] * 5 % GARBAGE_BYTES_MAX), ("127.0.0.1", self.port))

    def close(self):
        self.over.set()
        self.thread.join()


@contextlib.contextmanager
def small_disk(folder):
    """A disk without room. Yields its folder, or None if it cannot be mounted."""
    folder.mkdir(parents=True)
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "samovar-full", folder], check=False).returncode == 0
    if not mounted:
        print("cannot mount a disk: skipping the full disk\nhint: run as root", file=sys.stderr)
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder):
    """Fills the disk completely."""
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 65536)


# ---- servers ------------------------------------------------------------------------------------------


def all_on(model, way, collector, var, pinba_port=None):
    settings = {
        "SAMOVAR_ADMIN": f"127.0.0.1:{launch.free_port()}",
        "SAMOVAR_INSIGHT_STORE": str(var / "history.sqlite"),
        "SAMOVAR_INSIGHT_OTLP": collector.endpoint,
        "SAMOVAR_INSIGHT_SLOW_LOG": "/dev/null",
    }
    # With a hanging collector, the queue of spans must become full.
    settings["SAMOVAR_INSIGHT_TRACE_SHARE"] = "100%" if way == "hang" else TRACE_SHARE
    if pinba_port:
        settings["SAMOVAR_INSIGHT_PINBA_LISTEN"] = f"127.0.0.1:{pinba_port}"
    return scenario.samovar(way, WAYS[way], model, environment=settings)


def measure_all(lab, results):
    with contextlib.ExitStack() as stack:
        ways = lab.asked.ways.split(",")
        taking, hanging = Collector(False), Collector(True)
        for one in (taking, hanging):
            stack.callback(one.close)
        disk = stack.enter_context(small_disk(lab.folder / "full")) if "full" in ways else None
        port = launch.free_port()
        if "garbage" in ways:
            stack.callback(Stranger(port).close)
        for name in lab.asked.workloads.split(","):
            for model in lab.asked.models.split(","):
                measure(lab, results, name, model, ways, taking, hanging, disk, port)
        for model in lab.asked.models.split(",") if "tags" in ways else ():
            measure_tags(lab, results, model, taking)


def all_off(model):
    return scenario.samovar("off", "off", model, environment={"SAMOVAR_INSIGHT_ENABLED": "false"})


def measure_tags(lab, results, model, taking):
    """Uses its own page: the application defines the sets of tags."""
    found = scenario.workload(scenario.SCENARIO_APPS / "timed")
    var = lab.folder / f"store-timed-{model}"
    var.mkdir()
    kinds = [all_off(model), all_on(model, "tags", taking, var)]
    lab.contest(dataclasses.replace(found, name=f"timed-{model}"), kinds, results, finish=weigh)


def measure(lab, results, name, model, ways, taking, hanging, disk, port):
    found = scenario.workload(scenario.APPS / name)
    off = all_off(model)
    for new_urls in (False, True):
        mine = [way for way in ways if way != "tags" and (way == "urls") == new_urls]
        if not mine:
            continue
        kinds = [off]
        for way in mine:
            var = lab.folder / f"store-{name}-{model}-{way}"
            var.mkdir(exist_ok=True)
            if way == "full":
                if not disk:
                    continue
                for old in disk.iterdir():
                    old.unlink()
                var = disk
            kinds.append(all_on(model, way, hanging if way == "hang" else taking, var,
                                port if way == "garbage" else None))
        title = f"{name}-{model}" + ("-urls" if new_urls else "")
        targets = [dataclasses.replace(t, path=NEW_URL) for t in found.targets] if new_urls else found.targets
        workload = dataclasses.replace(found, name=title, targets=tuple(targets))
        if disk and "full" in mine:
            # Before the first minute is written. The file that the database created at its start
            # stays.
            threading.Timer(5, fill, (disk,)).start()
        lab.contest(workload, kinds, results, finish=weigh)
        if disk:
            shutil.rmtree(disk, ignore_errors=True)
            disk.mkdir(exist_ok=True)


def weigh(contestant):
    """Records the memory of the server's first process, and its counters of lost data."""
    status = control.at_rest(contestant.site.var)
    contestant.record["memory_kib"] = control.weigh(status["pid"])["pss_kib"]


# ---- the table ----------------------------------------------------------------------------------------


def table(raw):
    return "\n\n".join(scenario.sections(raw, "Cost of measuring", workload_table))


def workload_table(record):
    off = record["servers"].get("off")
    return report.table(COLUMNS, [line(record, key, server, off) for key, server in record["servers"].items()])


def line(record, key, server, off):
    found = scenario.measured(record, key)
    if found is None:
        return [server["title"], scenario.error_of(server), *[""] * 7]
    return [server["title"], report.with_spread(found["cpu_us"]), scenario.times(server, off, "cpu_us"),
            *scenario.latencies(found), scenario.times(server, off, "p99"), scenario.rate(found),
            report.mebibytes(server.get("memory_kib")), scenario.faults(found)]


if __name__ == "__main__":
    main()
