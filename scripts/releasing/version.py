"""Versions of Samovar: semantic versions without build metadata, and their order."""

import functools
import re

from .refusal import Refusal

NUMBER = r"(?:0|[1-9]\d*)"
# As in semver.org. Build metadata have no order, and no place in a Debian version.
PATTERN = re.compile(
    rf"({NUMBER})\.({NUMBER})\.({NUMBER})"
    rf"(?:-((?:{NUMBER}|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:{NUMBER}|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?",
    re.ASCII,
)
LENGTH_MAX = 64


@functools.total_ordering
class Version:
    """A version such as 0.2.0 or 1.0.0-rc.1."""

    def __init__(self, text):
        found = PATTERN.fullmatch(text) if len(text) <= LENGTH_MAX else None
        if found is None:
            raise Refusal(f"`{text[:LENGTH_MAX]}` is not a version", "write it as 0.2.0, or as 0.2.0-rc.1")
        self.text = text
        before = found[4].split(".") if found[4] else []
        # A version without identifiers is newer than its own pre-releases. Numbers come before words.
        words = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in before)
        self.key = (int(found[1]), int(found[2]), int(found[3]), not before, words)

    def __str__(self):
        return self.text

    def __eq__(self, other):
        return isinstance(other, Version) and self.key == other.key

    def __lt__(self, other):
        return self.key < other.key

    def debian(self):
        """The version of a Debian package: a pre-release is older there only with a tilde."""
        return self.text.replace("-", "~", 1)
