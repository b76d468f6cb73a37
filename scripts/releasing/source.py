"""The source archive: the files of a commit and the crates that it needs, for a build without network.

The same commit gives the same bytes, with the same versions of cargo and liblzma.
"""

import json
import lzma
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import tomllib

from . import crates
from .refusal import Refusal

CONFIGURATION = """\
# The crates of the source archive. Cargo uses nothing else, so no build needs the network.
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"

[net]
offline = true
"""
# Kept of a crate that no build on Linux compiles: cargo reads its manifest.
SHELL = ("Cargo.toml", "src/lib.rs", "build.rs")
# Objects and libraries for Windows in ring's crate, and test data of vcpkg's. An archive of sources has none.
BINARIES = (".a", ".dll", ".dylib", ".exe", ".lib", ".o", ".obj", ".so")
PRESET = 6


def write(tree, commit, epoch, name, archive):
    """Writes the archive of a commit; the files in it are below the folder `name`."""
    with tempfile.TemporaryDirectory(prefix="samovar-release-") as work:
        folder = unpack_commit(tree, commit, f"{work}/{name}")
        vendor(folder)
        pack(folder, name, epoch, archive)


def unpack_commit(tree, commit, folder):
    os.makedirs(folder)
    archive = subprocess.run(["git", "archive", "--format=tar", commit], cwd=tree, check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


def vendor(folder):
    """Adds vendor/ with all crates of Cargo.lock, and the configuration that makes cargo use it."""
    wanted = needed(folder)
    crates.cargo(folder, "vendor", "--locked", "--versioned-dirs", "vendor")
    for entry in sorted(os.scandir(f"{folder}/vendor"), key=lambda entry: entry.name):
        with open(f"{entry.path}/Cargo.toml", "rb") as file:
            package = tomllib.load(file)["package"]
        if f"{package['name']} {package['version']}" in wanted:
            drop_binaries(entry.path)
        else:
            empty(entry.path)
    os.makedirs(f"{folder}/.cargo")
    with open(f"{folder}/.cargo/config.toml", "w", encoding="utf-8") as file:
        file.write(CONFIGURATION)


def needed(folder):
    """Crates that a build or a test of the workspace compiles on Linux, with the model checker, too."""
    found = set()
    for flags in ("", "--cfg loom"):
        text = crates.cargo(folder, "tree", "--locked", "--workspace", "--edges", "normal,build,dev",
                            "--prefix", "depth", *crates.targets(), environment={"RUSTFLAGS": flags})
        edges, _ = crates.parse_tree(text.splitlines())
        found |= {key for node, nexts in edges.items() for key in (node, *nexts)}
    return found


def empty(folder):
    """Reduces a crate for other systems to a shell. Cargo resolves it, but never compiles it."""
    with open(f"{folder}/.cargo-checksum.json", encoding="utf-8") as file:
        checksum = json.load(file)["package"]
    kept = {name for name in SHELL if os.path.isfile(f"{folder}/{name}")}
    with open(f"{folder}/Cargo.toml", "rb") as file:
        manifest = tomllib.load(file)
    texts = {}
    # Targets that the manifest names must exist.
    for target in [manifest.get("lib", {}), *manifest.get("bin", [])]:
        if "path" in target:
            kept.add(target["path"])
    for name in kept:
        with open(f"{folder}/{name}", "rb") as file:
            texts[name] = file.read() if name == "Cargo.toml" else b""
    shutil.rmtree(folder)
    for name, text in texts.items():
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(text)
    with open(f"{folder}/.cargo-checksum.json", "w", encoding="utf-8") as file:
        json.dump({"files": {}, "package": checksum}, file)


def drop_binaries(folder):
    """Removes compiled files of a crate, and their checksums, which cargo would compare."""
    path = f"{folder}/.cargo-checksum.json"
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    for name in [name for name in record["files"] if name.endswith(BINARIES)]:
        os.remove(f"{folder}/{name}")
        del record["files"][name]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file, sort_keys=True)


def members(folder):
    """Paths of all files and links, relative and sorted."""
    found = []
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(f"{parent}/{name}")]
        found += [os.path.relpath(f"{parent}/{name}", folder) for name in files + links]
    return sorted(found)


def pack(folder, name, epoch, archive):
    """Packs the files with sorted names, one owner, one time and two modes."""
    with lzma.open(archive, "wb", preset=PRESET) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in members(folder):
                entry = tarfile.TarInfo(f"{name}/{path}")
                entry.mtime = epoch
                status = os.lstat(f"{folder}/{path}")
                if stat.S_ISLNK(status.st_mode):
                    entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, os.readlink(f"{folder}/{path}"), 0o777
                    tar.addfile(entry)
                    continue
                entry.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
                entry.size = status.st_size
                with open(f"{folder}/{path}", "rb") as file:
                    tar.addfile(entry, file)


def unpacked(archive, folder):
    """Unpacks an archive; returns its only folder."""
    subprocess.run(["tar", "-x", "-f", archive, "-C", folder], check=True)
    names = os.listdir(folder)
    if len(names) != 1:
        raise Refusal(f"{archive} contains {len(names)} folders", "report this as a defect of scripts/releasing")
    return f"{folder}/{names[0]}"


def verify(archive):
    """Resolves the archive's workspace without network and without a cache of crates."""
    with tempfile.TemporaryDirectory(prefix="samovar-release-") as work:
        os.makedirs(f"{work}/home")
        os.makedirs(f"{work}/tree")
        folder = unpacked(archive, f"{work}/tree")
        offline = {"CARGO_HOME": f"{work}/home", "CARGO_NET_OFFLINE": "true"}
        crates.cargo(folder, "metadata", "--offline", "--locked", "--format-version", "1", environment=offline)
