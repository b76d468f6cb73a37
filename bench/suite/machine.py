"""The machine and the versions of the measurement, for raw.json."""

import os
import pathlib
import platform
import re
import shutil
import subprocess

from . import client
from .servers import ROOT, samovar_binary

# Commands that print each program's version; the first number in the output is kept.
VERSION_COMMANDS = {
    "samovar": [samovar_binary(), "--version"],
    "php": ["php8.2", "--version"],
    "php-fpm": ["php-fpm8.2", "--version"],
    "nginx": ["nginx", "-v"],
    "postgresql": ["psql", "--version"],
    "rustc": ["rustc", "--version"],
    "perf": ["perf", "--version"],
}


def version_in(text):
    found = re.search(r"\d+\.\d+[\w.+-]*", text)
    return found.group(0) if found else None


def output(command):
    """Output of a command on stdout and stderr; empty if the command is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def version_of(program):
    return version_in(output(VERSION_COMMANDS[program]))


def versions():
    return {program: version_of(program) for program in VERSION_COMMANDS}


def cpu_model(cpuinfo):
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", cpuinfo, re.M)
    return found.group(1).strip() if found else platform.machine()


def memory_mib(meminfo):
    return int(re.search(r"^MemTotal:\s+(\d+)", meminfo, re.M).group(1)) // 1024


def distribution(os_release):
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)', os_release, re.M)
    return found.group(1) if found else "Linux"


def describe():
    return {
        "cpu": cpu_model(pathlib.Path("/proc/cpuinfo").read_text()),
        "cores": os.cpu_count(),
        "memory_mib": memory_mib(pathlib.Path("/proc/meminfo").read_text()),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": distribution(pathlib.Path("/etc/os-release").read_text()),
        "load_average": os.getloadavg()[0],
        "commit": output(["git", "rev-parse", "--short=12", "HEAD"]).strip() or None,
        "changed": bool(output(["git", "status", "--porcelain", "--untracked-files=no"]).strip()),
    }


def missing_packages(packages):
    """The Debian packages that are not installed."""
    missing = []
    for package in packages:
        state = output(["dpkg-query", "-W", "-f", "${Status}", package])
        if "install ok installed" not in state:
            missing.append(package)
    return missing


def tools_missing():
    """Tools that the suite itself needs and that are missing, with the command that installs them."""
    missing = {}
    if not pathlib.Path(samovar_binary()).exists():
        missing["samovar"] = "make build"
    if not client.binary().exists():
        missing["samovar-load"] = "cargo build --release -p samovar-load"
    if not shutil.which("php8.2"):
        missing["php8.2"] = "scripts/setup.sh bench"
    return missing
