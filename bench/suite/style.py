"""Appearance of the plots: one card, one colour per server in all plots, labels next to their items."""

import matplotlib

matplotlib.use("Agg")

from matplotlib.patches import FancyBboxPatch  # noqa: E402: the backend is chosen first
from matplotlib import pyplot  # noqa: E402

INK, QUIET, HAIR, CARD = "#1f2933", "#66727f", "#e4e8ec", "#ffffff"
FONT = ["Inter", "DejaVu Sans"]
# Samovar has the one bright colour; its models are shades of it. php-fpm is dark, peers are cool.
COLOURS = {
    "samovar-native": "#9a3412", "samovar-resident": "#d9480f", "samovar-checkpoint": "#f08c00",
    "samovar-script": "#e9b949", "php-fpm": "#334e68", "php-fpm-keepalive": "#829ab1", "alone": "#bcc5ce",
    "bare-hyper": "#bcc5ce", "swoole": "#2f6fdb", "swoole-process": "#74a0ee",
    "workerman": "#5f3dc4", "frankenphp": "#087f5b", "roadrunner": "#0b7285",
}
OTHERS = ("#3b5bdb", "#6741d9", "#2b8a3e", "#a61e4d", "#5c940d", "#1098ad")
# Shorter than in the tables, because they are in a plot's margin.
NAMES = {
    "samovar-native": "Samovar native", "samovar-resident": "Samovar resident",
    "samovar-checkpoint": "Samovar checkpoint", "samovar-script": "Samovar script", "php-fpm": "nginx + php-fpm",
    "php-fpm-keepalive": "php-fpm keep-alive", "alone": "PHP alone, no server", "bare-hyper": "bare hyper, no PHP",
}


def colour(key, group=None):
    """The server's colour: the same in all plots and in every run."""
    if key in COLOURS:
        return COLOURS[key]
    return OTHERS[sum(key.encode()) % len(OTHERS)]


def name(key, title=None):
    return NAMES.get(key, title or key)


def figure(width, height):
    """An empty card: white with a fine edge, readable on a light and on a dark page."""
    pyplot.rcParams.update({
        "font.family": "sans-serif", "font.sans-serif": FONT, "font.size": 9, "text.color": INK,
        "axes.edgecolor": HAIR, "axes.labelcolor": QUIET, "xtick.color": QUIET, "ytick.color": QUIET,
        # Letters as shapes: the same on a machine without the font.
        "svg.fonttype": "path", "svg.hashsalt": "samovar", "axes.unicode_minus": True,
    })
    made = pyplot.figure(figsize=(width, height))
    made.patch.set_alpha(0)
    inset_x, inset_y = 0.02 / width, 0.02 / height
    made.add_artist(FancyBboxPatch(
        (inset_x, inset_y), 1 - 2 * inset_x, 1 - 2 * inset_y, transform=made.transFigure, zorder=-10, facecolor=CARD,
        edgecolor=HAIR, linewidth=1,
        boxstyle=f"round,pad=0,rounding_size={0.12 / width}", mutation_aspect=width / height))
    return made


def heading(made, title, subtitle):
    """The plot's title states its content; in inches from the top, so that it looks the same with any height."""
    width, height = made.get_size_inches()
    made.text(0.3 / width, 1 - 0.42 / height, title, fontsize=14, fontweight="bold", va="baseline")
    made.text(0.3 / width, 1 - 0.68 / height, subtitle, fontsize=9, color=QUIET, va="baseline")


def footer(made, text):
    width, height = made.get_size_inches()
    made.text(0.3 / width, 0.2 / height, text, fontsize=7.5, color=QUIET, va="baseline")


def axes(made, left, bottom, width, height):
    """Axes positioned in inches from the lower left corner; without a frame."""
    total_width, total_height = made.get_size_inches()
    ax = made.add_axes((left / total_width, bottom / total_height, width / total_width, height / total_height))
    ax.patch.set_alpha(0)
    for side in ("top", "right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)
    return ax


def spread_apart(positions, gap):
    """Moves the positions of labels as little as possible until they are at least gap apart; keeps the order."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    placed = [positions[i] for i in order]
    # Blocks of touching labels share their mean: merged until none touch.
    blocks = [[value, 1] for value in placed]
    merged = True
    while merged:
        merged = False
        for i in range(len(blocks) - 1):
            (a, m), (b, n) = blocks[i], blocks[i + 1]
            if b - a < gap * (m + n) / 2 - 1e-9:
                blocks[i:i + 2] = [[(a * m + b * n) / (m + n), m + n]]
                merged = True
                break
    out = []
    for centre, count in blocks:
        out += [centre + gap * (i - (count - 1) / 2) for i in range(count)]
    result = [0.0] * len(positions)
    for index, value in zip(order, out):
        result[index] = value
    return result


def save(made, path):
    # No date, so that the same figures produce the same file.
    metadata = {"Date": None} if str(path).endswith(".svg") else {}
    made.savefig(path, metadata=metadata, dpi=120)
    pyplot.close(made)
