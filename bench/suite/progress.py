"""What is being done and how much longer it takes: lines on stderr."""

import sys
import time


def clock(seconds):
    """Seconds as one reads them: 40 s, 12 min, 1 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def remaining(planned, done, elapsed):
    """The time left: what is planned and not done, at the pace so far. At first the plan is all there is."""
    left = max(0, planned - done)
    # The plan counts for a minute's worth of evidence, so that the first steps do not throw it about.
    pace = (elapsed + 60) / (done + 60)
    return left * pace


class Progress:
    """Prints one line a step."""

    def __init__(self, planned, out=sys.stderr):
        self.planned, self.done, self.out = planned, 0, out
        self.begin = time.monotonic()

    def step(self, text, seconds=0):
        """Says what comes now; seconds is what the plan has for it."""
        left = remaining(self.planned, self.done, time.monotonic() - self.begin)
        print(f"[{clock(left):>10} left] {text}", file=self.out, flush=True)
        self.done += seconds

    def note(self, text):
        print(f"  {text}", file=self.out, flush=True)
