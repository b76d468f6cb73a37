"""Rounds -> figures: medians with their spread, ratios, and the rows of the tables. Does not handle processes."""

import statistics

REFERENCE = "php-fpm"
# The client has one thread: above this share of a core it measures itself.
CLIENT_SHARE_MAX = 0.9
# Path of a figure in a round.
PLACES = {
    "cpu_us": ("cpu_us",), "rate": ("rate",), "pss_kib": ("pss_kib",), "uss_kib": ("uss_kib",),
    "p50": ("latency_us", "p50"), "p90": ("latency_us", "p90"), "p99": ("latency_us", "p99"),
    "p999": ("latency_us", "p999"), "syscalls": ("syscalls",),
}


def place(record, path):
    """The value at that path of nested tables, or None."""
    for key in path:
        if not isinstance(record, dict) or record.get(key) is None:
            return None
        record = record[key]
    return record


def spread(values):
    """Median, minimum and maximum of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"median": statistics.median(known), "min": min(known), "max": max(known)}


def median(values):
    found = spread(values)
    return found["median"] if found else None


def ratio(value, reference):
    return value / reference if value is not None and reference else None


def difference(value, reference):
    return value - reference if value is not None and reference is not None else None


def rounds_of(server, pass_name, connections=None, share=None):
    """The rounds of one pass of one server."""
    return [r for r in server["rounds"] if r["pass"] == pass_name
            and connections in (None, r.get("connections")) and share in (None, r.get("share"))]


def summarise(rounds):
    """Spread of each figure over the rounds; errors and hung requests are summed."""
    figures = {name: spread([place(r, path) for r in rounds]) for name, path in PLACES.items()}
    figures["errors"] = sum(sum(r.get("errors", {}).values()) for r in rounds)
    figures["hung"] = sum(r.get("hung", 0) for r in rounds)
    return figures


def middle(figures, name):
    found = figures.get(name) if figures else None
    return found["median"] if found else None


def main_connections(connections):
    """The number of connections for tables and plots: 64 if it was measured, else the largest."""
    return 64 if 64 in connections else max(connections)


def asked_rate(wish, reference_rate):
    """The constant rate in requests/s from --rate: '50%' of the reference, or a number; 0 means none."""
    if wish.endswith("%"):
        return reference_rate * float(wish[:-1]) / 100 if reference_rate else 0
    return float(wish)


def reference_rate(servers, connections):
    """php-fpm's requests/s in the closed loop, or those of the slowest server if php-fpm takes no part."""
    rates = {name: median([r["rate"] for r in rounds_of(server, "closed", connections)])
             for name, server in servers.items() if server["group"] != "limit"}
    rates = {name: rate for name, rate in rates.items() if rate}
    return rates.get(REFERENCE) or (min(rates.values()) if rates else None)


def rows(workload, connections):
    """The table of a workload: one row per server, the lowest CPU per request first, errors last."""
    servers = workload["servers"]
    cpu = {name: median([r["cpu_us"] for r in rounds_of(server, "closed", connections)])
           for name, server in servers.items()}
    table = []
    for name, server in servers.items():
        closed = summarise(rounds_of(server, "closed", connections))
        constant = summarise(rounds_of(server, "rate"))
        table.append({
            "name": name, "title": server["title"], "group": server["group"], "error": server.get("error"), **closed,
            "over_reference": ratio(cpu[name], cpu.get(REFERENCE)),
            "over_alone": difference(cpu[name], cpu.get("alone")) if server["group"] != "limit" else None,
            "over_bare": ratio(cpu[name], cpu.get("bare-hyper")) if name != "alone" else None,
            "tail": ratio(middle(closed, "p99"), middle(closed, "p50")),
            "rate_p99": middle(constant, "p99"),
            "syscalls": median([r["syscalls"] for r in rounds_of(server, "syscalls", connections)]),
            "errors": closed["errors"] + constant["errors"], "hung": closed["hung"] + constant["hung"],
        })
    return sorted(table, key=lambda row: (row["cpu_us"] is None, middle(row, "cpu_us") or 0, row["title"]))


def client_limited(workload, connections):
    """Servers for which the client had almost no time left: [(title, pass, its share of one core)] in the main table.
    """
    found = []
    for server in workload["servers"].values():
        for pass_name in ("closed", "rate"):
            share = median([place(r, ("client", "cpu_share")) for r in rounds_of(server, pass_name, connections)])
            if share is not None and share > CLIENT_SHARE_MAX:
                found.append((server["title"], pass_name, share))
    return found


def class_rows(workload, connections):
    """For a workload with several classes of requests: (title, pass, class, latencies) by class; else empty."""
    found = []
    for server in workload["servers"].values():
        for pass_name in ("closed", "rate"):
            rounds = rounds_of(server, pass_name, connections)
            for group in sorted({group for r in rounds for group in r.get("classes", {})}):
                latencies = {key: median([place(r, ("classes", group, "latency_us", key)) for r in rounds])
                             for key in ("p50", "p90", "p99", "p999")}
                found.append({"title": server["title"], "pass": pass_name, "class": group, **latencies})
    return found if len({row["class"] for row in found}) > 1 else []


def load_rows(workload):
    """CPU, requests/s and p99 by number of connections: (title, {load: figures})."""
    table = []
    for name, server in workload["servers"].items():
        by_load = {}
        for pass_name in ("closed", "new"):
            for connections in sorted({r["connections"] for r in rounds_of(server, pass_name) if r.get("connections")}):
                figures = summarise(rounds_of(server, pass_name, connections))
                counted = [r["syscalls"] for r in rounds_of(server, "syscalls", connections)]
                by_load[(pass_name, connections)] = {
                    **{key: middle(figures, key) for key in ("cpu_us", "rate", "p50", "p99")},
                    "syscalls": median(counted) if pass_name == "closed" else None}
        if by_load and name != "alone":
            table.append((server["title"], by_load))
    return table


def ladder(workload):
    """Latency by load: for each server [(requested requests/s, p50 µs, p99 µs)], by rate."""
    lines = {}
    for name, server in workload["servers"].items():
        steps = rounds_of(server, "step")
        points = []
        for share in sorted({r["share"] for r in steps}):
            rounds = [r for r in steps if r["share"] == share]
            points.append((median([r["asked_rate"] for r in rounds]),
                           median([place(r, ("latency_us", "p50")) for r in rounds]),
                           median([place(r, ("latency_us", "p99")) for r in rounds])))
        if points:
            lines[name] = [point for point in points if None not in point]
    return lines


def memory_lines(points):
    """Memory by number of workers: for each server [(workers, PSS MiB)]."""
    lines = {}
    for point in points:
        if point.get("pss_kib"):
            lines.setdefault(point["server"], []).append((point["workers"], point["pss_kib"] / 1024))
    return {name: sorted(line) for name, line in lines.items()}
