"""The numbers of every table, from the results and from the paper's CSV files. Pure data: nothing is drawn here."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from .datasets import DATASETS
from .plans import (
    COMPLEXITY_D,
    INITS,
    LEVELS,
    SCOPES,
    Cell,
    Scope,
    Spec,
    cells,
    complexity_specs,
    method_of,
    parameters,
    specs,
)
from .runner import Line, read_results

PAPER = Path(__file__).parent / "paper"

REACHED, FAILED, NOT_RUN, ABSENT = "reached", "failed", "not run", "absent"
MAIN_KS = (50, 200, 1000)  # Tables 5 and 6
ALL_KS = (50, 100, 200, 500, 1000)  # Tables 8 to 11
INIT_KS = (100, 200, 500)  # Tables 4 and 7
NOT_IN_MAIN = ("tiny10k",)  # a row of the paper's Table 10 only


@dataclass(frozen=True)
class Value:
    """A number; or why there is none: the level was not reached, not all was run, or the paper has no such row."""

    number: float | None = None
    state: str = NOT_RUN
    parameter: int | None = None


@dataclass(frozen=True)
class Entry:
    """Ours beside the paper's."""

    ours: Value
    paper: Value = Value(state=ABSENT)

    @property
    def ratio(self) -> float | None:
        if self.ours.number is None or not self.paper.number:
            return None
        return self.ours.number / self.paper.number


@dataclass(frozen=True)
class Column:
    """A method with its initialisation: a column of Tables 5, 6 and 8 to 11. `paper` is its name in the CSV files."""

    title: str
    paper: str
    method: str
    init: str
    stop: str
    parameter: str | None = None
    all_charged: bool = False  # of GDI: everything, not only what the paper's own table of GDI implies

    def stop_of(self, cell: Cell) -> str:
        return f"oracle of {len(cell.seeds)}" if self.stop == "oracle" else self.stop

    def parameters(self, cell: Cell) -> Sequence[int | str | None]:
        return parameters(cell.k) if self.stop == "oracle" else [self.parameter]

    def seeds(self, cell: Cell) -> tuple[int, ...]:
        return cell.seeds[: cell.minibatch_seeds] if self.method == "minibatch" else cell.seeds


COLUMNS = {
    c.title: c
    for c in (
        Column("AKM", "akm", "akm", "random", "oracle"),
        Column("Elkan++", "elkan++", "elkan", "k-means++", "converged"),
        Column("Elkan", "elkan", "elkan", "random", "reference"),
        Column("Lloyd++", "lloyd++", "lloyd", "k-means++", "converged"),
        Column("Lloyd", "lloyd", "lloyd", "random", "reference"),
        Column("MiniBatch", "minibatch", "minibatch", "random", "reference"),
        Column("k²-means", "k2means", "k2", "gdi", "oracle"),
        Column("k² all charged", "", "k2", "gdi", "oracle", all_charged=True),
        Column("k² k_n=auto", "", "k2", "gdi", "reference", parameter="auto"),
    )
}
KEEP = Column("AKM, previous center kept", "akm", "akm-keep", "random", "oracle")
LLOYD, K2, K2_ALL, K2_AUTO = "Lloyd++", "k²-means", "k² all charged", "k² k_n=auto"


# ---- what there is ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """All lines by key, and the datasets that have a row in the tables."""

    lines: dict[str, Line]
    datasets: tuple[str, ...]

    def cell(self, dataset: str, k: int) -> Cell | None:
        """The plan's cell behind a row; None if the plan leaves this k out."""
        scope = SCOPES[dataset]
        return Cell("speedup", dataset, k, tuple(range(scope.seeds)), scope.minibatch_seeds) if k in scope.ks else None

    @property
    def runs(self) -> list[Line]:
        return [line for line in self.lines.values() if "dataset" in line]

    def ks(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The k of a table; the dataset of the smoke test has its own."""
        return SCOPES["smoke"].ks if self.datasets == ("smoke",) else wanted

    def init_ks(self) -> tuple[int, ...]:
        return SCOPES["smoke"].init_ks if self.datasets == ("smoke",) else INIT_KS


def read(folder: Path) -> Results:
    return results_of(read_results(folder))


def results_of(lines: dict[str, Line]) -> Results:
    """The paper's datasets are the rows, run or not; the smoke test's only if there is nothing else."""
    present = {line.get("dataset") for line in lines.values()}
    real = tuple(name for name in DATASETS if name in SCOPES)
    return Results(lines, ("smoke",) if "smoke" in present and not present & set(real) else real)


def paper_name(dataset: str) -> str:
    return DATASETS[dataset].paper if dataset in DATASETS else ""


# ---- the paper's tables -------------------------------------------------------------------------------------------

PaperRows = dict[tuple[str, int], dict[str, Value]]  # by dataset and k (0: all k), then by column


def paper_rows(name: str) -> PaperRows:
    """A CSV file. An empty cell is a failure to reach the level."""
    with (PAPER / name).open(encoding="utf-8", newline="") as file:
        return {
            (row["dataset"], int(row.get("k") or 0)): {
                column: Value(float(text), REACHED) if text else Value(state=FAILED)
                for column, text in row.items()
                if column not in ("dataset", "k", "n", "d")
            }
            for row in csv.DictReader(file)
        }


def paper_speedups(level: float) -> PaperRows:
    return paper_rows(f"speedup_at_{level * 100:.1f}pct.csv")


# ---- Tables 5, 6 and 8 to 11: operations to reach a level, relative to Lloyd++ ------------------------------------


@dataclass(frozen=True)
class Row:
    """A dataset and k. `seeds` and `minibatch_seeds` are those of the plan."""

    dataset: str
    k: int
    seeds: int
    minibatch_seeds: int
    entries: dict[str, Entry]

    def best(self, of: Callable[[Entry], Value]) -> set[str]:
        """The paper's methods with the highest speed-up of the row, as it is printed; none while some are not run."""
        if any(of(e).state == NOT_RUN for e in self.entries.values()):
            return set()
        numbers = {t: v.number for t, e in self.entries.items() if COLUMNS[t].paper and (v := of(e)).number is not None}
        top = max((round(x, 1) for x in numbers.values()), default=None)
        return {title for title, x in numbers.items() if round(x, 1) == top}


def seeding_ops(line: Line, all_charged: bool = False) -> float:
    """Operations of the initialisation. The paper's count of GDI is its projections and sorts (see the report)."""
    ops = line["init_ops"]
    if line["init"] == "gdi" and not all_charged:
        return float(ops["products"] + ops["sorts"])
    return float(sum(ops.values()))


def ops_to_reach(line: Line, level: float, all_charged: bool = False) -> float | None:
    hit = line["hits"].get(str(level))
    return None if hit is None else seeding_ops(line, all_charged) + float(hit[1])


def ops_of_seeds(
    results: Results, cell: Cell, column: Column, parameter: int | str | None, level: float
) -> list[float] | str:
    """Operations for each seed; FAILED at the first seed that does not reach the level; NOT_RUN if one is missing.

    A pruned run counts as failed: it ended because another parameter is better on the mean, so it is no candidate.
    """
    out = []
    for seed in column.seeds(cell):
        spec = Spec(cell.dataset, cell.k, column.method, parameter, column.init, seed, column.stop_of(cell))
        line = results.lines.get(spec.key)
        if line is None:
            return NOT_RUN
        ops = ops_to_reach(line, level, column.all_charged)
        if ops is None:
            return FAILED
        out.append(ops)
    return out or NOT_RUN


def speedup(results: Results, cell: Cell | None, column: Column, level: float) -> Value:
    """The mean over seeds of Lloyd++'s operations by the method's, with the parameter of the smallest mean."""
    if cell is None:
        return Value(state=NOT_RUN)
    reference = ops_of_seeds(results, cell, COLUMNS[LLOYD], None, level)
    tried = {p: ops_of_seeds(results, cell, column, p, level) for p in column.parameters(cell)}
    if isinstance(reference, str) or NOT_RUN in tried.values():
        return Value(state=NOT_RUN)
    candidates = {p: ops for p, ops in tried.items() if not isinstance(ops, str)}
    if not candidates:
        return Value(state=FAILED)
    chosen = min(candidates, key=lambda p: mean(candidates[p]))
    ops = candidates[chosen]
    number = mean(a / b for a, b in zip(reference[: len(ops)], ops, strict=True))  # MiniBatch may have fewer seeds
    return Value(number, REACHED, chosen if isinstance(chosen, int) else None)


def speedup_rows(results: Results, level: float, ks: tuple[int, ...] = ALL_KS, main: bool = False) -> list[Row]:
    """The rows of a table, in the paper's order. `main`: as in Tables 5 and 6, which leave a dataset out."""
    paper = paper_speedups(level)
    rows = []
    for dataset in results.datasets:
        if main and paper_name(dataset) in NOT_IN_MAIN:
            continue
        for k in results.ks(ks):
            cell, theirs = results.cell(dataset, k), paper.get((paper_name(dataset), k), {})
            entries = {
                title: Entry(speedup(results, cell, column, level), theirs.get(column.paper, Value(state=ABSENT)))
                for title, column in COLUMNS.items()
            }
            if cell is not None or theirs:
                scope = SCOPES[dataset]
                rows.append(Row(dataset, k, scope.seeds, scope.minibatch_seeds, entries))
    return rows


# ---- averages and comparisons -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Average:
    """Means of ours and of the paper's, over so many cells each."""

    ours: float | None
    ours_cells: int
    paper: float | None
    paper_cells: int

    @property
    def ratio(self) -> float | None:
        return None if self.ours is None or not self.paper else self.ours / self.paper


def _mean(numbers: Sequence[float]) -> float | None:
    return mean(numbers) if numbers else None


def own_average(entries: Iterable[Entry]) -> Average:
    """As the paper does: each over the cells in which it succeeds."""
    entries = list(entries)
    ours = [e.ours.number for e in entries if e.ours.number is not None]
    paper = [e.paper.number for e in entries if e.paper.number is not None]
    return Average(_mean(ours), len(ours), _mean(paper), len(paper))


def common_average(entries: Iterable[Entry]) -> Average:
    """Both over the same cells: those in which both succeed."""
    return own_average(e for e in entries if e.ratio is not None)


@dataclass
class Tally:
    """How the cells of one method compare with the paper's."""

    average: Average
    below: list[str] = field(default_factory=list)  # ratio below 0.9
    within: list[str] = field(default_factory=list)
    above: list[str] = field(default_factory=list)  # ratio above 1.1
    paper_only: list[str] = field(default_factory=list)  # the paper reaches the level, we do not
    ours_only: list[str] = field(default_factory=list)
    neither: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)


def tally(rows: list[Row], title: str) -> Tally:
    """Over the rows that the paper has."""
    out = Tally(common_average(r.entries[title] for r in rows))
    for row in rows:
        entry, name = row.entries[title], f"{row.dataset} k={row.k}"
        states = entry.ours.state, entry.paper.state
        if entry.paper.state == ABSENT:
            continue
        if entry.ours.state == NOT_RUN:
            out.not_run.append(name)
        elif entry.ratio is not None:
            side = out.below if entry.ratio < 0.9 else out.above if entry.ratio > 1.1 else out.within
            side.append(f"{name} ({entry.ratio:.2f})")
        else:
            lists = {(FAILED, REACHED): out.paper_only, (REACHED, FAILED): out.ours_only, (FAILED, FAILED): out.neither}
            lists[states].append(name)
    return out


@dataclass(frozen=True)
class Coverage:
    """What has been run on a dataset, of what the plan holds."""

    dataset: str
    scope: Scope
    ks_done: tuple[int, ...]
    init_seeds: dict[int, int]  # by k: seeds with all three initialisations

    @property
    def ks_missing(self) -> tuple[int, ...]:
        return tuple(k for k in self.scope.ks if k not in self.ks_done)

    @property
    def ks_left_out(self) -> tuple[int, ...]:
        return () if self.dataset == "smoke" else tuple(k for k in ALL_KS if k not in self.scope.ks)

    @property
    def init_missing(self) -> dict[int, int]:
        return {k: self.scope.init_seeds - have for k, have in self.init_seeds.items() if have < self.scope.init_seeds}


def coverage(results: Results) -> list[Coverage]:
    out = []
    for dataset in results.datasets:
        scope = SCOPES[dataset]
        done = tuple(k for k in scope.ks if is_done(results, results.cell(dataset, k)))
        out.append(Coverage(dataset, scope, done, {k: len(init_seeds(results, dataset, k)) for k in scope.init_ks}))
    return out


def is_done(results: Results, cell: Cell | None) -> bool:
    values = [speedup(results, cell, column, level) for column in COLUMNS.values() for level in LEVELS]
    return all(v.state != NOT_RUN for v in values)


# ---- Tables 4 and 7: initialisations ------------------------------------------------------------------------------


@dataclass(frozen=True)
class InitRow:
    """Relative to k-means++. `k` 0: the mean over k. `seeds`: the fewest and the most of the k."""

    dataset: str
    k: int
    seeds: tuple[int, int]
    entries: dict[str, Entry]


# Columns as in the CSV files; the last is ours alone.
INIT_COLUMNS = (
    *(f"{kind}_energy_{init}" for kind in ("avg", "min") for init in ("random", "kmeanspp", "gdi")),
    "ops_gdi",
    "ops_gdi_all",
)


def init_lines(results: Results, dataset: str, k: int, seed: int) -> dict[str, Line | None]:
    names = {init: Spec(dataset, k, "lloyd", None, init, seed, "converged").key for init in INITS}
    return {init: results.lines.get(key) for init, key in names.items()}


def init_seeds(results: Results, dataset: str, k: int) -> list[dict[str, Line]]:
    """The lines of each seed for which all three initialisations have been run."""
    out = []
    for seed in range(SCOPES[dataset].init_seeds):
        lines = {init: line for init, line in init_lines(results, dataset, k, seed).items() if line is not None}
        if len(lines) == len(INITS):
            out.append(lines)
    return out


def init_numbers(seeds: list[dict[str, Line]]) -> dict[str, float]:
    numbers = {}
    for kind, statistic in (("avg", mean), ("min", min)):
        energy = {init: statistic([lines[init]["energy"] for lines in seeds]) for init in INITS}
        for init, name in (("random", "random"), ("k-means++", "kmeanspp"), ("gdi", "gdi")):
            numbers[f"{kind}_energy_{name}"] = energy[init] / energy["k-means++"]
    ops = mean(seeding_ops(lines["k-means++"]) for lines in seeds)
    numbers["ops_gdi"] = mean(seeding_ops(lines["gdi"]) for lines in seeds) / ops
    numbers["ops_gdi_all"] = mean(seeding_ops(lines["gdi"], all_charged=True) for lines in seeds) / ops
    return numbers


def _init_row(dataset: str, k: int, counts: list[int], numbers: list[dict[str, float]], paper: PaperRows) -> InitRow:
    """Of one k, or the mean over several."""
    theirs = paper.get((paper_name(dataset), k), {})
    entries = {}
    for column in INIT_COLUMNS:
        ours = Value(mean(n[column] for n in numbers), REACHED) if numbers else Value()
        entries[column] = Entry(ours, theirs.get(column, Value(state=ABSENT)))
    return InitRow(dataset, k, (min(counts), max(counts)) if counts else (0, 0), entries)


def init_rows(results: Results, by_k: bool) -> list[InitRow]:
    """Table 7 (by k) or Table 4 (means over k, once every k has been run)."""
    paper = paper_rows("init_energy_by_k.csv" if by_k else "init_energy.csv")
    rows = []
    for dataset in results.datasets:
        found = {k: init_seeds(results, dataset, k) for k in results.init_ks()}
        if not SCOPES[dataset].init_ks:  # left out by the plan, as in the paper
            continue
        numbers = {k: [init_numbers(seeds)] if seeds else [] for k, seeds in found.items()}
        if by_k:
            rows += [_init_row(dataset, k, [len(found[k])], numbers[k], paper) for k in found]
        else:
            every = [n for of_k in numbers.values() for n in of_k]
            complete = len(every) == len(found)
            rows.append(_init_row(dataset, 0, [len(s) for s in found.values()], every if complete else [], paper))
    return rows


# ---- Tables 2 and 3: how operations grow --------------------------------------------------------------------------

PARAMETER_NAMES = {"akm": "m", "k2": "k_n"}
BASE = {"n": 20000, "k": 200, "parameter": 20}
Point = dict[str, float]  # n, k, parameter and a count


@dataclass(frozen=True)
class Growth:
    """Counts at the middle shape, and the exponents of n, k and the parameter when only that one changes."""

    at_base: float | None
    exponents: dict[str, float | None]


@dataclass(frozen=True)
class Terms:
    """A count as a sum of two terms, by least squares, all shapes weighing the same."""

    names: tuple[str, str]
    factors: tuple[float, float]
    worst: float  # largest relative error over the shapes


@dataclass(frozen=True)
class Complexity:
    method: str
    first: Growth
    last: Growth
    first_terms: Terms | None
    last_terms: Terms | None
    memory: int


@dataclass(frozen=True)
class InitComplexity:
    """Operations of an initialisation: growth, and by n·k and by n·log2(k) over all shapes (least, most)."""

    init: str
    growth: Growth
    by_nk: tuple[float, float] | None
    by_nlogk: tuple[float, float] | None


def growth(points: list[Point]) -> Growth:
    at_base = [p["count"] for p in points if all(p[axis] == BASE[axis] for axis in BASE)]
    return Growth(at_base[0] if at_base else None, {axis: exponent(points, axis) for axis in BASE})


def exponent(points: list[Point], axis: str) -> float | None:
    """The slope of log count over log axis, among the shapes that differ from the middle one in this axis only."""
    others = [a for a in BASE if a != axis]
    line = [p for p in points if all(p[a] == BASE[a] for a in others)]
    if len({p[axis] for p in line}) < 2 or any(p["count"] <= 0 for p in line):
        return None
    return float(np.polyfit([math.log(p[axis]) for p in line], [math.log(p["count"]) for p in line], 1)[0])


def fit_terms(points: list[Point], names: tuple[str, str]) -> Terms | None:
    terms: dict[str, Callable[[Point], float]] = {
        "n": lambda p: p["n"],
        "n·k": lambda p: p["n"] * p["k"],
        "n·k_n": lambda p: p["n"] * p["parameter"],
        "k(k−1)/2": lambda p: p["k"] * (p["k"] - 1) / 2,
    }
    if len(points) < 3:
        return None
    count = np.array([p["count"] for p in points])
    table = np.array([[terms[name](p) for name in names] for p in points]) / count[:, None]
    factors = np.linalg.lstsq(table, np.ones(len(points)), rcond=None)[0]
    return Terms(names, (float(factors[0]), float(factors[1])), float(np.abs(table @ factors - 1).max()))


def complexity_points(results: Results, method: str, count: Callable[[Line], float]) -> list[Point]:
    """A point for every run of the plan; methods without a parameter stand on the middle one."""
    points = []
    for spec in complexity_specs():
        line = results.lines.get(spec.key)
        if spec.method == method and line is not None:
            shape = {"n": float(line["n"]), "k": float(spec.k), "parameter": float(spec.parameter or BASE["parameter"])}
            points.append(shape | {"count": float(count(line))})
    return points


def complexities(results: Results) -> list[Complexity]:
    """Distances of the first and of the last iteration; of MiniBatch those of one batch."""
    out = []
    for method in ("lloyd", "elkan", "minibatch", "akm", "k2"):

        def at(which: int, method: str = method) -> list[Point]:
            def count(line: Line) -> float:
                batches = math.ceil(line["n"] / 100) if method == "minibatch" else 1
                return float(line["distances"][which]) / batches

            return complexity_points(results, method, count)

        first, last, graph = at(0), at(-1), "k(k−1)/2"
        wide = {"elkan": "n·k", "k2": "n·k_n"}.get(method)
        n, k, parameter = BASE.values()
        spec = Spec(f"mixture-{n}", k, method, parameter if method in PARAMETER_NAMES else None, "", 0, "")
        out.append(
            Complexity(
                method,
                growth(first),
                growth(last),
                fit_terms(first, (wide, graph)) if wide else None,
                fit_terms(last, ("n", graph)) if wide else None,
                method_of(spec).memory(n, COMPLEXITY_D, k),
            )
        )
    return out


def init_complexities(results: Results) -> list[InitComplexity]:
    """Random draws cost nothing; k-means++ from the runs of Lloyd, GDI from those of k² (both counts)."""

    def of(name: str, method: str, all_charged: bool) -> InitComplexity:
        points = complexity_points(results, method, lambda line: seeding_ops(line, all_charged))
        nk = [p["count"] / (p["n"] * p["k"]) for p in points]
        nlogk = [p["count"] / (p["n"] * math.log2(p["k"])) for p in points]
        ends = [(min(x), max(x)) if x else None for x in (nk, nlogk)]
        return InitComplexity(name, growth(points), *ends)

    return [
        of("k-means++", "lloyd", True),
        of("GDI, the paper's count", "k2", False),
        of("GDI, all charged", "k2", True),
    ]


# ---- the appendix -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Provenance:
    machines: list[str]
    versions: list[str]
    runs: dict[str, int]  # by plan
    seconds: float
    planned: int
    planned_done: int


def provenance(results: Results) -> Provenance:
    runs = results.runs
    names = {"mixture": "complexity", "smoke": "smoke"}
    counts: dict[str, int] = {}
    for line in runs:
        plan = names.get(str(line["dataset"]).split("-")[0], "speedup and init")
        counts[plan] = counts.get(plan, 0) + 1
    versions = {", ".join(f"{k} {v}" for k, v in sorted(line["versions"].items())) for line in runs}
    mandatory = {s.key for c in cells("all") for s in specs(c) if not s.stop.startswith("oracle")}
    return Provenance(
        machines=sorted({str(line["machine"]) for line in runs}),
        versions=sorted(versions),
        runs=dict(sorted(counts.items())),
        seconds=sum(float(line["seconds"]) for line in runs),
        planned=len(mandatory),
        planned_done=len(mandatory & results.lines.keys()),
    )


def figure1(results: Results) -> dict[str, Any] | None:
    return results.lines.get("figure1")
