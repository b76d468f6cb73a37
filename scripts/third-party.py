#!/usr/bin/env python3
"""Prints the licence texts of the crates that the binaries contain, each text once.

The argument is the command that starts cargo. The licences require these notices in binary packages.
"""

import hashlib
import json
import pathlib
import subprocess
import sys

LICENCE_FILES = ("licen", "copying", "notice", "unlicense", "copyright")


def contained(cargo: list[str]) -> set[tuple[str, str]]:
    """Names and versions of the crates that are compiled into the binaries."""
    listed = subprocess.run(
        [*cargo, "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]
        + ["--package", "samovar", "--package", "samovar-php"],
        check=True, capture_output=True, text=True,
    ).stdout
    crates = set()
    for line in listed.splitlines():
        words = line.split()
        if len(words) >= 2 and "/crates/" not in line:
            crates.add((words[0], words[1].lstrip("v")))
    return crates


def main() -> None:
    cargo = sys.argv[1:] or ["cargo"]
    metadata = subprocess.run(
        [*cargo, "metadata", "--locked", "--format-version", "1"],
        check=True, capture_output=True, text=True,
    ).stdout
    wanted = contained(cargo)
    texts: dict[str, tuple[str, list[str]]] = {}
    for crate in sorted(json.loads(metadata)["packages"], key=lambda crate: crate["name"]):
        if (crate["name"], crate["version"]) not in wanted:
            continue
        label = f"{crate['name']} {crate['version']} ({crate['license'] or 'see its text'})"
        folder = pathlib.Path(crate["manifest_path"]).parent
        files = [file for file in sorted(folder.iterdir())
                 if file.is_file() and file.name.lower().startswith(LICENCE_FILES)]
        for text in [file.read_text(errors="replace").strip() for file in files] or [""]:
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, (text, []))[1].append(label)
    print("Samovar contains these libraries. Each licence follows the list of its libraries.")
    for text, labels in texts.values():
        print("\n" + "=" * 80 + "\n" + "\n".join(labels) + "\n" + "-" * 80 + "\n\n" + text)


main()
