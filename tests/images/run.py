#!/usr/bin/python3
"""Runs an image of `make images` without a container engine, and checks its promises.

The root file system and the application are read-only, /tmp is a new tmpfs, and the process has the
user, environment and command of the image, and no capability. Needs root.
"""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

LAYER_BYTES_MAX = 90_000_000
FIRST_RESPONSE_SECONDS_MAX = 1.0
WAIT_SECONDS_MAX = 60
EXTENSIONS = "apcu bcmath curl gd intl mbstring mysqli opcache pgsql redis sqlite3 xml zip"
PAGE = """<?php
session_start();
$writable = array_filter(['/app', '/usr', '/etc', '/var'], 'is_writable');
echo json_encode(['uid' => posix_getuid(), 'writable' => $writable, 'extensions' =>
    array_map('strtolower', [...get_loaded_extensions(), ...get_loaded_extensions(true)])]);
"""
# The namespace of processes ends with the first process, and so do all others.
ENTER = """
root=$1 app=$2 user=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$app" "$root/app"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
mount -o remount,bind,ro "$root/app"
exec chroot "$root" setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups \
    --bounding-set=-all --inh-caps=-all --no-new-privs sh -c 'cd "$1" && shift && exec "$@"' sh "$@"
"""


def main(archive):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        image = Image(archive, work)
        check(image.layer_bytes <= LAYER_BYTES_MAX, f"{image.layer_bytes} compressed bytes")
        print(f"size: {image.layer_bytes / 1e6:.1f} MB compressed")
        app = work / "app"
        (app / "public").mkdir(parents=True)
        (app / "public" / "index.php").write_text(PAGE, "utf-8")
        work.chmod(0o755)
        served(image, app)
    print("the image is good")


class Image:
    """The root file system and the configuration of an image archive."""

    def __init__(self, archive, work):
        self.root = work / "root"
        with tarfile.open(archive) as blobs:
            loaded = json.load(blobs.extractfile("manifest.json"))[0]
            self.config = json.load(blobs.extractfile(loaded["Config"]))["config"]
            member = blobs.getmember(loaded["Layers"][0])
            self.layer_bytes = member.size
            layer = tarfile.open(fileobj=blobs.extractfile(member), mode="r:gz")
            layer.extractall(self.root, filter="fully_trusted")

    def start(self, app, command, environment):
        variables = self.config["Env"] + [f"{name}={value}" for name, value in environment.items()]
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--propagation", "private"]
            + ["bash", "-euc", ENTER, "bash", self.root, app, self.config["User"]]
            + [self.config["WorkingDir"], "env", "-i", *variables, *command],
            start_new_session=True,
        )


def served(image, app):
    site, admin = free_port(), free_port()
    environment = {
        "SAMOVAR_LISTEN": f"127.0.0.1:{site}",
        "SAMOVAR_ADMIN": f"127.0.0.1:{admin}",
        "SAMOVAR_ADMIN_TOKEN": "none",
        "SAMOVAR_WORKERS": 2,
    }
    before = time.monotonic()
    process = image.start(app, image.config["Cmd"], environment)
    try:
        status, body = first_response(process, site)
        seconds = time.monotonic() - before
        print(f"first response after {seconds * 1000:.0f} ms")
        check(status == 200, f"status {status}: {body}")
        page = json.loads(body)
        check(page["uid"] == 33, page)
        check(not page["writable"], page)
        loaded = ["opcache" if name == "zend opcache" else name for name in page["extensions"]]
        check(set(EXTENSIONS.split()) <= set(loaded), loaded)
        check(get(admin, "/ready")[0] == 200, "/ready")
        if "IMAGE_ON_BUSY_MACHINE" not in os.environ:
            check(seconds <= FIRST_RESPONSE_SECONDS_MAX, f"first response after {seconds} s")
        health(image, process, environment)
        os.kill(server_of(process), getattr(signal, image.config["StopSignal"]))
        check(process.wait(WAIT_SECONDS_MAX) == 0, f"exit status {process.returncode}")
    finally:
        if process.poll() is None:
            # The kernel ends the other processes of the namespace with its first one.
            os.kill(server_of(process), signal.SIGKILL)
            process.wait(WAIT_SECONDS_MAX)


def first_response(process, port):
    until = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < until:
        check(process.poll() is None, "the server has ended")
        try:
            return get(port, "/")
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise SystemExit("failed: no response")


def health(image, process, environment):
    """Runs the health check in the namespaces of the server, as `docker exec` would."""
    kind, command = image.config["Healthcheck"]["Test"]
    check(kind == "CMD-SHELL", kind)
    variables = image.config["Env"] + [f"{name}={value}" for name, value in environment.items()]
    user = image.config["User"].split(":")[0]
    done = subprocess.run(
        ["nsenter", "--target", str(server_of(process)), "--mount", "--pid", "--root"]
        + ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        + ["env", "-i", *variables, "sh", "-c", 'cd "$0" && exec "$@"', image.config["WorkingDir"]]
        + ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    check(done.returncode == 0, done)


def server_of(process):
    """The first process of the namespace: the child of unshare."""
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    return int(pathlib.Path(path).read_text("ascii").split()[0])


def get(port, target):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS_MAX)
    try:
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def check(good, why):
    if not good:
        raise SystemExit(f"failed: {why}")


if __name__ == "__main__":
    main(sys.argv[1])
