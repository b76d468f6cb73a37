"""Readings of a server's memory in the course of many requests -> what has grown. Pure."""

import statistics

# Growth from the second quarter to the last that is no noise, as a part of what there was.
GROWTH_MAX = 0.05
KEYS = ("pss_kib", "uss_kib", "descriptors", "mappings", "hot_pages")
# A page or a descriptor more is not a leak that anybody would find.
NOISE = {"pss_kib": 256, "uss_kib": 256, "descriptors": 0.5, "mappings": 1, "hot_pages": 2}


def per_worker(reading, key):
    """The mean over the workers; what the server's model does not have counts as nothing."""
    values = [worker.get(key) or 0 for worker in reading["workers"].values()]
    return statistics.mean(values) if values else 0


def grown(readings):
    """Name -> (before, after) of what has grown: the last quarter beside the second, since the first warms up."""
    quarter = len(readings) // 4
    found = {}
    for key in KEYS if quarter else ():
        before, after = (statistics.mean(per_worker(reading, key) for reading in part)
                         for part in (readings[quarter:2 * quarter], readings[-quarter:]))
        if after > before * (1 + GROWTH_MAX) and after - before > NOISE[key]:
            found[key] = (before, after)
    return found


def verdict(readings):
    """In words."""
    if len(readings) < 4:
        return "too few readings to say"
    replaced = readings[0]["workers"].keys() != readings[-1]["workers"].keys()
    note = "; workers were replaced, so look at every reading" if replaced else ""
    found = [f"{key} from {before:.0f} to {after:.0f}" for key, (before, after) in grown(readings).items()]
    return f"**grows**: {', '.join(found)}{note}" if found else f"nothing grows{note}"


def shown(readings):
    """The readings that stand in the table: the first, the one in the middle, the last."""
    return [readings[i] for i in sorted({0, len(readings) // 2, len(readings) - 1})] if readings else []


def slice_seconds(requests, rate, readings, least=0.1):
    """How long the client runs between two readings, so that there are about so many of them."""
    return max(least, requests / readings / rate) if rate else least
