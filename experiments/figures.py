"""The figures as SVG text, redrawn from the results alone. The same results give the same bytes."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from .plans import PARAMETERS, Spec
from .runner import Line
from .tables import COLUMNS, K2, MAIN_KS, Column, Results, figure1, seeding_ops, speedup

# Okabe and Ito's palette, which people with any colour vision can tell apart. Random starts are dashed.
STYLES: dict[str, dict[str, Any]] = {
    "Lloyd++": {"color": "#000000"},
    "Lloyd": {"color": "#777777", "linestyle": "--"},
    "Elkan++": {"color": "#0072B2"},
    "Elkan": {"color": "#56B4E9", "linestyle": "--"},
    "MiniBatch": {"color": "#CC79A7", "linestyle": "--"},
    "AKM": {"color": "#009E73", "linestyle": "--"},
    K2: {"color": "#D55E00", "linewidth": 2.2},
}
SIDES = ("#0072B2", "#E69F00")
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "k2means",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.3,
    "path.simplify": False,
}
TOP = 1.10  # of the axis of energies


@dataclass(frozen=True)
class Drawing:
    """A figure, the datasets it is about, and the panels it leaves out because they have not been run."""

    name: str
    svg: str
    datasets: tuple[str, ...]
    missing: tuple[str, ...] = ()


def draw(results: Results) -> dict[str, Drawing]:
    """By name. A figure without any results is left out."""
    smoke = results.datasets == ("smoke",)
    wide = ("smoke",) if smoke else ("cifar", "cnncaltech*", "mnist", "mnist50")
    few = ("smoke",) if smoke else ("cifar", "mnist50")
    ks = results.ks(MAIN_KS)
    with mpl.rc_context(SETTINGS):
        drawings = [
            draw_figure1(results),
            convergence(results, "figure2", few, (ks[0], ks[-1])),
            convergence(results, "figure3", wide, ks),
            convergence(results, "figure4", wide, ks, every_parameter=True),
        ]
    return {d.name: d for d in drawings if d is not None}


def to_svg(figure: Figure) -> str:
    """Without date, version or document type, and with two decimals: a hundredth of a point is enough."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", facecolor="white", metadata={"Date": None})
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", out.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :]
    text = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), text)
    return re.sub(r"\n\s*", "\n", text)


# ---- Figure 1 -----------------------------------------------------------------------------------------------------


def draw_figure1(results: Results) -> Drawing | None:
    data = figure1(results)
    if data is None:
        return None
    points = np.array(data["points"])
    figure = Figure(figsize=(9.0, 5.4), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, (name, steps) in zip(axes, data["methods"].items(), strict=True):
        split_panel(row[0], points, steps[0], with_cut=False)
        for axis, step in zip(row[1:], steps, strict=True):
            split_panel(axis, points, step)
            axis.set_xlabel(f"energy {step['energy']:.1f}")
        row[0].set_ylabel(name, fontsize=11)
    for axis, title in zip(axes[0], ("initialization", "iteration 1", "iteration 2"), strict=True):
        axis.set_title(title, fontsize=11)
    return Drawing("figure1", to_svg(figure), ())


def split_panel(axis: Any, points: Any, step: dict[str, Any], with_cut: bool = True) -> None:
    """The direction through both centers, dashed; the cut across it, solid; the sides in two colours."""
    right, (a, b) = np.array(step["right"]), np.array(step["centers"])
    if with_cut:
        for side, color, marker in ((~right, SIDES[0], "o"), (right, SIDES[1], "s")):
            axis.scatter(*points[side].T, s=14, color=color, marker=marker, linewidths=0)
    else:
        axis.scatter(*points.T, s=14, color="#888888", linewidths=0)
    low, high = points.min(axis=0) - 0.4, points.max(axis=0) + 0.4
    along = b - a
    axis.axline(a, b, color="black", linestyle="--", linewidth=0.9)
    if with_cut:
        on_cut = along * step["cut"] / (along @ along)
        axis.axline(on_cut, on_cut + np.array([-along[1], along[0]]), color="black", linewidth=1.2)
    axis.scatter(*np.array([a, b]).T, s=70, marker="X", color="black", edgecolors="white", linewidths=0.8, zorder=3)
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    axis.spines[["top", "right"]].set_visible(True)


# ---- Figures 2, 3 and 4 -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    line: Line
    style: dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """Energies relative to Lloyd++'s last, for seed 0."""

    title: str
    reference: float
    curves: list[Curve]


def convergence(
    results: Results, name: str, datasets: tuple[str, ...], ks: tuple[int, ...], every_parameter: bool = False
) -> Drawing | None:
    """A grid, datasets down and k across; rows without any panel are left out."""
    make = parameter_panel if every_parameter else method_panel
    grid = {dataset: [make(results, dataset, k) for k in ks] for dataset in datasets}
    missing = [f"{d} k={k}" for d, row in grid.items() for k, panel in zip(ks, row, strict=True) if panel is None]
    rows = [row for row in grid.values() if any(row)]
    if not rows:
        return None
    figure = Figure(figsize=(3.3 * len(ks) + 0.4, 2.6 * len(rows) + 0.7), layout="constrained")
    axes = figure.subplots(len(rows), len(ks), squeeze=False)
    for i, row in enumerate(rows):
        for j, panel in enumerate(row):
            if panel is None:
                axes[i, j].set_visible(False)
            else:
                convergence_panel(axes[i, j], panel)
        axes[i, 0].set_ylabel("energy / Lloyd++'s")
    for j in range(len(ks)):
        lowest = max((i for i, row in enumerate(rows) if row[j] is not None), default=0)
        axes[lowest, j].set_xlabel("vector operations")
    legend(figure, every_parameter)
    return Drawing(name, to_svg(figure), datasets, tuple(missing))


def convergence_panel(axis: Any, panel: Panel) -> None:
    for height in (1.0, 1.01):
        axis.axhline(height, color="#bbbbbb", linewidth=0.7, zorder=0)
    lowest, seen = 1.0, []
    for curve in panel.curves:
        ops = np.array([o for _, _, o in curve.line["trace"]]) + seeding_ops(curve.line)
        energy = np.array([e for _, e, _ in curve.line["trace"]]) / panel.reference
        lowest = min(lowest, float(energy.min()))
        seen += ops[energy <= TOP].tolist()
        axis.plot(ops, energy, **curve.style)
        if energy[-1] <= TOP:
            axis.plot(ops[-1:], energy[-1:], marker=".", markersize=5, color=curve.style["color"])
    axis.set(xscale="log", ylim=(lowest - 0.004, TOP))
    if seen:
        axis.set_xlim(min(seen) / 1.3, max(seen) * 1.3)
    axis.set_title(panel.title, fontsize=9.5)
    axis.yaxis.set_major_formatter(FormatStrFormatter("%.2f"))
    axis.xaxis.set_major_locator(LogLocator(numticks=6))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x", color="#eeeeee", linewidth=0.6)
    axis.set_axisbelow(True)


def find(results: Results, dataset: str, k: int, column: Column, parameter: int | None = None) -> Line | None:
    cell = results.cell(dataset, k)
    if cell is None:
        return None
    return results.lines.get(
        Spec(dataset, k, column.method, parameter, column.init, 0, column.stop_of(cell)).key,
    )


def method_panel(results: Results, dataset: str, k: int) -> Panel | None:
    """Every method; AKM and k² with the best parameter at 1 %, in brackets if none reaches it."""
    lloyd = find(results, dataset, k, COLUMNS["Lloyd++"])
    if lloyd is None:
        return None
    curves, chosen = [], []
    for title, style in STYLES.items():
        column, parameter = COLUMNS[title], None
        if column.stop == "oracle":
            reaches = speedup(results, results.cell(dataset, k), column, 0.01).parameter
            parameter = reaches or lowest_parameter(results, dataset, k, column)
            text = f"{'k_n' if title == K2 else 'm'} = {parameter or '–'}"
            chosen.append(text if reaches else f"[{text}]")
        line = find(results, dataset, k, column, parameter)
        if line is not None:
            curves.append(Curve(line, style))
    return Panel(f"{dataset}, k = {k} ({', '.join(chosen[::-1])})", float(lloyd["energy"]), curves)


def lowest_parameter(results: Results, dataset: str, k: int, column: Column) -> int | None:
    """The one with the lowest energy: if none reaches 1 %, it shows by how much they fail."""
    lines = {p: line for p in PARAMETERS if (line := find(results, dataset, k, column, p)) is not None}
    return min(lines, key=lambda p: float(lines[p]["energy"])) if lines else None


def parameter_panel(results: Results, dataset: str, k: int) -> Panel | None:
    """AKM and k² with every parameter that was tried."""
    lloyd = find(results, dataset, k, COLUMNS["Lloyd++"])
    curves = [
        Curve(line, parameter_style(title, parameter))
        for title in ("AKM", K2)
        for parameter in sorted(PARAMETERS)
        if (line := find(results, dataset, k, COLUMNS[title], parameter)) is not None
    ]
    if lloyd is None or not curves:
        return None
    return Panel(f"{dataset}, k = {k}", float(lloyd["energy"]), curves)


def parameter_style(title: str, parameter: int) -> dict[str, Any]:
    """Hue by method, as in the other figures; darker for larger parameters."""
    share = sorted(PARAMETERS).index(parameter) / (len(PARAMETERS) - 1)
    color = mpl.colormaps["Greens" if title == "AKM" else "Oranges"](0.32 + 0.66 * share)
    return {"color": mpl.colors.to_hex(color), "linestyle": "--" if title == "AKM" else "-", "linewidth": 1.3}


def legend(figure: Figure, every_parameter: bool) -> None:
    """Below the panels; with every parameter, one line for each method."""
    handles = [Line2D([], [], label=title, **style) for title, style in STYLES.items()]
    if every_parameter:
        names = {"AKM": "m", K2: "k_n"}
        handles = [Line2D([], [], label=title, linestyle="none") for title in names]
        for p in sorted(PARAMETERS):
            handles += [Line2D([], [], label=f"{names[t]} = {p}", **parameter_style(t, p)) for t in names]
    columns = 1 + len(PARAMETERS) if every_parameter else len(STYLES)
    spacing = {"ncols": columns, "columnspacing": 1.2, "handlelength": 1.6, "frameon": False}
    figure.legend(handles=handles, loc="outside lower center", **spacing)
