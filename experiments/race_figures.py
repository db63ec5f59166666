"""The figures of the race as SVG text: energy over seconds for every row, and how seconds grow with n and k."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from .figures import SETTINGS, to_svg
from .race import LEVELS
from .race_tables import Best, Growth, Result

OURS = "#D55E00"
# By family; Okabe and Ito's palette, which people with any colour vision can tell apart.
FAMILIES = {
    "k2means": OURS,
    "faiss": "#0072B2",
    "superkmeans": "#009E73",
    "scikit-learn": "#000000",
    "intelex": "#CC79A7",
    "minibatch": "#777777",
    "bisecting": "#E69F00",
}
LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = "osD^v<>"
TOP = 1.15  # of the axis of energies


def energy_over_time(result: Result) -> str:
    """All runners of a row: curves, and points for what is a single run."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(8.2, 4.2), layout="constrained")
        axis = figure.subplots()
        for level in LEVELS:
            axis.axhline(level, color="#bbbbbb", linewidth=0.7, zorder=0)
        lowest, used = 1.0, dict.fromkeys(FAMILIES, 0)
        for best in sorted(result.bests.values(), key=lambda b: b.ours):  # ours is drawn last, on top
            family = next((f for f in FAMILIES if best.name.startswith(f)), "k2means")
            draw(axis, best, FAMILIES[family], used[family])
            used[family] += 1
            lowest = min([lowest, *(e for _, _, e in best.points)])
        axis.set(xscale="log", xlabel="seconds, initialisation included")
        axis.set(ylim=(lowest - 0.005, TOP), ylabel="energy / R")
        axis.set_title(f"{result.row} ({result.n}×{result.d})", fontsize=9.5)
        axis.grid(axis="x", color="#eeeeee", linewidth=0.6)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)
        return to_svg(figure)


def draw(axis: Any, best: Best, color: str, index: int) -> None:
    seconds, energy = [s for _, s, _ in best.points], [e for _, _, e in best.points]
    if best.point or len(seconds) < 2:
        marker = MARKERS[index % len(MARKERS)]
        axis.plot(seconds, energy, marker, color=color, markersize=7 if best.ours else 5, label=best.shown)
        return
    width = 2.6 if best.name == "k2means" else 1.3
    look: dict[str, Any] = {"linestyle": LINES[index % len(LINES)], "linewidth": width, "marker": ".", "markersize": 3}
    axis.plot(seconds, energy, color=color, label=best.shown, **look)


def growth_picture(pairs: list[list[Growth]]) -> str:
    """Seconds per iteration over k and over n, with the fitted lines."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(4.2 * len(pairs), 3.4), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(pairs)))
        for axis, lines in zip(axes, pairs, strict=True):
            for line in lines:
                if line.points:
                    x, y = (np.array([p[i] for p in line.points], dtype=float) for i in (0, 1))
                    color = FAMILIES[next(f for f in FAMILIES if line.runner.startswith(f))]
                    slope = "" if line.slope is None else f", slope {line.slope:.2f}"
                    axis.plot(x, y, "o", color=color, label=f"{line.runner}{slope}")
                    if line.slope is not None:
                        axis.plot(x, np.exp(np.polyval(np.polyfit(np.log(x), np.log(y), 1), np.log(x))), color=color)
            axis.set(xscale="log", yscale="log", xlabel=lines[0].axis, ylabel="seconds per iteration")
            axis.legend(frameon=False, fontsize=8)
        return to_svg(figure)
