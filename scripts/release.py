#!/usr/bin/python3
"""Makes a release of Samovar (docs/internals/releasing.md):

    scripts/release.py check             the version is the same everywhere, and CHANGELOG.md has its form
    scripts/release.py prepare VERSION   writes the version everywhere, and its section into CHANGELOG.md
    scripts/release.py build VERSION     the files of the release, in target/releases/VERSION
    scripts/release.py add VERSION FILE… adds packages that were built elsewhere, and writes SHA256SUMS again
    scripts/release.py archive FILE      the source archive of the current commit alone

`build --without-packages` leaves out the Debian packages, which take ten minutes.
"""

import argparse
import datetime
import fnmatch
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from releasing import changelog, crates, places, repository, sbom, source
from releasing.refusal import Refusal
from releasing.version import Version

TREE = pathlib.Path(__file__).resolve().parent.parent
CHANGELOG = "CHANGELOG.md"
SUMS = "SHA256SUMS"


def check(tree):
    """Lines about everything that is wrong."""
    text = (tree / CHANGELOG).read_text("utf-8")
    wrong = places.differences(tree) + changelog.problems(text)
    newest = changelog.newest(text)
    # Before the first release there is no section, but a version.
    if newest is not None and newest != places.current(tree):
        wrong.append(f"{CHANGELOG}: the newest section is {newest}, but Cargo.toml has {places.current(tree)}")
    return wrong


def prepare(tree, version, today):
    """Writes the version into the tree. Returns whether something was to do."""
    text = (tree / CHANGELOG).read_text("utf-8")
    if changelog.newest(text) == version and not check(tree):
        return False
    repository.require_clean(tree)
    texts = places.replaced(tree, version)
    texts[tree / CHANGELOG] = changelog.cut(text, version, today)
    for file, new in texts.items():
        file.write_text(new, "utf-8")
    require_checked(tree)
    return True


def require_checked(tree):
    wrong = check(tree)
    if wrong:
        raise Refusal("the tree is not ready:\n" + "\n".join(wrong), "correct these lines")


def require_releasable(tree, version):
    """The section of the changelog, if the current commit can be released with this version."""
    repository.require_clean(tree)
    if places.current(tree) != version:
        raise Refusal(f"Cargo.toml has version {places.current(tree)}, not {version}",
                      f"make release-prepare VERSION={version}, then commit")
    section = changelog.of_version((tree / CHANGELOG).read_text("utf-8"), version)
    if section is None:
        raise Refusal(f"{CHANGELOG} has no section {version}",
                      f"make release-prepare VERSION={version}, then commit")
    require_checked(tree)
    tagged = repository.tagged(tree, f"v{version}")
    if tagged not in (None, repository.commit(tree)):
        raise Refusal(f"the tag v{version} is at {tagged[:12]}, not at the current commit",
                      f"git checkout v{version}, or choose a newer version")
    return section


def folder_of(tree, version):
    return tree / "target" / "releases" / str(version)


def build(tree, version, with_packages):
    """Makes all files in a new folder, then puts it in the place of the old one."""
    section = require_releasable(tree, version)
    commit, epoch = repository.commit(tree), commit_time(tree)
    folder = folder_of(tree, version)
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    archive = new / f"samovar-{version}.tar.xz"
    source.write(tree, commit, epoch, f"samovar-{version}", archive)
    source.verify(archive)
    say(f"{archive.name} is complete: its workspace resolves without network")
    graph, rust = crates.read(tree), rust_version(tree)
    for program in crates.PROGRAMS:
        text = json.dumps(sbom.document(graph, program, str(version), commit, epoch, rust), indent=2)
        (new / f"{program}-{version}.cdx.json").write_text(text + "\n", "utf-8")
    (new / "release-notes.md").write_text(f"# Samovar {version}\n\n{section.text()}\n", "utf-8")
    if with_packages:
        add_packages(tree, version, epoch, new)
    repository.require_clean(tree)
    (new / SUMS).write_text(sums(new), "utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return folder


def add_packages(tree, version, epoch, folder):
    # Variables of `make release` are not meant for this make.
    env = {name: value for name, value in os.environ.items()
           if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "VERSION", "PACKAGES", "PACKAGE_VERSION")}
    subprocess.run(["make", "--no-print-directory", "packages"], cwd=tree, check=True,
                   env=env | {"SOURCE_DATE_EPOCH": str(epoch)})
    # Packages for other releases of Debian and versions of PHP are made on other machines.
    found = sorted((tree / "target" / "packages").glob(f"samovar*_{version.debian()}-*.deb"))
    if not found:
        raise Refusal(f"make packages has made no package of version {version.debian()}",
                      "look at target/packages, and at scripts/packages.sh")
    for file in found:
        shutil.copyfile(file, folder / file.name)


def packages_of(version):
    """Patterns of the names of packages: Debian's, and RPMs."""
    return f"samovar*_{version.debian()}-*.deb", f"samovar*-{version.debian()}-*.rpm"


def add(tree, version, files):
    """Adds packages to a release that is built already."""
    folder = folder_of(tree, version)
    if not (folder / SUMS).is_file():
        raise Refusal(f"{folder.relative_to(tree)} is not a built release", f"make release VERSION={version}")
    for file in files:
        if not any(fnmatch.fnmatchcase(file.name, pattern) for pattern in packages_of(version)):
            raise Refusal(f"{file.name} is not a package of version {version}", "name only packages of this version")
        if (folder / file.name).exists():
            raise Refusal(f"the release has {file.name} already", f"make release VERSION={version} begins again")
    for file in files:
        shutil.copyfile(file, folder / file.name)
    (folder / SUMS).write_text(sums(folder), "utf-8")
    return folder


def commit_time(tree):
    """Seconds since 1970: of SOURCE_DATE_EPOCH, or else of the commit."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    # Eleven digits are a year before 9999, the last one that Python can print.
    if text and not (text.isascii() and text.isdigit() and len(text) <= 11):
        raise Refusal(f"SOURCE_DATE_EPOCH is `{text}`", "unset it, or set seconds since 1970")
    return int(text) if text else repository.time(tree)


def rust_version(tree):
    done = subprocess.run([os.environ.get("RUSTC", "rustc"), "--version"], cwd=tree, check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.split()[1]


def sums(folder):
    """Lines for `sha256sum --check`."""
    lines = []
    for file in sorted(path for path in folder.iterdir() if path.name != SUMS):
        with file.open("rb") as opened:
            lines.append(f"{hashlib.file_digest(opened, 'sha256').hexdigest()}  {file.name}\n")
    return "".join(lines)


def say(text):
    print(f"release: {text}", flush=True)


def show(tree, folder):
    for file in sorted(folder.iterdir()):
        print(file.relative_to(tree))


def next_steps(version):
    say(f"the tree has version {version}; next:")
    for step in ("git diff", f"git commit --all --message 'release: set version {version}'",
                 "make test", f"make release VERSION={version}",
                 f"git tag --annotate v{version} --message 'Samovar {version}'"):
        print(f"    {step}")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    commands.add_parser("prepare").add_argument("version")
    builder = commands.add_parser("build")
    builder.add_argument("version")
    builder.add_argument("--without-packages", action="store_true")
    adder = commands.add_parser("add")
    adder.add_argument("version")
    adder.add_argument("file", type=pathlib.Path, nargs="+")
    commands.add_parser("archive").add_argument("file", type=pathlib.Path)
    return parser.parse_args(arguments)


def run(tree, asked):
    if asked.command == "check":
        require_checked(tree)
    elif asked.command == "prepare":
        version = Version(asked.version)
        if not prepare(tree, version, datetime.datetime.now(datetime.timezone.utc).date()):
            say(f"version {version} is prepared already")
        next_steps(version)
    elif asked.command == "build":
        show(tree, build(tree, Version(asked.version), not asked.without_packages))
    elif asked.command == "add":
        show(tree, add(tree, Version(asked.version), asked.file))
    else:
        name = asked.file.name.removesuffix(".tar.xz")
        asked.file.parent.mkdir(parents=True, exist_ok=True)
        source.write(tree, repository.commit(tree), commit_time(tree), name, asked.file)
        source.verify(asked.file)


def main():
    try:
        run(TREE, parse(sys.argv[1:]))
    except Refusal as refusal:
        sys.exit(f"release: {refusal}\nhint: {refusal.hint}")
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
