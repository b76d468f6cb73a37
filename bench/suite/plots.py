"""raw.json -> cpu.svg, latency.svg, memory.svg."""

import math

from . import figures, style

COLUMNS_MAX = 2
BAR_INCHES = 0.24
PANEL_WIDTH, LABELS_WIDTH, VALUES_WIDTH = 2.6, 1.75, 0.75
# In the latency plot: a line that ends left of this has its name in the panel; and the height of a
# name.
EARLY_PART, LABEL_PART = 0.62, 0.065
TOP_INCHES, BOTTOM_INCHES, GAP_INCHES = 1.0, 0.5, 0.62


def rounds_text(raw):
    rounds = raw["settings"]["rounds"]
    return f"medians of {rounds} interleaved rounds" if rounds > 1 else "one round: trial run"


def footer_text(raw, how=None):
    machine = raw["machine"]
    return f"{raw['started'][:10]}, {machine['cores']} cores of {machine['cpu']}, {how or rounds_text(raw)}"


def draw_all(raw, folder, kind="svg"):
    """Draws the available figures; returns the names of the files."""
    drawn = []
    for name, draw in (("cpu", cpu), ("latency", latency), ("memory", memory)):
        made = draw(raw)
        if made is not None:
            style.save(made, folder / f"{name}.{kind}")
            drawn.append(f"{name}.{kind}")
    return drawn


# ---- CPU per request ----------------------------------------------------------------------------


def cpu_bars(workload):
    """(key, title, group, CPU µs, minimum, maximum) by CPU; servers without a figure are left out."""
    bars = []
    for row in figures.rows(workload, workload["connections"]):
        if row["cpu_us"]:
            cost = row["cpu_us"]
            bars.append((row["name"], row["title"], row["group"], cost["median"], cost["min"], cost["max"]))
    return bars


def cpu(raw):
    panels = [(name, cpu_bars(workload)) for name, workload in raw["workloads"].items() if "servers" in workload]
    panels = [(name, bars) for name, bars in panels if bars]
    if not panels:
        return None
    columns = min(COLUMNS_MAX, len(panels))
    lines = [panels[i:i + columns] for i in range(0, len(panels), columns)]
    heights = [max(len(bars) for _, bars in line) * BAR_INCHES for line in lines]
    cell = LABELS_WIDTH + PANEL_WIDTH + VALUES_WIDTH
    width = 0.3 + columns * cell
    height = TOP_INCHES + sum(heights) + GAP_INCHES * (len(lines)) + BOTTOM_INCHES
    made = style.figure(width, height)
    style.heading(made, "CPU time per request", "µs of all processes of a server. The grey part is PHP itself: the "
                  "same code in a loop, without a server. Each panel has its own scale.")
    top = height - TOP_INCHES
    for line, line_height in zip(lines, heights):
        top -= GAP_INCHES - 0.25
        for column, (name, bars) in enumerate(line):
            own_height = len(bars) * BAR_INCHES
            ax = style.axes(made, 0.3 + column * cell + LABELS_WIDTH, top - own_height, PANEL_WIDTH, own_height)
            cpu_panel(ax, name, bars)
        top -= line_height + 0.25
    style.footer(made, footer_text(raw))
    return made


def cpu_panel(ax, name, bars):
    alone = next((cost for key, *_, cost, _, _ in bars if key == "alone"), 0)
    longest = max(cost for *_, cost, _, _ in bars)
    for y, (key, title, group, cost, least, greatest) in enumerate(bars):
        ours = group == "samovar"
        # A server may be within the noise of the loop: then all of its cost is PHP's own.
        own = cost if group == "limit" else min(alone, cost)
        ax.barh(y, own, height=0.66, color=style.COLOURS["alone"])
        ax.barh(y, cost - own, left=own, height=0.66, color=style.colour(key))
        ax.plot([least, greatest], [y, y], color=style.INK, linewidth=0.8, alpha=0.55, solid_capstyle="butt")
        ax.text(max(cost, greatest) + longest * 0.02, y, figure_text(cost), va="center", fontsize=8.5,
                fontweight="bold" if ours else "normal")
        ax.text(-longest * 0.025, y, style.name(key, title), va="center", ha="right", fontsize=8.5,
                color=style.INK if group != "limit" else style.QUIET, fontweight="bold" if ours else "normal")
    ax.set_xlim(0, longest)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.annotate(name, (0, 1), xytext=(0, 7), xycoords="axes fraction", textcoords="offset points", fontsize=10.5,
                fontweight="bold", ha="left", va="bottom")


def figure_text(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


# ---- latency against load -----------------------------------------------------------------------


def latency(raw):
    name = raw["settings"].get("ladder")
    workload = raw["workloads"].get(name) or {}
    lines = figures.ladder(workload) if "servers" in workload else {}
    if not lines:
        return None
    made = style.figure(10.6, 4.9)
    style.heading(made, f"Latency against load: {name}", "Requests at a constant rate, up to 90 % of the "
                  "capacity of each server. Latency counts from the time at which a request was due.")
    values = [value for points in lines.values() for point in points for value in point[1:] if value > 0]
    low, high = min(values) / 1000 / 1.4, max(values) / 1000 * 1.4
    for left, title, index in ((0.75, "half of the requests are faster (p50)", 1),
                               (5.95, "99 % of the requests are faster (p99)", 2)):
        ax = style.axes(made, left, 0.95, 3.05, 2.75)
        latency_panel(ax, lines, index, {key: s["title"] for key, s in workload["servers"].items()}, low, high)
        ax.set_title(title, fontsize=10, fontweight="bold", loc="left", pad=8)
    style.footer(made, footer_text(raw))
    return made


def latency_panel(ax, lines, index, titles, low, high):
    farthest = max(points[-1][0] for points in lines.values())
    for key, points in lines.items():
        rates, latencies = [p[0] for p in points], [p[index] / 1000 for p in points]
        ax.plot(rates, latencies, color=style.colour(key), linewidth=2, marker="o", markersize=3.5,
                solid_capstyle="round")
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.set_xlim(0, farthest * 1.02)
    ax.set_yticks(nice_ticks(low, high))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g} ms")
    ax.yaxis.set_minor_locator(style.pyplot.NullLocator())
    ax.xaxis.set_major_locator(style.pyplot.MaxNLocator(5))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.grid(axis="y", color=style.HAIR, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("requests/s")
    ends = [(key, points[-1][0], points[-1][index] / 1000) for key, points in lines.items()]
    label_ends(ax, [(style.name(key, titles.get(key)), style.colour(key), x, y) for key, x, y in ends], low, high,
               farthest * 1.02)


def label_ends(ax, ends, low, high, right):
    """Writes names next to the end of their line: in the panel if a line ends early, else in the margin."""
    span = math.log(high / low)
    for early in (True, False):
        group = [end for end in ends if (end[2] < right * EARLY_PART) == early]
        heights = style.spread_apart([math.log(y / low) / span for *_, y in group], LABEL_PART)
        for (name, colour, x, _), height in zip(group, heights):
            # Another server's line may pass below the name.
            ax.annotate(name, (x / right if early else 1, height), xytext=(9, 0), textcoords="offset points",
                        xycoords="axes fraction", va="center", fontsize=8.5, color=colour, fontweight="bold",
                        annotation_clip=False, bbox={"facecolor": style.CARD, "edgecolor": "none", "pad": 1})


def nice_ticks(low, high):
    """1, 2 and 5 times powers of ten between the limits; only 1 if there would be many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 300 else (1,)
    return [f * 10.0 ** p for p in powers for f in factors if low <= f * 10.0 ** p <= high]


# ---- memory against workers ---------------------------------------------------------------------


def memory(raw):
    lines = figures.memory_lines(raw["memory"])
    if not lines or max(len(line) for line in lines.values()) < 2:
        return None
    titles = {point["server"]: point["title"] for point in raw["memory"]}
    made = style.figure(8.2, 4.3)
    style.heading(made, f"Memory against workers: {raw['settings']['memory_workload']}",
                  "MiB of all processes; a page shared by n processes counts 1/n for each (PSS)")
    ax = style.axes(made, 0.65, 0.9, 4.95, 2.4)
    highest = max(value for line in lines.values() for _, value in line)
    counts = sorted({workers for line in lines.values() for workers, _ in line})
    for key, line in lines.items():
        ax.plot([w for w, _ in line], [v for _, v in line], color=style.colour(key), linewidth=2.2, marker="o",
                markersize=4.5, solid_capstyle="round")
    ax.set_xlim(0, counts[-1] * 1.03)
    ax.set_ylim(0, highest * 1.1)
    ax.set_xticks(counts)
    ax.yaxis.set_major_locator(style.pyplot.MaxNLocator(5))
    ax.grid(axis="y", color=style.HAIR, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("workers")
    ends = [(key, *line[-1]) for key, line in lines.items()]
    heights = style.spread_apart([v / (highest * 1.1) for *_, v in ends], 0.085)
    for (key, workers, value), height in zip(ends, heights):
        ax.annotate(f"{style.name(key, titles[key])}  {value:.0f} MiB", (workers, value), xytext=(1.03, height),
                    textcoords="axes fraction", va="center", fontsize=9, color=style.colour(key), fontweight="bold",
                    annotation_clip=False)
    style.footer(made, footer_text(raw, "once, after a warm-up under load"))
    return made
