"""bench/peers/NAME.toml -> Peer: how another server is found, started and stopped."""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tomllib

FIND_SECONDS_MAX = 20
# What bench/peers/build.sh has built, and the variable that says so to the peers' files.
BUILT = pathlib.Path(__file__).resolve().parents[2] / "target/peers"
BUILT_VARIABLES = {"BENCH_SWOOLE": "swoole.so", "BENCH_WORKERMAN": "workerman"}


class PeerError(Exception):
    """A peer's file that cannot be used, and why."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """Another server, as its file says."""

    key: str
    name: str
    homepage: str
    find: str
    install: str
    entry: str
    start: tuple
    stop: signal.Signals
    files: tuple
    environment: dict


def parse(key, text):
    """The Peer in that text."""
    try:
        table = tomllib.loads(text)
        ready = table.get("ready", "tcp")
        if ready != "tcp":
            raise PeerError(f"{key}: ready = {ready!r} is not known")
        return Peer(key, table["name"], table.get("homepage", ""), table["find"], table["install"], table["entry"],
                    tuple(table["start"]), signal.Signals[f"SIG{table.get('stop', 'TERM')}"],
                    tuple((file["path"], file["text"]) for file in table.get("file", [])),
                    dict(table.get("env", {})))
    except tomllib.TOMLDecodeError as error:
        raise PeerError(f"{key}: {error}") from error
    except KeyError as error:
        raise PeerError(f"{key}: {error} is missing or unknown") from error


def fill(text, values):
    """Replaces {entry}, {port} and their like; other braces stay, since configuration files are full of them."""
    for key, value in values.items():
        text = text.replace("{" + key + "}", str(value))
    return text


def load_all(folder):
    """All peers of that folder, and what is wrong with files that cannot be used."""
    found, wrong = {}, {}
    for file in sorted(pathlib.Path(folder).glob("*.toml")):
        try:
            found[file.stem] = parse(file.stem, file.read_text())
        except PeerError as error:
            wrong[file.stem] = str(error)
    return found, wrong


def built(environment, folder=BUILT):
    """What that environment lacks to find the peers built in that folder: another place that it names stays."""
    found = {name: str(folder / below) for name, below in BUILT_VARIABLES.items()
             if name not in environment and (folder / below).exists()}
    path = environment.get("PATH", os.defpath)
    if (folder / "bin").is_dir():
        found["PATH"] = f"{folder / 'bin'}:{path}"
    return found


def version(peer):
    """The first line that its find command prints, or None where it is not installed."""
    if not shutil.which("sh"):
        return None
    try:
        out = subprocess.run(["sh", "-c", peer.find], capture_output=True, text=True, timeout=FIND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return None
    lines = out.stdout.strip().splitlines()
    return (lines[0] if lines else "installed") if out.returncode == 0 else None
