"""bench/peers/NAME.toml -> Peer: how to find, start and stop another server."""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tomllib

FIND_SECONDS_MAX = 20
# Results of bench/peers/build.sh, and the variables that pass them to the peers' files.
BUILT = pathlib.Path(__file__).resolve().parents[2] / "target/peers"
BUILT_VARIABLES = {"BENCH_SWOOLE": "swoole.so", "BENCH_WORKERMAN": "workerman"}


class PeerError(Exception):
    """A peer's file is invalid; with the reason."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """Another server, as described by its file."""

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
    """Parses a Peer."""
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
    """Replaces {entry}, {port} and the other known names; other braces stay, because configuration files have many."""
    for key, value in values.items():
        text = text.replace("{" + key + "}", str(value))
    return text


def load_all(folder):
    """All peers of that folder, and the errors of invalid files."""
    found, wrong = {}, {}
    for file in sorted(pathlib.Path(folder).glob("*.toml")):
        try:
            found[file.stem] = parse(file.stem, file.read_text())
        except PeerError as error:
            wrong[file.stem] = str(error)
    return found, wrong


def built(environment, folder=BUILT):
    """Variables for the peers built in that folder that are missing in the environment; existing ones stay."""
    found = {name: str(folder / below) for name, below in BUILT_VARIABLES.items()
             if name not in environment and (folder / below).exists()}
    path = environment.get("PATH", os.defpath)
    if (folder / "bin").is_dir():
        found["PATH"] = f"{folder / 'bin'}:{path}"
    return found


def version(peer):
    """The first line of its find command's output, or None if it is not installed."""
    if not shutil.which("sh"):
        return None
    try:
        out = subprocess.run(["sh", "-c", peer.find], capture_output=True, text=True, timeout=FIND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return None
    lines = out.stdout.strip().splitlines()
    return (lines[0] if lines else "installed") if out.returncode == 0 else None
