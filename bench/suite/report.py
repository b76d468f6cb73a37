"""raw.json -> results.md: a table for each workload, and everything that is needed to repeat the measurement."""

import functools

from . import figures

PLOTS = (("cpu.svg", "CPU time per request, by workload and server"),
         ("latency.svg", "Latency against load"),
         ("memory.svg", "Memory against workers"))
PASSES = {"closed": "closed loop", "rate": "constant rate"}
COLUMNS = ["server", "CPU µs/request (min–max)", "× php-fpm", "+ over alone, µs", "requests/s", "p50 ms", "p90 ms",
           "p99 ms", "p99.9 ms", "p99/p50", "p99 ms at constant rate", "PSS MiB", "USS MiB", "system calls/request",
           "errors", "hung"]


def number(value, digits=1):
    """A figure as text: – if there is none, with separated thousands."""
    return "–" if value is None else f"{value:,.{digits}f}"


def digits_for(value):
    """Three significant digits, no more: 0.052, 8.25, 49.7, 493."""
    if value is None or abs(value) >= 100:
        return 0
    if abs(value) >= 10:
        return 1
    return 2 if abs(value) >= 1 else 3


def adaptive(value):
    return number(value, digits_for(value))


def milliseconds(microseconds):
    return adaptive(None if microseconds is None else microseconds / 1000)


def mebibytes(kibibytes):
    return number(None if kibibytes is None else kibibytes / 1024)


def with_spread(found):
    if found is None:
        return "–"
    digits = digits_for(found["median"])
    low, high = number(found["min"], digits), number(found["max"], digits)
    return f"{number(found['median'], digits)} ({low}–{high})"


def signed(value):
    return "–" if value is None else f"{value:+,.{digits_for(value)}f}"


def table(head, lines):
    """A Markdown table; the first column is text, the others are figures."""
    out = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*out, *("| " + " | ".join(cells) + " |" for cells in lines)])


def main_table(workload, connections):
    rows = figures.rows(workload, connections)
    with_bare = any(row["name"] == "bare-hyper" and row["cpu_us"] for row in rows)
    head = list(COLUMNS)
    if with_bare:
        head.insert(4, "× bare hyper")
    lines = []
    for row in rows:
        if row["cpu_us"] is None:
            # One line: the end of a log may have several, and bars would be columns.
            error = " ".join((row["error"] or "not measured").split()).replace("|", "/")
            lines.append([row["title"], f"**error**: {error}", *[""] * (len(head) - 2)])
            continue
        get = functools.partial(figures.middle, row)
        title = f"**{row['title']}**" if row["group"] == "samovar" else row["title"]
        cells = [title + (" (then an error, see below)" if row["error"] else ""), with_spread(row["cpu_us"]),
                 number(row["over_reference"], 2), signed(row["over_alone"]), number(get("rate"), 0),
                 *(milliseconds(get(key)) for key in ("p50", "p90", "p99", "p999")), number(row["tail"]),
                 milliseconds(row["rate_p99"]), mebibytes(get("pss_kib")), mebibytes(get("uss_kib")),
                 adaptive(row["syscalls"]), str(row["errors"]), str(row["hung"])]
        if with_bare:
            cells.insert(4, number(row["over_bare"], 2))
        lines.append(cells)
    return table(head, lines)


def class_table(workload, connections):
    rows = figures.class_rows(workload, connections)
    rows.sort(key=lambda row: (row["class"], row["pass"], row["p99"] or 0))
    lines = [[row["title"], PASSES[row["pass"]], row["class"],
              *(milliseconds(row[key]) for key in ("p50", "p90", "p99", "p999"))] for row in rows]
    return table(["server", "client", "class", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms"], lines) if lines else None


def load_table(workload):
    """Other numbers of connections, if more than one was measured."""
    rows = figures.load_rows(workload)
    loads = sorted({load for _, by_load in rows for load in by_load}, key=lambda load: (load[0] == "new", load[1]))
    if len(loads) < 2:
        return None
    lines = []
    for title, by_load in rows:
        for load in loads:
            f = by_load.get(load)
            if f:
                kind = f"{load[1]}" if load[0] == "closed" else f"{load[1]}, new for each request"
                lines.append([title, kind, adaptive(f["cpu_us"]), number(f["rate"], 0), milliseconds(f["p50"]),
                              milliseconds(f["p99"]), adaptive(f["syscalls"])])
    return table(["server", "connections", "CPU µs/request", "requests/s", "p50 ms", "p99 ms", "system calls/request"],
                 lines)


def sentence(text):
    return text[:1].upper() + text[1:].rstrip(".") + "."


def workload_section(name, workload):
    parts = [f"## {name}", sentence(workload["description"])]
    if workload.get("error"):
        return "\n\n".join([parts[0], f"**error**: {workload['error']}"])
    if workload.get("figure"):
        parts[1] += f" Figure of interest: {sentence(workload['figure'])}"
    connections = workload["connections"]
    rate = f", then {adaptive(workload['rate'])} requests/s" if workload.get("rate") else ""
    parts.append(f"{workload['workers']} workers, {connections} connections in a closed loop{rate}.")
    parts.append(main_table(workload, connections))
    parts += [part for part in (class_table(workload, connections), load_table(workload)) if part]
    notes = [f"- {server['title']}: {server['note']}." for server in workload["servers"].values()
             if server["note"] and not server["note"].startswith("http")]
    late = [f"- {server['title']}: error after some rounds: {' '.join(server['error'].split())}"
            for server in workload["servers"].values() if server["error"] and server["rounds"]]
    lines = [*notes, *client_notes(workload, connections), *late]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])])


def client_notes(workload, connections):
    """Warnings: for these servers, requests/s and latency show the client's limit; CPU per request is valid."""
    return [f"- {title}: **limited by the client** ({PASSES[pass_name]}: {share:.0%} of its core)".replace("%", " %")
            + ". Requests/s and latency are those of the client; CPU µs/request is that of the server."
            for title, pass_name, share in figures.client_limited(workload, connections)]


def memory_section(points):
    lines = figures.memory_lines(points)
    counts = sorted({workers for line in lines.values() for workers, _ in line})
    titles = {point["server"]: point["title"] for point in points}
    rows = [[titles[name], *(number(dict(line).get(count)) for count in counts)] for name, line in lines.items()]
    return "## Memory against workers\n\nPSS of all processes in MiB, after a warm-up under load.\n\n" + table(
        ["server", *(f"{count} worker{'s' if count > 1 else ''}" for count in counts)], rows)


def machine_line(raw):
    machine = raw["machine"]
    return (f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_mib'] / 1024:.0f} GiB, "
            f"Linux {machine['kernel']}, {machine['distribution']}")


def missing_section(missing):
    if not missing:
        return None
    lines = [f"- {peer['title']}: missing. Install it with: {peer['install']}" for peer in missing.values()]
    return "## Not measured\n\n" + "\n".join(lines)


def conditions_section(raw):
    settings = raw["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in raw["versions"].items() if version)
    php = ", ".join(f"{key}={value}" for key, value in raw["php_settings"].items())
    changed = " with uncommitted changes" if raw["machine"].get("changed") else ""
    return "\n".join([
        "## Method", "",
        f"- Command: `{raw['command']}`",
        f"- Machine: {machine_line(raw)}; load average at the start {raw['machine']['load_average']:.1f}",
        f"- Versions: {versions}; Samovar at commit {raw['machine'].get('commit')}{changed}",
        f"- PHP settings of all servers: {php}",
        f"- {settings['rounds']} rounds of {settings['seconds']} s, interleaved; medians, with minimum and "
        "maximum where there is space",
        "- Meaning of each figure: [bench/README.md](../../README.md). Every round, and every command: raw.json, which "
        "the command writes next to this file"])


def results(raw):
    """The whole of results.md."""
    state = "" if raw.get("complete") else "\n\n**Interrupted: results are incomplete.**"
    few = "" if raw["settings"]["rounds"] >= 3 else "\n\n**Trial run: fewer than 3 rounds are not significant.**"
    parts = [f"# PHP servers side by side, {raw['started'][:10]}{state}{few}",
             f"{machine_line(raw)}. `{raw['command']}`",
             *(f"![{text}]({file})" for file, text in PLOTS if file in raw.get("plots", [])),
             *(workload_section(name, workload) for name, workload in raw["workloads"].items())]
    if figures.memory_lines(raw["memory"]):
        parts.append(memory_section(raw["memory"]))
    return "\n\n".join([*parts, *filter(None, [missing_section(raw["missing"]), conditions_section(raw)])]) + "\n"
