"""Launch -> Running: starts the processes of one server, waits until it accepts connections, stops them."""

import contextlib
import dataclasses
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import time

from . import accounting

READY_SECONDS_MAX = 60  # A first boot may fill an application's caches.
STOP_SECONDS_MAX = 15
POLL_SECONDS = 0.05
LOG_TAIL_CHARS = 600


class LaunchError(Exception):
    """A server does not start; with the end of its log."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """Start of one server: everything that is decided before a process exists."""

    commands: tuple
    port: int
    var: pathlib.Path
    environment: dict
    files: dict = dataclasses.field(default_factory=dict)
    sockets: tuple = ()
    stop: signal.Signals = signal.SIGTERM
    working_directory: pathlib.Path | None = None

    def as_text(self):
        """The commands as typed in a shell."""
        return [shlex.join(str(part) for part in command) for command in self.commands]


class Running:
    """The processes of one server; a context manager that stops them."""

    def __init__(self, launch):
        self.launch = launch
        self.address = f"127.0.0.1:{launch.port}"
        self.log = launch.var / "server.log"
        self.processes = []
        launch.var.mkdir(parents=True, exist_ok=True)
        for path, text in launch.files.items():
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).write_text(text)
        try:
            self.start()
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def start(self):
        environment = self.launch.environment
        with open(self.log, "ab") as log:
            for command in self.launch.commands:
                # A separate session: Ctrl-C goes to the suite, which then stops the servers in
                # order.
                self.processes.append(subprocess.Popen(
                    [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env=environment, cwd=self.launch.working_directory or self.launch.var, start_new_session=True))

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            if not self.alive():
                raise LaunchError(f"does not start: {self.log_tail()}")
            if self.takes_connections():
                return
            time.sleep(POLL_SECONDS)
        raise LaunchError(f"accepts no connections after {READY_SECONDS_MAX} s: {self.log_tail()}")

    def takes_connections(self):
        try:
            for path in self.launch.sockets:
                with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
                    connection.connect(str(path))
            socket.create_connection(("127.0.0.1", self.launch.port), 1).close()
            return True
        except OSError:
            return False

    def alive(self):
        return all(process.poll() is None for process in self.processes)

    def roots(self):
        return [process.pid for process in self.processes]

    def log_tail(self):
        logs = [log.read_text(errors="replace").strip() for log in sorted(self.launch.var.glob("*.log"))]
        return "\n".join(filter(None, logs))[-LOG_TAIL_CHARS:] or "(it wrote nothing)"

    def stop(self):
        """Requests a stop, waits, and then kills the processes of the trees that are left."""
        pids = accounting.tree(self.roots())
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(self.launch.stop)
        deadline = time.monotonic() + STOP_SECONDS_MAX
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
        sessions = set(self.roots())
        for pid in pids:
            # The session shows that the process id still denotes that process, not a new one.
            with contextlib.suppress(OSError):
                if os.getsid(pid) in sessions:
                    os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]
