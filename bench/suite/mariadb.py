"""A private MariaDB for scenarios that need one: its own files and a unix socket."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 15
CONNECTIONS_MAX = 300
PROGRAM = "/usr/sbin/mariadbd"
INSTALL = "apt-get install mariadb-server-core php8.2-mysql"


class MariaDbError(Exception):
    """The database does not start; with the reason."""


def command(folder):
    """Without passwords: the server checks no privileges, so the system tables are not needed."""
    owner = ["--user=root"] if os.geteuid() == 0 else []
    return [PROGRAM, "--no-defaults", *owner, f"--datadir={folder}/data", f"--socket={folder}/sock",
            f"--pid-file={folder}/pid", f"--max-connections={CONNECTIONS_MAX}", "--skip-grant-tables",
            "--skip-networking", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-use-native-aio=0"]


class MariaDb:
    """The running server; a context manager that stops it and removes its files."""

    def __init__(self):
        if not os.access(PROGRAM, os.X_OK):
            raise MariaDbError(f"MariaDB is missing\nhint: run {INSTALL}")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="samovar-mariadb-", dir="/tmp"))
        (self.folder / "data").mkdir()
        with open(self.folder / "server.log", "wb") as log:
            self.process = subprocess.Popen(command(self.folder), stdout=log, stderr=log, cwd=self.folder,
                                            start_new_session=True)
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise MariaDbError(f"does not start: {(self.folder / 'server.log').read_text()[-600:]}")
            time.sleep(0.05)

    def ready(self):
        with contextlib.suppress(OSError), contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.connect(f"{self.folder}/sock")
            return True
        return False

    def environment(self):
        return {"BENCH_MYSQL_DSN": f"mysql:unix_socket={self.folder}/sock", "BENCH_MYSQL_USER": "root"}

    def stop(self):
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS_MAX)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
