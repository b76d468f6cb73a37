"""Releases in folders, the link to the current one, and a watcher that waits for a new one."""

import contextlib
import http.client
import os
import pathlib
import shutil
import subprocess
import threading
import time

from . import accounting, servers
from .client import ClientError

SYMFONY = servers.ROOT / "examples/symfony"
HEADER = "X-Release"
BUILD_SECONDS_MAX = 120
ASK_SECONDS_MAX = 10
# A visitor without pauses would be a load of its own.
ASK_EVERY_SECONDS = 0.02
# Requests after the first response of the new release: does an old one still appear?
ASKED_AFTERWARDS, ASK_AFTERWARDS_EVERY_SECONDS = 10, 0.05
SEE_SECONDS_MAX = 15
WEIGH_EVERY_SECONDS = 0.02


def build(app, folder, name):
    """A release that is ready to be served: the application, its name, its filled caches."""
    shutil.copytree(app, folder)
    shutil.copytree(SYMFONY, folder / "symfony")
    (folder / "name.php").write_text(f"<?php return '{name}';\n")
    (folder / "var/sessions").mkdir(parents=True)
    done = subprocess.run(["php8.2", "-d", f"session.save_path={folder / 'var/sessions'}", folder / "build.php"],
                          cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX,
                          env=servers.outer_environment())
    if done.returncode:
        raise ClientError(f"release {name} is not built: {(done.stdout + done.stderr).strip()[-300:]}")


def switch(link, folder):
    """Does the same as `ln -sfn FOLDER next && mv -T next LINK`: the link exists at all times."""
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(link.name + ".new")
    new.unlink(missing_ok=True)
    new.symlink_to(pathlib.Path(folder).absolute())
    os.replace(new, link)


def ask(address):
    """The release that responds now; None if there is no response or a bad one."""
    connection = http.client.HTTPConnection(address, timeout=ASK_SECONDS_MAX)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/", headers={"Connection": "close"})
        answer = connection.getresponse()
        answer.read()
        return answer.getheader(HEADER) if answer.status == 200 else None
    return None


class Watcher(threading.Thread):
    """Sends requests until the new release responds, and some afterwards."""

    def __init__(self, address, name, asking=ask):
        super().__init__(daemon=True)
        self.address, self.name, self.asking = address, name, asking
        self.seen_at, self.old_afterwards, self.given_up = None, 0, threading.Event()
        self.start()

    def run(self):
        while self.asking(self.address) != self.name:
            if self.given_up.wait(ASK_EVERY_SECONDS):
                return
        self.seen_at = time.monotonic()
        for _ in range(ASKED_AFTERWARDS):
            if self.given_up.wait(ASK_AFTERWARDS_EVERY_SECONDS):
                return
            # The client counts requests without a response.
            self.old_afterwards += self.asking(self.address) not in (self.name, None)

    def see(self, seconds_max=SEE_SECONDS_MAX):
        """Time of the new release's first response (None if there is none), and the number of old responses after it.
        """
        self.join(seconds_max)
        self.given_up.set()
        self.join()
        return self.seen_at, self.old_afterwards


class Scales(threading.Thread):
    """Weighs a server's tree repeatedly: [(when, PSS KiB)]. This costs CPU, and so latency."""

    def __init__(self, roots):
        super().__init__(daemon=True)
        self.roots, self.readings, self.ended = roots, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(WEIGH_EVERY_SECONDS):
            self.readings.append((time.monotonic(), accounting.memory(self.roots())["pss_kib"]))

    def end(self):
        self.ended.set()
        self.join()
        return self.readings
