"""raw.json -> the short section of the repository's README: one table, the plots, and their origin."""

from . import figures, report

# The columns and their short titles; a server that was not measured has no column.
COLUMNS = (("alone", "PHP alone"), ("samovar-resident", "Samovar, resident"),
           ("samovar-checkpoint", "Samovar, checkpoint"), ("samovar-script", "Samovar, script"),
           ("php-fpm", "nginx + php-fpm"))


def columns(raw):
    """(key, title) of the measured servers: the fixed ones, then peers."""
    measured = {key: server for workload in raw["workloads"].values()
                for key, server in workload.get("servers", {}).items() if server["rounds"]}
    peers = [(key, server["title"]) for key, server in measured.items() if server["group"] == "peer"]
    return [column for column in COLUMNS if column[0] in measured] + peers


def row(workload, keys):
    """The workload's CPU per request, by server."""
    costs = {r["name"]: figures.middle(r, "cpu_us") for r in figures.rows(workload, workload["connections"])}
    return [report.adaptive(costs.get(key)) for key in keys]


def section(raw, folder):
    """The Markdown; folder is the path of the plots relative to the README."""
    heads = columns(raw)
    keys = [key for key, _ in heads]
    lines = [[name, *row(workload, keys)] for name, workload in raw["workloads"].items() if "servers" in workload]
    connections = sorted({workload["connections"] for workload in raw["workloads"].values() if "servers" in workload})
    settings = raw["settings"]
    return "\n\n".join([
        "## Side by side", "CPU time in µs per request of all of a server's processes:",
        report.table(["workload", *(title for _, title in heads)], lines),
        *(f"![{text}]({folder}/{file})" for file, text in report.PLOTS if file in raw.get("plots", [])),
        f"{raw['started'][:10]}, {report.machine_line(raw)};\n{settings['workers']} workers, "
        f"{' and '.join(map(str, connections))} connections, medians of {settings['rounds']} interleaved rounds of "
        f"{settings['seconds']} s.\n[All figures]({folder}/results.md), [their meaning](bench/README.md). "
        f"Command:\n\n    {raw['command']}"]) + "\n"
