"""The page of the race, docs/race.md and .html, and the README's headline table, from race.jsonl alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .race import FOREIGN, LEVELS
from .race_data import ROWS
from .race_figures import energy_over_time, growth_picture
from .race_runners import MAX_ITER, OUR_RUNNER, RUNNERS
from .race_tables import FAISS, PLUS_PLUS, Best, Result, by_cpu, every_row, goals, growth, init_seconds
from .render import Heading, Part, Picture, Table, Text, anchor, plain, put, to_markdown, write_page
from .runner import read_results

MARKERS = ("<!-- race -->", "<!-- /race -->")
HEADLINE = (1.01, 1.0)
UNSTEADY = 1e-4


def write(folder: Path, docs: Path, readme: Path) -> str:
    """Write the page, its figures, and the table of the README if that has a place for it. Says what was written."""
    cpus = by_cpu(read_results(folder).values())
    found = next(iter(cpus.values()), {})
    said = write_page(docs, "race", page(found, dict(list(cpus.items())[1:])))
    if readme.is_file() and (text := with_headline(before := readme.read_text(encoding="utf-8"), headline(found))):
        if text != before:
            put(readme, text)
        return f"{said}; the table of {readme}"
    return f"{said}; {readme} has no place for the table"


def page(found: dict[str, Result], others: dict[str, dict[str, Result]] | None = None) -> list[Part]:
    """`others`: what was raced on other CPUs."""
    parts: list[Part] = [Heading("The race: seconds to an energy", 1), *how(found)]
    parts += [Heading("Against the fastest peer"), *(level_table(found, level) for level in LEVELS)]
    parts += [Heading("Goals"), goal_table(found), Heading("Initialisation"), init_table(found)]
    parts += [Heading("Growth"), *growth_parts(found)]
    for cpu, there in (others or {}).items():
        if cpu:  # else nobody knows where it was
            parts += other_parts(cpu, there)
    parts += [Heading("Row by row")]
    for result in found.values():
        parts += row_parts(result)
    return [*parts, Heading("How this was made"), provenance(found)]


# ---- words and numbers -------------------------------------------------------------------------------------------


def seconds_text(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}" if seconds < 100 else f"{seconds:.0f}"


def level_name(level: float) -> str:
    return f"{level:.3f} R"


def how(found: dict[str, Result]) -> list[Part]:
    return [
        Text(
            f"""
Seconds until the centers are at a given energy, initialisation included; loading the data and converting it to float32
is not. R is the energy of Lloyd from k-means++ (100 iterations, mean of 3 seeds; from k = 4096 on 50 iterations, one
seed). Whether a level is reached is decided by an exact pass, each row with its nearest center, the same for everybody;
between the levels, curves are what the runner itself reports. All runners start from one seed.
The centers that ours starts from count too, from the moment they are there, as superkmeans' hierarchical ones do
without refinement; those of a random or k-means++ start are far above 1.02 R.

- A peer is run with all rows until it is at R, converges, has used its budget, or has done {MAX_ITER} iterations; and
  once at its shipped defaults, which may take a sample of the rows (a point).
- Same threads for all, one process a row, a full-size warm-up, then runners in turns, or in a few parts one after the
  other. A time is the best of its repetitions; while others use more than {FOREIGN:.0%} of the
  machine, a repetition is made again. Numbers of a row are of one session; a peer that was not raced again there counts
  as it was in its last one, which stands behind its name. All are of one CPU: the one that most rows were raced on;
  what was raced on another has a section of its own.
- A pass for the labels after the last centers is timed apart. What a call cannot leave out is in its time: that pass
  of scikit-learn-intelex, BisectingKMeans and of the points, `K2Means` included.
- ">": no peer gets there; the ratio is with the longest run of the one that came closest. "-": ours does not get there.
"""
        ),
        Heading("In short"),
        headline_table(found),
    ]


# ---- the tables --------------------------------------------------------------------------------------------------


def against(result: Result | None, level: float) -> list[str]:
    """Our seconds, the fastest peer, its seconds, the ratio."""
    if result is None or result.ours is None:
        return ["not run", "", "", ""]
    ours, rival, ratio = result.ours.hits.get(level), result.rival(level), result.ratio(level)
    mine = "-" if ours is None else seconds_text(ours)
    if rival is None:
        return [mine, "no peer", "", ""]
    mark = "" if rival.reached else "> "
    ratio_text = "-" if ratio is None else f"{mark}{ratio:.1f}"
    if ratio is not None and ratio < 1 and rival.reached:
        ratio_text = f"**{ratio:.2f}**"  # a lost row must be seen
    return [mine, rival.name, f"{mark}{seconds_text(rival.seconds)}", ratio_text]


def row_head(row: str, result: Result | None) -> list[str]:
    return [plain(row), f"{result.n}×{result.d}" if result is not None else ""]


def level_table(found: dict[str, Result], level: float) -> Table:
    rows = []
    for row in every_row(found):
        result = found.get(row)
        end = f"{result.ours.reached:.4f}" if result is not None and result.ours is not None else ""
        rows.append([*row_head(row, result), *against(result, level), end])
    header = ["row", "n×d", "ours: seconds", "fastest peer", "its seconds", "ratio", "ours ends at (by R)"]
    return Table(f"To {level_name(level)}", header, rows, ["Bold: a peer is faster."], left=2)


def headline_table(found: dict[str, Result], every: bool = True) -> Table:
    header = ["data", "n×d"]
    for level in HEADLINE:
        header += [f"to {level_name(level)}: ours (s)", "fastest peer", "its (s)", "ratio"]
    rows = []
    for row in every_row(found):
        result = found.get(row)
        if result is None and not every:
            continue
        rows.append([*row_head(row, result), *(cell for level in HEADLINE for cell in against(result, level))])
    return Table("Seconds to an energy, ours and the fastest peer of each row", header, rows, left=2)


def headline(found: dict[str, Result]) -> str:
    """The README's table, rows that we lose included."""
    return to_markdown([headline_table(found)]).strip()


def with_headline(text: str, table: str) -> str | None:
    """The text with the table between the markers; None if it has none."""
    begin, end = map(re.escape, MARKERS)
    pattern = rf"(?s){begin}.*?{end}"
    if not re.search(pattern, text):
        return None
    return re.sub(pattern, lambda _: f"{MARKERS[0]}\n{table}\n{MARKERS[1]}", text)


def other_parts(cpu: str, found: dict[str, Result]) -> list[Part]:
    """Rows raced on another CPU than the page's, lost ones and missed goals included."""
    tables = headline_table(found, every=False), goal_table(found, every=False)
    return [Heading(plain(f"On another CPU: {cpu}")), *tables]


def goal_table(found: dict[str, Result], every: bool = True) -> Table:
    rows = []
    for goal in goals(found):
        if not every:
            goal.values = [v for v in goal.values if v[1] != "not run"]
            if not goal.values:
                continue
        values = [f"{'**' if ok is False else ''}{f'{plain(row)}: ' if row else ''}{value}{'**' if ok is False else ''}"
                  for row, value, ok in goal.values]  # fmt: skip
        state = f"**{goal.state}**" if goal.state == "missed" else goal.state
        rows.append([goal.text, state, "; ".join(values)])
    notes = [
        "Bold: not enough.",
        "k2means max_time: ours under a `max_time` that is over at once; not its defaults, so it decides nothing.",
        "What is missed, and why: `docs/decisions/0013-start.md`.",
    ]
    return Table("Goals, and what was measured", ["goal", "", "by row"], rows, notes, left=3)


def init_table(found: dict[str, Result]) -> Table:
    rows = []
    for row, ours, theirs in init_seconds(found):
        ratio = f"{theirs / ours:.1f}" if ours and theirs else "-"
        if row not in found:
            continue
        gap = found[row].gaps.get(PLUS_PLUS, "")
        best = found[row].ours
        whole = None if best is None else best.init
        rows.append([plain(row), *map(seconds_text, (ours, whole, theirs)), ratio, plain(gap)])
    header = ["row", "GDI: seconds", "with early iterations", "faiss k-means++", "ratio to GDI", "why not"]
    notes = [
        "GDI: all up to the first iteration, sketches included, when no early iterations are asked for.",
        "Also where faiss's was not raced: `python benchmarks/seeding.py`, as printed `benchmarks/results/seeding.md`.",
        "Of faiss: its first iteration less its second, which is all but the initialisation; of its last session here.",
    ]
    return Table("Initialisation: ours and faiss's k-means++", header, rows, notes)


def growth_parts(found: dict[str, Result]) -> list[Part]:
    pairs = [[growth(found, axis, runner) for runner in (OUR_RUNNER, FAISS)] for axis in ("k", "n")]
    drawn = [pair for pair in pairs if any(line.points for line in pair)]
    if not drawn:
        return [Text("Not run.")]
    rows = []
    for pair in drawn:
        for line in pair:
            points = ", ".join(f"{x}: {seconds_text(s)}" for x, s in line.points)
            slope = "-" if line.slope is None else f"{line.slope:.2f}"
            rows.append([line.runner, line.axis, points or "not run", slope])
    caption = "Mean of the first 20 iterations, without the first. k: glove100; n: covtype, k = 1000."
    return [
        Table("Seconds per iteration", ["runner", "over", "seconds", "slope, log-log"], rows, [caption], left=3),
        Picture("race-growth", "How seconds per iteration grow.", caption, growth_picture(drawn)),
    ]


def row_parts(result: Result) -> list[Part]:
    header = ["runner", *(level_name(level) for level in LEVELS), "energy reached (by R)", "in seconds",
              "init (s)", "labels (s)", "memory beyond the data (MB)", "runs"]  # fmt: skip
    order = sorted(result.bests.values(), key=lambda b: (not b.ours, b.point, b.hits.get(1.01, 1e9), b.longest))
    rows = [[plain(b.shown), *runner_cells(b)] for b in order]
    rows += [[plain(name), *["gap"] * len(LEVELS), plain(why), *[""] * 5] for name, why in result.gaps.items()]
    notes = [f"{plain(b.name)}: `{b.config}`" for b in order]
    title = f"{result.row}, {result.n}×{result.d}, R = {result.R:.6g}, session {result.session}"
    name = f"race-{anchor(result.row)}"
    caption = "Curves: every iteration timed; points: runs of their own. Grey: the levels."
    return [
        Heading(plain(result.row), 3),
        Table(plain(title), header, rows, notes),
        Picture(name, plain(f"Energy over seconds, {result.row}."), caption, energy_over_time(result)),
    ]


def runner_cells(best: Best) -> list[str]:
    """Seconds by level; a runner that never gets there counts with its longest run."""
    never = f"> {seconds_text(best.longest)}"
    cells = [seconds_text(best.hits[level]) if level in best.hits else never for level in LEVELS]
    memory = "" if best.memory is None else f"{best.memory / 1e6:.0f}"
    times = [seconds_text(best.init) if best.init is not None else "", seconds_text(best.labels) if best.labels else ""]
    return [*cells, f"{best.reached:.4f}", seconds_text(best.longest), *times, memory, str(best.repetitions)]


def provenance(found: dict[str, Result]) -> Text:
    bests = [b for r in found.values() for b in r.bests.values()]
    versions = sorted({f"{name} {v}" for b in bests for name, v in b.versions.items()})
    disturbed = [f"{r.row}: {b.name}" for r in found.values() for b in r.bests.values() if b.foreign > FOREIGN]
    unsteady = [f"{r.row}: {b.name} ({b.deviation:.1e})" for r in found.values() for b in r.bests.values()
                if b.deviation > UNSTEADY]  # fmt: skip
    absent = [name for name in RUNNERS if name not in {b.name for b in bests}]
    gaps = Counter(name for r in found.values() for name in r.gaps)
    left_out = ", ".join(f"{plain(name)} {gaps[name]}" for name in sorted(gaps))
    return Text(
        f"""
- Machine: {"; ".join(sorted({plain(b.cpu) for b in bests if b.cpu})) or "not told"}.
- Versions: {", ".join(map(plain, versions)) or "none"}.
- Left out, on how many rows (why, their tables tell): {left_out or "nobody"}.
- Runners of which no row has a run: {", ".join(map(plain, absent)) or "none"}.
- Times of which every repetition was disturbed by others: {"; ".join(map(plain, disturbed)) or "none"}.
- Energies that differ between runs of one seed, by more than {UNSTEADY:g}: {"; ".join(map(plain, unsteady)) or "none"}.
- Not run yet: {", ".join(plain(row) for row in ROWS if row not in found) or "nothing"}.
- To do it again: `make race`, which is `python -m experiments race`; `python -m experiments race-report` writes this
  page from `experiments/results/*/race.jsonl`. Your own vectors: `python -m experiments race --data FILE --k K`.
"""
    )
