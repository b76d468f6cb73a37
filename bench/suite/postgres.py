"""A private PostgreSQL for workloads that need one: a temporary cluster behind a unix socket."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

CONNECTIONS_MAX = 300
READY_SECONDS_MAX = 30
STOP_SECONDS_MAX = 15
INSTALL = "apt-get install postgresql php8.2-pgsql"


class PostgresError(Exception):
    """The database does not start; with the reason."""


def program(name):
    """Debian keeps these programs outside of PATH, in a folder per version."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def options(folder):
    """Options of the server, in addition to those of initdb."""
    return ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}",
            "-c", f"max_connections={CONNECTIONS_MAX}", "-c", "fsync=off", "-c", "autovacuum=off"]


class Postgres:
    """The running cluster; a context manager that stops it and removes its files."""

    def __init__(self):
        if not program("initdb") or not program("postgres"):
            raise PostgresError(f"PostgreSQL is missing\nhint: run {INSTALL}")
        # Short, and not in a folder that only root may enter, because it holds the socket.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="samovar-pg-", dir="/tmp"))
        self.process = None
        self.user = "postgres"
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def start(self):
        # PostgreSQL refuses to run as root.
        drop = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            drop = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        data = self.folder / "data"
        made = subprocess.run([program("initdb"), "-D", data, "-U", self.user, "-A", "trust", "--no-sync",
                               "--locale=C", "--encoding=UTF8"],
                              cwd=self.folder, capture_output=True, text=True, **drop)
        if made.returncode != 0:
            raise PostgresError(f"initdb failed: {made.stderr.strip()}")
        with open(self.folder / "server.log", "wb") as log:
            self.process = subprocess.Popen([program("postgres"), "-D", data, *options(self.folder)], stdout=log,
                                            stderr=log, cwd=self.folder, start_new_session=True, **drop)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise PostgresError(f"does not start: {(self.folder / 'server.log').read_text()[-600:]}")
            time.sleep(0.05)

    def ready(self):
        return subprocess.run([program("pg_isready"), "-q", "-h", self.folder, "-U", self.user]).returncode == 0

    def environment(self):
        return {"BENCH_PG_DSN": f"pgsql:host={self.folder};dbname=postgres", "BENCH_PG_USER": self.user}

    def stop(self):
        if self.process is not None:
            # Fast shutdown: disconnects the remaining clients.
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS_MAX)
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
