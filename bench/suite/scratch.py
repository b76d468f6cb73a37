"""Temporary data of a run: a folder on disk, and a second one in memory for sessions."""

import os
import pathlib
import shutil
import tempfile

MEMORY = pathlib.Path("/dev/shm")


def make(prefix):
    """A temporary folder. Its contents may belong to php-fpm's children or the applications, under any user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    folder.chmod(0o755)
    return folder


def drop(folder):
    """Removes the folders that `make` has created."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(in_memory(folder), ignore_errors=True)


def sessions(var):
    """The folder of a server's sessions. PHP empties each file before it writes the new content. A disk's
    file system writes out such a file when it is closed. That is work of the kernel and the disk, a third of the cost
    of Symfony's page, and not a cost of any server."""
    return in_memory(var / "sessions") if os.access(MEMORY, os.W_OK) else var / "sessions"


def in_memory(folder):
    return MEMORY / "-".join(folder.parts[1:3]) / pathlib.Path(*folder.parts[3:])
