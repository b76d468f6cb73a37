"""What a run needs only while it runs: a folder on the disk, and beside it one in memory for sessions."""

import os
import pathlib
import shutil
import tempfile

MEMORY = pathlib.Path("/dev/shm")


def make(prefix):
    """A folder of its own. What is below it is php-fpm's children's and the applications', whoever they belong to."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    folder.chmod(0o755)
    return folder


def drop(folder):
    """Removes what `make` has made, and what lies beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(in_memory(folder), ignore_errors=True)


def sessions(var):
    """The folder of a server's sessions. PHP empties each file before it writes it anew, and a disk's file system
    writes out such a file when it is closed: the kernel's work and the disk's, a third of Symfony's page, and no
    server's."""
    return in_memory(var / "sessions") if os.access(MEMORY, os.W_OK) else var / "sessions"


def in_memory(folder):
    return MEMORY / "-".join(folder.parts[1:3]) / pathlib.Path(*folder.parts[3:])
