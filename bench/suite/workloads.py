"""bench/apps/NAME/workload.toml -> Workload: the clients' requests, and the file that each server runs for it."""

import dataclasses
import pathlib
import tomllib

KNOWN_KEYS = {"description", "figure", "packages", "needs", "setup", "visitors", "workers", "connections",
              "target", "expect", "entries"}
KNOWN_NEEDS = {None, "postgres"}


class WorkloadError(Exception):
    """A workload.toml is invalid; with the reason."""


@dataclasses.dataclass(frozen=True)
class Target:
    """One kind of request."""

    group: str
    weight: float
    method: str
    path: str
    headers: dict
    body: str | None = None
    body_file: str | None = None
    body_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class Workload:
    """One application, and the requests to it."""

    name: str
    folder: pathlib.Path
    description: str
    figure: str | None
    packages: tuple
    needs: str | None
    setup: str | None
    visitors: int
    workers: int | None
    connections: int | None
    targets: tuple
    status: int
    contains: str | None
    entries: dict

    def entry(self, key):
        """The file that a server of this kind runs, or None."""
        return (self.folder / self.entries[key]).resolve() if key in self.entries else None


def parse(name, folder, text):
    """Parses a Workload. Unknown keys are errors: a typing mistake must not change the measurement."""
    try:
        table = tomllib.loads(text)
        unknown = table.keys() - KNOWN_KEYS
        if unknown:
            raise WorkloadError(f"{name}: unknown keys {sorted(unknown)}")
        expect = table.get("expect", {})
        workload = Workload(
            name, pathlib.Path(folder), table["description"], table.get("figure"), tuple(table.get("packages", [])),
            table.get("needs"), table.get("setup"), int(table.get("visitors", 0)), table.get("workers"),
            table.get("connections"),
            tuple(parse_target(target) for target in table["target"]),
            int(expect.get("status", 200)), expect.get("contains"), dict(table["entries"]))
    except tomllib.TOMLDecodeError as error:
        raise WorkloadError(f"{name}: {error}") from error
    except KeyError as error:
        raise WorkloadError(f"{name}: {error} is missing") from error
    if workload.needs not in KNOWN_NEEDS:
        raise WorkloadError(f"{name}: needs {workload.needs!r} is not known")
    return workload


def parse_target(table):
    given = [key for key in ("body", "body_file", "body_bytes") if key in table]
    if len(given) > 1:
        raise WorkloadError(f"a target has {' and '.join(given)}: at most one is allowed")
    return Target(table.get("class", "all"), float(table.get("weight", 1)), table.get("method", "GET"), table["path"],
                  dict(table.get("headers", {})), table.get("body"), table.get("body_file"), table.get("body_bytes"))


def load_all(apps):
    """All workloads below that folder by name, and the errors of invalid ones."""
    found, wrong = {}, {}
    for file in sorted(apps.glob("*/workload.toml")):
        name = file.parent.name
        try:
            found[name] = parse(name, file.parent, file.read_text())
        except WorkloadError as error:
            wrong[name] = str(error)
    return dict(sorted(found.items(), key=lambda item: rank(item[0]))), wrong


# From the smallest request to the applications, then special cases: the order of the report.
ORDER = ["hello", "hello-varying", "echo", "bootstrap", "symfony", "laravel", "waits", "mixed", "static", "upload",
         "answer-1mb", "streamed"]


def rank(name):
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)
