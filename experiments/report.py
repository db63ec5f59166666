"""The page with every table and figure, assembled from the results, as Markdown and as one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import TypeVar

from . import tables
from .datasets import DATASETS
from .figures import Drawing, draw
from .plans import AKM_DATASETS, COMPLEXITY_D, LEVELS, MAX_ITER, MINIBATCH_ITER, PARAMETERS, SLACK
from .render import Heading, Part, Picture, Table, Text, plain, write_page
from .runner import shape_of
from .tables import (
    ABSENT,
    COLUMNS,
    FAILED,
    INIT_COLUMNS,
    K2,
    K2_ALL,
    K2_AUTO,
    LLOYD,
    MAIN_KS,
    NOT_RUN,
    Average,
    Entry,
    Results,
    Row,
    Value,
)

SomeRow = TypeVar("SomeRow", Row, tables.InitRow)
REMARKS = Path(__file__).parent / "remarks.md"
GOAL_SPEEDUP = 0.9  # of the paper's
GOAL_ENERGY = 1.0  # GDI's converged energy by that of k-means++


def write(results: Path, docs: Path) -> None:
    """Write docs/reproduction.md, docs/reproduction.html and docs/figures from whatever results there are."""
    print(write_page(docs, "reproduction", page(tables.read(results))))


def page(results: Results) -> list[Part]:
    sections = (summary, remarks, counting, complexity, initialisations, speedups, pictures, appendix)
    return [Heading("The paper's experiments, done again", 1), *(p for section in sections for p in section(results))]


# ---- words and numbers ---------------------------------------------------------------------------------------------


def number(value: Value, digits: int) -> str:
    if value.number is not None:
        return f"{value.number:.{digits}f}"
    return {FAILED: "-", NOT_RUN: "not run", ABSENT: ""}[value.state]


def entry_text(entry: Entry, digits: int = 1, bold: tuple[bool, bool] = (False, False), name: str = "") -> str:
    """`ours / the paper's = ratio (parameter)`; only ours where the paper has no such row."""
    ours, paper = number(entry.ours, digits), number(entry.paper, digits)
    text = f"**{ours}**" if bold[0] else ours
    if paper:
        text += f" / **{paper}**" if bold[1] else f" / {paper}"
    if entry.ratio is not None:
        text += f" = {entry.ratio:.2f}"
    return text + (f" <small>({name} {entry.ours.parameter})</small>" if entry.ours.parameter and name else "")


def listing(names: Iterable[str]) -> str:
    return ", ".join(plain(name) for name in names) or "none"


def ks_text(ks: Iterable[int]) -> str:
    return ", ".join(map(str, ks))


def percent(level: float) -> str:
    return f"{level * 100:g} %"


def shape_text(dataset: str) -> str:
    return "{}×{}".format(*shape_of(dataset))


def dataset_notes(datasets: Iterable[str]) -> list[str]:
    """A footnote for every dataset that is not the paper's own."""
    notes = []
    for data in (DATASETS[d] for d in dict.fromkeys(datasets) if d in DATASETS):
        if data.stand_in:
            notes.append(f"{plain(data.name)} stands in for the paper's {data.paper}, whose numbers it is beside. "
                         f"{plain(data.note)}")  # fmt: skip
        elif data.note:
            notes.append(f"{plain(data.name)}: {plain(data.note)}")
    return notes


# ---- 0. summary ----------------------------------------------------------------------------------------------------


def summary(results: Results) -> list[Part]:
    main = {level: tables.speedup_rows(results, level, MAIN_KS, main=True) for level in (0.01, 0.0)}
    full = {level: tables.speedup_rows(results, level) for level in (0.01, 0.0)}
    bullets = [b for level in main for b in speedup_bullets(level, main[level], full[level])]
    bullets += gdi_bullets(results)
    return [
        Heading("Summary"),
        Text(
            "Every number is written as **ours / the paper's = ratio**. A speed-up is the number of vector "
            "operations of Lloyd++ by that of the method, both until they reach the same energy. The comparison "
            "with the paper uses the paper's count of GDI. This page is generated; the sentences follow from the "
            "numbers."
        ),
        Text("\n".join(f"- {b}" for b in bullets)),
        cells_table(full),
        tally_table(full),
        coverage_table(results),
        Text("\n".join(f"- {b}" for b in run_bullets(results))),
    ]


def verdict(ratio: float | None, goal: float = GOAL_SPEEDUP) -> str:
    return "reached" if ratio is not None and ratio >= goal else "**missed**"


def in_paper(rows: Sequence[SomeRow], column: str) -> list[SomeRow]:
    """The rows that the paper has too: only they enter averages. All, where it has none (the smoke test)."""
    return [r for r in rows if r.entries[column].paper.state != ABSENT] or list(rows)


def speedup_bullets(level: float, main: list[Row], full: list[Row]) -> list[str]:
    """Average speed-ups of k² beside the paper's, over the same cells."""
    average, every = (tables.common_average(r.entries[K2] for r in rows) for rows in (main, full))
    theirs, lost = tables.own_average(r.entries[K2] for r in main).paper, tables.tally(main, K2).paper_only
    if average.ratio is None:
        return [f"**k²-means at {percent(level)}**: no cell of the paper's has been run."]
    other = tables.common_average(r.entries[K2] for r in full if r.dataset != "covtype")
    rest = f"Over all k: {average_text(every)} ({every.ours_cells} cells), {verdict(every.ratio)}"
    if other.ratio is not None:
        rest += f"; without covtype, which seems to be other data, {average_text(other)}, {verdict(other.ratio)}"
    out = [
        f"**k²-means at {percent(level)}**, k = {ks_text(MAIN_KS)}: {average_text(average)}, on average over the "
        f"{average.ours_cells} cells where both reach the level. Goal: a ratio of at least {GOAL_SPEEDUP}, "
        f"{verdict(average.ratio)}. Not in it: {len(lost)} cells that the paper reaches and we do not. "
        f"{rest}. "
        f"The paper's own average, over all its cells, is {theirs:.1f}."
    ]
    return out + charged_bullets(level, full)


def charged_bullets(level: float, rows: list[Row]) -> list[str]:
    """What k² gives with everything charged, and what a user gets."""
    rows = in_paper(rows, K2)

    def both(title: str) -> tuple[float, float, int]:
        pairs = [(r.entries[K2].ours.number, r.entries[title].ours.number) for r in rows]
        found = [(a, b) for a, b in pairs if a is not None and b is not None]
        return mean(a for a, _ in found), mean(b for _, b in found), len(found)

    out = []
    if any(r.entries[K2_ALL].ours.number for r in rows):
        out.append("with all of GDI's operations charged {1:.1f} instead of {0:.1f} ({2} cells)".format(*both(K2_ALL)))
    if any(r.entries[K2].ours.number and r.entries[K2_AUTO].ours.number for r in rows):
        out.append("with k_n = auto {1:.1f} instead of {0:.1f} ({2} cells where both reach it)".format(*both(K2_AUTO)))
    missed = [f"{r.dataset} k={r.k}" for r in rows if r.entries[K2_AUTO].ours.state == FAILED]
    text = f"At {percent(level)}, k²-means over all k: {'; '.join(out)}."
    return [f"{text} k_n = auto does not reach {percent(level)} in: {listing(missed)}."] if out else []


def gdi_bullets(results: Results) -> list[str]:
    rows = in_paper(tables.init_rows(results, by_k=False), "avg_energy_gdi")
    energy = tables.own_average(r.entries["avg_energy_gdi"] for r in rows)
    same = tables.common_average(r.entries["avg_energy_gdi"] for r in rows)
    ops, every = (tables.own_average(r.entries[c] for r in rows) for c in ("ops_gdi", "ops_gdi_all"))
    ops_same = tables.common_average(r.entries["ops_gdi"] for r in rows)
    if energy.ours is None or ops.ours is None or every.ours is None:
        return ["**GDI**: no dataset has been run for all k of Table 4."]
    worse = [r.dataset for r in rows if (r.entries["avg_energy_gdi"].ours.number or 0.0) > 1.0]
    beside = f" (the paper {same.paper:.3f} over the same datasets)" if same.paper else ""
    ops_beside = f" (the paper {ops_same.paper:.3f})" if ops_same.paper else ""
    return [
        f"**GDI's converged energy**, relative to k-means++: {energy.ours:.4f} on average over {energy.ours_cells} "
        f"datasets{beside}. Goal: at most {GOAL_ENERGY:.2f}, {verdict(-energy.ours, -GOAL_ENERGY)}. "
        f"Above k-means++: {listing(worse)}.",
        f"**GDI's operations**, relative to k-means++: {ops.ours:.3f} in the paper's count{ops_beside}, "
        f"{every.ours:.3f} with everything charged.",
    ]


def cells_table(full: dict[float, list[Row]]) -> Table:
    """The cells of k² that differ from the paper's, by name."""
    found = [tables.tally(rows, K2) for rows in full.values()]
    names = {
        "the paper reaches the level, we do not": [t.paper_only for t in found],
        "we reach it, the paper does not": [t.ours_only for t in found],
        f"below {GOAL_SPEEDUP} of the paper's (ratio)": [t.below for t in found],
        "above 1.1 of the paper's (ratio)": [t.above for t in found],
    }
    rows = [[what, *(listing(cells) for cells in of_levels)] for what, of_levels in names.items()]
    header = ["k²-means, all k", *(f"at {percent(level)}" for level in full)]
    return Table("Cells of k²-means that differ from the paper's", header, rows, left=3)


def average_text(average: Average) -> str:
    if average.ours is None or average.paper is None or average.ratio is None:
        return ""
    return f"{average.ours:.1f} / {average.paper:.1f} = {average.ratio:.2f}"


def tally_table(full: dict[float, list[Row]]) -> Table:
    header = ["method", "level", "average, same cells", "cells", "0.9 to 1.1", "below 0.9", "above 1.1",
              "only the paper reaches it", "only we do", "neither", "not run"]  # fmt: skip
    rows = []
    for level, of_level in full.items():
        for title in (t for t, c in COLUMNS.items() if c.paper and t != LLOYD):
            t = tables.tally(of_level, title)
            counts = [t.within, t.below, t.above, t.paper_only, t.ours_only, t.neither, t.not_run]
            average = [average_text(t.average), str(t.average.ours_cells)]
            rows.append([title, percent(level), *average, *(str(len(cells)) for cells in counts)])
    return Table("Cells of the paper's Tables 8 and 10 (all k) beside ours", header, rows)


def coverage_table(results: Results) -> Table:
    header = ["dataset", "n×d", "speed-ups: k done", "planned, not done", "not planned", "seeds", "of MiniBatch",
              "initialisations: seeds done by k", "of"]  # fmt: skip
    rows = []
    for c in tables.coverage(results):
        seeds = ", ".join(f"{k}: {have}" for k, have in c.init_seeds.items()) or "not planned"
        ks = [ks_text(sorted(x)) or "–" for x in (c.ks_done, c.ks_missing, c.ks_left_out)]
        of = str(c.scope.init_seeds) if c.init_seeds else ""
        rows.append(
            [plain(c.dataset), shape_text(c.dataset), *ks, str(c.scope.seeds), str(c.scope.minibatch_seeds), seeds, of]
        )
    return Table("What has been run", header, rows, dataset_notes(results.datasets))


def run_bullets(results: Results) -> list[str]:
    covered = tables.coverage(results)

    def with_ks(ks_of: Callable[[tables.Coverage], Iterable[int]]) -> str:
        return listing(f"{c.dataset} ({ks_text(sorted(ks))})" for c in covered if (ks := list(ks_of(c))))

    stand_ins = [c.dataset for c in covered if c.dataset in DATASETS and DATASETS[c.dataset].stand_in]
    return [
        f"Stand-ins (starred; notes above): {listing(stand_ins)}.",
        f"Planned speed-ups not done yet, by dataset (k): {with_ks(lambda c: c.ks_missing)}.",
        f"Planned initialisations with seeds not done yet: {with_ks(lambda c: c.init_missing)}.",
        f"Speed-ups not planned, for they take too long: {with_ks(lambda c: c.ks_left_out)}.",
        f"Initialisations not planned, as in the paper: {listing(c.dataset for c in covered if not c.scope.init_ks)}.",
    ]


def remarks(results: Results) -> list[Part]:
    """Written by hand, if there are any."""
    if not REMARKS.is_file():
        return []
    return [Heading("Where we differ, and why"), Text(REMARKS.read_text(encoding="utf-8"))]


# ---- 1. how it is counted ------------------------------------------------------------------------------------------


def counting(results: Results) -> list[Part]:
    text = f"""
- **Operations.** As in the paper, one unit is one operation on a vector of d numbers: a distance, an inner product
  or an addition. An iteration of Lloyd costs n·k distances, k-means++ n·k, the graph of the centers k(k−1)/2. Moving
  the centers costs one addition for each row really added or taken away. If clusters run empty, finding rows to
  refill them costs n distances. Norms, walks down AKM's trees and measuring the energy are not charged.
- **Reference.** R is the energy of Lloyd++ (k-means++, then Lloyd until no center moves or {MAX_ITER} iterations)
  for the same dataset, k and seed. A level of p is reached at the first iteration with energy ≤ (1 + p)·R·(1 +
  {SLACK:g}), with p = {", ".join(percent(level) for level in LEVELS)}. Lloyd++ itself reaches 0 % at the first
  iteration that is so close to its last.
- **Speed-up.** For a seed: operations of Lloyd++ until it reaches the level, by those of the method, both with their
  initialisation. A cell is the mean over seeds. If one seed does not reach the level, the cell is "-"; how the
  paper treats such a seed, it does not say.
- **Seeds.** All methods of a seed start from the same generator; the same initialisation gives the same centers. The
  number of seeds stands in each row; the paper has 3, and 20 for the initialisations.
- **Oracle.** k_n of k² and m of AKM are out of {{{ks_text(sorted(PARAMETERS))}}}, at most k. As in the paper, k_n
  and m are chosen per cell with hindsight on the mean over seeds: it tells what the method can do, not what a user
  gets; the column k_n=auto is what a user gets. The choice is the same for both counts of GDI. The k_n
  of auto is not in the list, so it may even be a little faster than the oracle.
- **Stopping.** Lloyd++ and Elkan++ run until they converge, at most {MAX_ITER} iterations. The others end also when
  they reach R. A run of AKM or k² ends also when its parameter cannot become the best of its cell on the mean over
  seeds: this does not change any choice. MiniBatch draws batches of b = 100 rows, t = n/2 in all; its energy is
  measured {MINIBATCH_ITER} times, after n/100 batches each, and it is charged up to that moment.
- **Two counts of GDI.** An iteration of Projective Split on m rows does m inner products (the projection),
  m·log2(m)/d for the sort, m additions and m distances (the scan for the best cut). The numbers of the paper's own
  Table 4 are explained by the products and the sorts alone: this is the paper's count, used wherever ours stands
  beside the paper's, and in the column of k_n=auto. "All charged" is the sum of all four. In the paper's count ours
  is about a tenth cheaper than the paper's own (Table 4), which favours k² a little.
- **Exactness.** Elkan's energies are checked against Lloyd's at every iteration kept; a difference would stop the
  run.
"""
    return [Heading("1. How it is counted"), Text(text)]


# ---- 2. complexity -------------------------------------------------------------------------------------------------

TIME = {
    "lloyd": ("Lloyd", "O(nkd)", "O((n+k)d)"),
    "elkan": ("Elkan", "O(nkd + k²d), falling to O(nd + k²d)", "O((n+k)d + nk + k²)"),
    "minibatch": ("MiniBatch (a batch)", "O(bkd)", "O((b+k)d)"),
    "akm": ("AKM", "O(nmd)", "O((n+k)d)"),
    "k2": ("k²-means", "O(n·k_n·d + k²d), falling to O(nd + k²d)", "O((n+k)d + n·k_n + k²)"),
}


def maybe(x: float | None, form: str = ".2f") -> str:
    return "not run" if x is None else f"{x + 0.0:{form}}".replace("-0.00", "0.00")


def complexity(results: Results) -> list[Part]:
    n, k, parameter = tables.BASE.values()
    text = (
        f"Counted on generated mixtures, d = {COMPLEXITY_D}, one seed. The middle shape is n = {n}, k = {k}, "
        f"k_n = m = {parameter}; n goes from 5000 to 40000, k from 50 to 800, the parameter from 5 to 80, one at a "
        "time. An exponent is the slope of log(count) over log(n), log(k) or log(parameter), by least squares. The "
        "paper's formulae say how the count should grow; d is a factor in all of them."
    )
    return [
        Heading("2. Complexity (Tables 2 and 3)"),
        Text(text),
        table2(tables.complexities(results)),
        terms_table(tables.complexities(results)),
        table3(tables.init_complexities(results)),
    ]


def table2(found: list[tables.Complexity]) -> Table:
    header = ["method", "time, the paper", "distances, iteration 1", "exponents: n", "k", "m, k_n",
              "distances, last iteration", "exponents: n", "k", "m, k_n", "memory, the paper",
              "memory beside the data, ours (kB)"]  # fmt: skip
    rows = []
    for c in found:
        name, time, memory = TIME[c.method]
        row = [name, time]
        for growth in (c.first, c.last):
            row += [maybe(growth.at_base, ",.0f"), maybe(growth.exponents["n"]), maybe(growth.exponents["k"])]
            row.append(maybe(growth.exponents["parameter"]) if c.method in tables.PARAMETER_NAMES else "")
        rows.append([*row, memory, f"{c.memory / 1000:,.0f}"])
    notes = [
        "MiniBatch: one batch of b = 100 rows (an iteration of ours is n/100 batches).",
        "AKM with few checks leaves clusters empty; refilling them costs n distances, so its exponent of m is below 1.",
        "Memory: what the method says it keeps (`method.memory(n, d, k)`), at the middle shape, in bytes by 1000.",
    ]
    return Table("Table 2. An iteration: the paper's formulae, and what we count", header, rows, notes, left=2)


def terms_table(found: list[tables.Complexity]) -> Table:
    rows = []
    for c in found:
        for when, terms in (("first", c.first_terms), ("last", c.last_terms)):
            if terms is not None:
                (a, b), (wide, graph) = terms.factors, terms.names
                fit = f"{a + 0.0:.3f}·{wide} + {abs(b):.3f}·{graph}".replace("+", "−" if b < -0.0005 else "+")
                rows.append([TIME[c.method][0], when, fit, f"{terms.worst * 100:.1f} %"])
    rows = rows or [["Elkan, k²-means", "", "not run", ""]]
    header = ["method", "iteration", "distances", "largest error over the shapes"]
    notes = ["In the first iteration of k² the bounds skip some candidates already: more of them where k_n is large."]
    return Table("Distances of Elkan and k²-means as two terms, by least squares", header, rows, notes, left=3)


def table3(found: list[tables.InitComplexity]) -> Table:
    header = ["initialisation", "time, the paper", "operations at the middle", "exponents: n", "k",
              "operations / n·k", "operations / n·log2(k)", "memory, the paper"]  # fmt: skip
    gdi = "O(n·log(k)·(d + log n)) to O(nk(d + log n))"
    formulae = [("O(nkd)", "O(n+k)"), (gdi, "O(n + kd)"), (gdi, "O(n + kd)")]
    rows = [["random", "O(k)", "0", "", "", "", "", "O(k)"]]
    for c, (time, memory) in zip(found, formulae, strict=True):
        ranges = ["not run" if r is None else f"{r[0]:.2f} to {r[1]:.2f}" for r in (c.by_nk, c.by_nlogk)]
        growth = [maybe(c.growth.at_base, ",.0f"), maybe(c.growth.exponents["n"]), maybe(c.growth.exponents["k"])]
        rows.append([c.init, time, *growth, *ranges, memory])
    notes = ["Ranges are the least and the most over the shapes. Drawing rows at random costs no vector operation."]
    return Table("Table 3. Initialisations: the paper's formulae, and what we count", header, rows, notes, left=2)


# ---- 3. initialisations --------------------------------------------------------------------------------------------

INIT_HEADER = ["mean energy: random", "k-means++", "GDI", "least energy: random", "k-means++", "GDI",
               "operations: GDI", "GDI, all charged"]  # fmt: skip


def initialisations(results: Results) -> list[Part]:
    text = (
        "Lloyd from each initialisation until it converges. Energies and operations are relative to k-means++: "
        "the mean over seeds by its mean, the least by its least. Only seeds for which all three have been run. "
        "Operations are those of the initialisation alone; random draws cost none. The paper averages over 20 "
        "seeds."
    )
    by_k = [([plain(r.dataset), shape_text(r.dataset), str(r.k)], r) for r in tables.init_rows(results, by_k=True)]
    means = [([plain(r.dataset), shape_text(r.dataset)], r) for r in tables.init_rows(results, by_k=False)]
    ks = ks_text(results.init_ks())
    return [
        Heading("3. Initialisations (Tables 4 and 7)"),
        Text(text),
        init_table(f"Table 4. Initialisations, averaged over k = {ks}", ["dataset", "n×d"], means),
        init_table("Table 7. Initialisations by k", ["dataset", "n×d", "k"], by_k),
    ]


def init_table(title: str, names: list[str], rows: list[tuple[list[str], tables.InitRow]]) -> Table:
    out = []
    for start, row in rows:
        low, high = row.seeds
        digits = 3 if row.k == 0 else 2
        cells = [init_text(row.entries[column], digits) for column in INIT_COLUMNS]
        out.append([*start, str(low) if low == high else f"{low} to {high}", *cells])
    averages = []
    compared = in_paper([row for _, row in rows], "avg_energy_gdi")
    for column in INIT_COLUMNS:
        entries = [row.entries[column] for row in compared]
        ours = tables.own_average(entries) if column == "ops_gdi_all" else tables.common_average(entries)
        averages.append("" if ours.ours is None else f"{ours.ours:.3f}")
        if ours.paper is not None and ours.ratio is not None:
            averages[-1] += f" / {ours.paper:.3f} = {ours.ratio:.3f}"
    count = sum(row.entries["avg_energy_gdi"].ratio is not None for _, row in rows)
    label = ["average, same rows", f"{count} rows", *([""] * (len(names) - 1))]
    notes = dataset_notes(row.dataset for _, row in rows)
    return Table(title, [*names, "seeds", *INIT_HEADER], [*out, [*label, *averages]], notes)


def init_text(entry: Entry, digits: int) -> str:
    """Ours to three decimals, the paper's as it prints them."""
    paper, ours = number(entry.paper, digits), number(entry.ours, 3)
    ratio = "" if entry.ratio is None else f" = {entry.ratio:.3f}"
    return ours + (f" / {paper}" if paper else "") + ratio


# ---- 4. speed-ups --------------------------------------------------------------------------------------------------


def speedups(results: Results) -> list[Part]:
    text = (
        "Operations of Lloyd++ by those of the method until each reaches the level. Bold: the best of the paper's "
        'methods in the row, ours and the paper\'s. "-": a seed does not reach the level. "not run": not all the '
        "runs behind the cell have been made. k²-means and k_n=auto are in the paper's count of GDI; the last two "
        "columns are ours alone. Averages are over the rows that the paper has."
    )
    main = [(5, 0.01), (6, 0.0)]
    supplement = [(8, 0.0), (9, 0.005), (10, 0.01), (11, 0.02)]
    parts: list[Part] = [Heading("4. Speed-ups (Tables 5, 6 and 8 to 11)"), Text(text)]
    for table, level in main:
        rows = tables.speedup_rows(results, level, MAIN_KS, main=True)
        parts.append(speedup_table(f"Table {table}. Speed-up over Lloyd++ at {percent(level)}", rows, minibatch=False))
    for table, level in supplement:
        title = f"Table {table} (supplement). Speed-up over Lloyd++ at {percent(level)}, all k"
        parts.append(speedup_table(title, tables.speedup_rows(results, level), minibatch=True))
    return [*parts, keep_table(results)]


def keep_table(results: Results) -> Table:
    """What the rule that AKM's authors left out would bring."""
    rows = []
    for level in (0.01, 0.0):
        paper = tables.paper_speedups(level)
        for dataset in (d for d in AKM_DATASETS if d in results.datasets):
            for k in tables.ALL_KS:
                cell, theirs = results.cell(dataset, k), paper.get((tables.paper_name(dataset), k), {})
                cells = [
                    entry_text(Entry(tables.speedup(results, cell, column, level)), name="m")
                    for column in (COLUMNS["AKM"], tables.KEEP)
                ]
                rows.append([plain(dataset), str(k), percent(level), *cells, number(theirs.get("akm", Value()), 1)])
    notes = dataset_notes(d for d in AKM_DATASETS if d in results.datasets)
    header = ["dataset", "k", "level", "AKM", tables.KEEP.title, "AKM, the paper"]
    return Table(
        "AKM: whether a row's previous center is one of its candidates (not in the paper)", header, rows, notes
    )


def speedup_table(title: str, rows: list[Row], minibatch: bool) -> Table:
    titles = [t for t in COLUMNS if minibatch or t != "MiniBatch"]
    out = []
    for row in rows:
        ours, theirs = row.best(lambda e: e.ours), row.best(lambda e: e.paper)
        cells = [
            entry_text(row.entries[t], 1, (t in ours, t in theirs), tables.PARAMETER_NAMES.get(COLUMNS[t].method, ""))
            for t in titles
        ]
        seeds = str(row.seeds)
        if minibatch and row.minibatch_seeds != row.seeds:
            seeds += f", MiniBatch {row.minibatch_seeds}"
        out.append([plain(row.dataset), shape_text(row.dataset), str(row.k), seeds, *cells])
    out += average_rows(rows, titles)
    notes = dataset_notes(row.dataset for row in rows)
    alone = {r.dataset for r in rows} - {r.dataset for r in rows if r.entries[K2].paper.state != ABSENT}
    if alone - {"smoke"}:
        notes.append(f"The paper's table has no such row: {listing(sorted(alone))}.")
    return Table(title, ["dataset", "n×d", "k", "seeds", *titles], out, notes)


def average_rows(rows: list[Row], titles: list[str]) -> list[list[str]]:
    """As in the paper, over each method's own cells; then over the cells that both have."""
    rows = in_paper(rows, K2)
    own, same = ["average, own cells", "", "", ""], ["average, same cells", "", "", ""]
    for title in titles:
        entries = [row.entries[title] for row in rows]
        mine, both = tables.own_average(entries), tables.common_average(entries)
        sides = [(mine.ours, mine.ours_cells), (mine.paper, mine.paper_cells)]
        if not COLUMNS[title].paper or mine.paper is None:
            sides = sides[:1]
        own.append(" / ".join("-" if x is None else f"{x:.1f} <small>({count})</small>" for x, count in sides))
        same.append(f"{average_text(both)} <small>({both.ours_cells})</small>" if both.ratio is not None else "")
    return [own, same]


# ---- 5. figures ----------------------------------------------------------------------------------------------------

ENDS = (
    "Runs stop when they reach the reference, or when they cannot win any more, so curves end early. Operations "
    "include the initialisation (GDI in the paper's count); energies are relative to the last energy of Lloyd++ "
    "of the same seed, seed 0; grey lines are 0 % and 1 %. A dot is the end of a run; what lies above the frame "
    "is not shown."
)
CAPTIONS = {
    "figure1": (
        "Figure 1. Two iterations of k-means with k = 2 and of Projective Split from the same centers.",
        "Crosses: the centers before the iteration. Dashed: the direction through them. Solid: the cut. The "
        "energy is that of the two sides.",
    ),
    "figure2": (
        "Figure 2. Energy over operations.",
        "AKM and k²-means with the parameter of the highest speed-up at 1 %; in brackets: none reaches 1 % (or "
        "not all have been run), and the one of lowest energy is drawn. " + ENDS,
    ),
    "figure3": ("Figure 3 (supplement). Energy over operations.", "As Figure 2. " + ENDS),
    "figure4": (
        "Figure 4 (supplement). Energy over operations of AKM and k²-means with every parameter.",
        "A parameter that fails with the first seed, or cannot win, is there too, as far as it went. " + ENDS,
    ),
}


def pictures(results: Results) -> list[Part]:
    drawn = draw(results)
    parts: list[Part] = [Heading("5. Figures")]
    for name, (title, caption) in CAPTIONS.items():
        if name in drawn:
            parts.append(picture(drawn[name], title, caption))
        else:
            parts.append(Text(f"**{title}** Left out: not run."))
    return parts


def picture(drawing: Drawing, title: str, caption: str) -> Picture:
    notes = [caption]
    if drawing.missing:
        notes.append(f"Left out, not run: {listing(drawing.missing)}.")
    notes += dataset_notes(drawing.datasets)
    return Picture(drawing.name, title, " ".join(notes), drawing.svg)


# ---- appendix ------------------------------------------------------------------------------------------------------


def appendix(results: Results) -> list[Part]:
    p = tables.provenance(results)
    runs = ", ".join(f"{name}: {count}" for name, count in p.runs.items()) or "none"
    text = f"""
- Machines: {listing(p.machines)}. Counts and energies do not depend on the machine or its threads; seconds do.
- Versions: {"; ".join(map(plain, p.versions)) or "none"}.
- Runs: {runs}. Of the {p.planned} runs of the plan that are always made (the search for k_n and m makes as many as
  it needs), {p.planned_done} have been made.
- Seconds of all runs together: {p.seconds:,.0f}, on one thread each.
- To do it again: `make experiments`, which is `python -m experiments run all`, goes on from what is in
  `experiments/results` (another folder, to start from nothing: `--results`); `make reproduce`, which is
  `python -m experiments report`, writes this page. The datasets are fetched, or taken from the folders named in
  `K2MEANS_DATA`.
- The paper's numbers are in `experiments/paper/*.csv`, ours in `experiments/results/*/*.jsonl`, one line a run.
"""
    return [Heading("Appendix: how this was made"), Text(text)]
