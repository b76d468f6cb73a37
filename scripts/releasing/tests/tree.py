"""A small tree with all places that name a version, in a repository of git."""

import os
import pathlib
import subprocess
import tempfile

LOG = """# Changelog

Header.

## Unreleased

### Server

- Serves pages.
- Serves pages quickly,
  and files.

## 0.1.0 - 2026-12-01

### Server

- Starts.
"""
FILES = {
    ".gitignore": "/target\n",
    "CHANGELOG.md": LOG,
    "Cargo.toml": '[workspace]\nmembers = []\n\n[workspace.package]\nversion = "0.1.0"\n'
                  '\n[workspace.dependencies]\nbase64 = { version = "0.1.0" }\n',
    "Cargo.lock": 'version = 4\n\n[[package]]\nname = "other"\nversion = "0.1.0"\n'
                  '\n[[package]]\nname = "samovar-ring"\nversion = "0.1.0"\n',
    "crates/ring/fuzz/Cargo.toml": '[package]\nname = "samovar-ring-fuzz"\ndescription = "Fuzzing."\n'
                                   'version = "0.1.0"\n',
    "deploy/helm/samovar/Chart.yaml": 'apiVersion: v2\nversion: 0.1.0\nappVersion: "0.1.0"\n',
    "docs/start/install.md": "samovar_0.1.0-1~deb12_amd64.deb  samovar-php8.2_0.1.0-1~deb12_amd64.deb\n"
                             "samovar 0.1.0\nPHP 8.2.36, libphp 0.1.0\n",
    "docs/guide/deploy.md": "samovar-php 0.1.0 (PHP 8.2.36)\n",
}
AUTHOR = {f"GIT_{role}_{field}": "tests@samovar.internal"
          for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}


def git(tree, *arguments):
    # Settings of the machine, such as hooks and signatures, do not apply.
    env = os.environ | AUTHOR | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", *arguments], cwd=tree, check=True, stdout=subprocess.DEVNULL, env=env)


def commit(tree):
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "tests: change")


def make(test, **changed):
    """A committed tree that is removed after the test. `changed` replaces texts, by path."""
    folder = tempfile.TemporaryDirectory(prefix="samovar-release-test-")
    test.addCleanup(folder.cleanup)
    tree = pathlib.Path(folder.name)
    for path, text in (FILES | changed).items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, "utf-8")
    git(tree, "init", "--quiet")
    commit(tree)
    return tree
