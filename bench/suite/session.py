"""Shared frame of all measuring commands: looks for tools, ends properly at Ctrl-C, prints the duration."""

import datetime
import signal
import sys

from . import machine


def need_tools():
    missing = machine.tools_missing()
    if missing:
        sys.exit("\n".join(f"{tool} is missing\nhint: run {hint}" for tool, hint in missing.items()))


def end_at_signals():
    """Turns Ctrl-C and SIGTERM into a KeyboardInterrupt from now on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


def interrupt(*_):
    """The first Ctrl-C ends the measurement; a second one must not prevent the servers from being stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
