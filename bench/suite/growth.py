"""Readings of a server's memory during many requests -> growth. Pure."""

import statistics

# Growth from the second quarter to the last that is more than noise, as a part of the former.
GROWTH_MAX = 0.05
KEYS = ("pss_kib", "uss_kib", "descriptors", "mappings", "hot_pages")
# One more page or descriptor is not a relevant leak.
NOISE = {"pss_kib": 256, "uss_kib": 256, "descriptors": 0.5, "mappings": 1, "hot_pages": 2}


def per_worker(reading, key):
    """The mean over the workers; a figure that the server's model does not have counts as 0."""
    values = [worker.get(key) or 0 for worker in reading["workers"].values()]
    return statistics.mean(values) if values else 0


def grown(readings):
    """Name -> (before, after) of grown figures: the last quarter compared with the second. The first is warm-up."""
    quarter = len(readings) // 4
    found = {}
    for key in KEYS if quarter else ():
        before, after = (statistics.mean(per_worker(reading, key) for reading in part)
                         for part in (readings[quarter:2 * quarter], readings[-quarter:]))
        if after > before * (1 + GROWTH_MAX) and after - before > NOISE[key]:
            found[key] = (before, after)
    return found


def verdict(readings):
    """The verdict in words."""
    if len(readings) < 4:
        return "too few readings"
    replaced = readings[0]["workers"].keys() != readings[-1]["workers"].keys()
    note = "; workers were replaced: check every reading" if replaced else ""
    found = [f"{key} from {before:.0f} to {after:.0f}" for key, (before, after) in grown(readings).items()]
    return f"**grows**: {', '.join(found)}{note}" if found else f"no growth{note}"


def shown(readings):
    """The readings for the table: the first, the middle and the last one."""
    return [readings[i] for i in sorted({0, len(readings) // 2, len(readings) - 1})] if readings else []


def slice_seconds(requests, rate, readings, least=0.1):
    """Run time of the client between two readings, so that there are about `readings` of them."""
    return max(least, requests / readings / rate) if rate else least
