"""The current step and the estimated remaining time: lines on stderr."""

import sys
import time


def clock(seconds):
    """Seconds in a readable form: 40 s, 12 min, 1 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def remaining(planned, done, elapsed):
    """Remaining time: the steps that are planned and not done, at the pace so far. At first only the plan counts."""
    left = max(0, planned - done)
    # The plan has the weight of one minute, so that the first steps do not change the estimate too
    # much.
    pace = (elapsed + 60) / (done + 60)
    return left * pace


class Progress:
    """Prints one line per step."""

    def __init__(self, planned, out=sys.stderr):
        self.planned, self.done, self.out = planned, 0, out
        self.begin = time.monotonic()

    def step(self, text, seconds=0):
        """Announces the next step; seconds is its planned duration."""
        left = remaining(self.planned, self.done, time.monotonic() - self.begin)
        print(f"[{clock(left):>10} left] {text}", file=self.out, flush=True)
        self.done += seconds

    def note(self, text):
        print(f"  {text}", file=self.out, flush=True)
