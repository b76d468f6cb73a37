"""What every command that measures does around it: looks for its tools, ends well at Ctrl-C, tells the time."""

import datetime
import signal
import sys

from . import machine


def need_tools():
    missing = machine.tools_missing()
    if missing:
        sys.exit("\n".join(f"{tool} is missing\nhint: {hint}" for tool, hint in missing.items()))


def end_at_signals():
    """From now on Ctrl-C and SIGTERM are a KeyboardInterrupt."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


def interrupt(*_):
    """The first Ctrl-C ends the measurement; a second must not keep servers from being stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
