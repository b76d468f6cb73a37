"""bench/peers/NAME.toml -> Peer: how another server is found, started and stopped."""

import dataclasses
import pathlib
import shutil
import signal
import subprocess
import tomllib

FIND_SECONDS_MAX = 20


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
