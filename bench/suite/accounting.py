"""Resources used by a process tree: CPU time, memory, system calls. Read from /proc and from perf."""

import contextlib
import os
import pathlib
import re

TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
SYSCALL_EVENT = "raw_syscalls:sys_enter"


def tree(roots):
    """The process ids of the roots and of all their descendants."""
    pids, todo = [], list(roots)
    while todo:
        pid = todo.pop()
        pids.append(pid)
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            # A process may end while it is read.
            with contextlib.suppress(OSError):
                todo += [int(child) for child in task.read_text().split()]
    return pids


def ticks(stat):
    """CPU ticks in the text of /proc/PID/stat: user, system, and the same of ended children."""
    # The name in parentheses may contain blanks and parentheses.
    fields = stat.rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15])


def cpu_us(roots):
    """CPU time used by the trees so far. Ended processes count, because it is charged to their parents."""
    total = 0
    for pid in tree(roots):
        with contextlib.suppress(OSError):
            total += ticks(pathlib.Path(f"/proc/{pid}/stat").read_text())
    return total * TICK_US


def rollup(text):
    """PSS and USS in KiB, in the text of /proc/PID/smaps_rollup."""
    def field(name):
        found = re.search(rf"^{name}:\s+(\d+)", text, re.M)
        return int(found.group(1)) if found else 0
    return {"pss_kib": field("Pss"), "uss_kib": field("Private_Clean") + field("Private_Dirty")}


def memory(roots):
    """PSS and USS of the trees, and the number of their processes."""
    total = {"pss_kib": 0, "uss_kib": 0, "processes": 0}
    for pid in tree(roots):
        with contextlib.suppress(OSError):
            one = rollup(pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text())
            total["pss_kib"] += one["pss_kib"]
            total["uss_kib"] += one["uss_kib"]
            total["processes"] += 1
    return total


def perf_prefix(roots, output):
    """The command before the client's command, so that perf counts the trees' system calls while the client runs."""
    pids = ",".join(str(pid) for pid in tree(roots))
    return ["perf", "stat", "-x", ",", "-o", str(output), "-e", SYSCALL_EVENT, "-p", pids, "--"]


def perf_count(text):
    """The count in the output of perf stat -x, or None if it could not count."""
    for line in text.splitlines():
        fields = line.split(",")
        if SYSCALL_EVENT in line and fields[0].isdigit():
            return int(fields[0])
    return None
