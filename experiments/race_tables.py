"""The numbers of the race's report, from the lines of race.jsonl. Pure data; a ratio leaves its session only for a peer
that was not raced again there: it counts as it was in its last one, and its name says so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from .race_data import OVER_K, OVER_N, ROWS
from .race_runners import GDI_ALONE, HURRIED, OUR_RUNNER
from .runner import Line

Point = tuple[int, float, float]  # iteration, seconds, energy by R
PLUS_PLUS, HIERARCHICAL, FAISS = "faiss k-means++", "superkmeans hierarchical", "faiss"


@dataclass
class Best:
    """A runner on a row: the best of its repetitions, which all do the same."""

    name: str
    ours: bool
    point: bool  # a single run at its shipped defaults, or of a kind that cannot go on
    config: str
    reached: float
    hits: dict[float, float] = field(default_factory=dict)  # seconds by level
    curve: dict[int, tuple[float, float]] = field(default_factory=dict)  # iteration: seconds, energy
    longest: float = math.inf
    init: float | None = None
    labels: float | None = None
    repetitions: int = 0
    foreign: float = 0.0  # of the least disturbed
    deviation: float = 0.0  # between runs that should be the same
    memory: int | None = None  # bytes beyond what was there before
    versions: dict[str, str] = field(default_factory=dict)
    cpu: str = ""
    session: str = ""  # if it is not that of the others

    def add(self, line: Line) -> None:
        self.foreign = line.get("foreign", 0.0) if not self.repetitions else min(self.foreign, line.get("foreign", 0.0))
        self.repetitions += 1
        self.deviation = max(self.deviation, line.get("deviation", 0.0))
        self.longest = min(self.longest, line["longest"])
        self.init, self.labels = (least(a, line.get(b)) for a, b in ((self.init, "init"), (self.labels, "labels")))
        for level, seconds in line["hits"].items():
            self.hits[float(level)] = min(self.hits.get(float(level), math.inf), seconds)
        for t, seconds, energy in line["curve"]:
            self.curve[t] = (min(self.curve.get(t, (math.inf,))[0], seconds), energy)

    @property
    def shown(self) -> str:
        return f"{self.name} ({self.session})" if self.session else self.name

    @property
    def points(self) -> list[Point]:
        return [(t, *self.curve[t]) for t in sorted(self.curve)]

    def energy_at(self, seconds: float) -> float | None:
        """Of the last iteration finished by then; None: there was none yet."""
        return min((e for _, s, e in self.points if s <= seconds), default=None)

    def per_iteration(self, first: int = 20) -> float | None:
        """Mean seconds of the first iterations, the very first and the initialisation left out."""
        timed = [(t, s) for t, s, _ in self.points if 1 <= t <= first]
        if len(timed) < 2:
            return None
        (a, begin), (b, end) = timed[0], timed[-1]
        return (end - begin) / (b - a)


def least(a: float | None, b: float | None) -> float | None:
    return min((x for x in (a, b) if x is not None), default=None)


@dataclass(frozen=True)
class Rival:
    """The peer that ours is measured against. Not `reached`: nobody got there; it counts with its longest run."""

    name: str
    seconds: float
    reached: bool


@dataclass
class Result:
    """A row of the race, as one session has it."""

    row: str
    session: str
    n: int
    d: int
    k: int
    R: float
    bests: dict[str, Best]
    gaps: dict[str, str]

    @property
    def ours(self) -> Best | None:
        return self.bests.get(OUR_RUNNER)

    def rival(self, level: float) -> Rival | None:
        """The fastest peer; if none reaches the level, the one that came closest, of those that can go on."""
        peers = [b for b in self.bests.values() if not b.ours]
        hits = [Rival(b.shown, b.hits[level], True) for b in peers if level in b.hits]
        if hits:
            return min(hits, key=lambda r: r.seconds)
        others = [b for b in peers if not b.point] or peers
        closest = min(others, key=lambda b: b.reached, default=None)
        return None if closest is None else Rival(closest.shown, closest.longest, False)

    def ratio(self, level: float) -> float | None:
        """The rival's seconds by ours; None if ours does not get there, or there is nobody to compare with."""
        rival = self.rival(level)
        if self.ours is None or level not in self.ours.hits or rival is None:
            return None
        return rival.seconds / self.ours.hits[level]


def results(lines: Iterable[Line]) -> dict[str, Result]:
    """By row: of the last session that has ours and a peer, or else of the last one. Peers that it does not have are of
    the last one before that has them."""
    lines = list(lines)
    sessions: dict[str, dict[str, list[Line]]] = {}
    for line in lines:
        if "curve" in line:
            sessions.setdefault(line["row"], {}).setdefault(line["session"], []).append(line)
    out = {}
    for row in sorted(sessions, key=row_order):
        by_age = sorted(sessions[row].items(), key=lambda s: max(line["at"] for line in s[1]))
        complete = [s for s in by_age if len({line["ours"] for line in s[1]}) == 2]
        session, found = (complete or by_age)[-1]
        out[row] = result(row, session, found, lines)
        for earlier, others in reversed(by_age[: by_age.index((session, found))]):
            have = out[row].bests
            missing = [line for line in others if not line["ours"] and line["runner"] not in have]
            if not missing:
                continue
            for name, best in result(row, earlier, missing, lines).bests.items():
                have[name], best.session = best, earlier
                out[row].gaps.pop(name, None)
    return out


def by_cpu(lines: Iterable[Line]) -> dict[str, dict[str, Result]]:
    """The results on each CPU, "" where it was not told: first of the named one with most rows."""
    lines = list(lines)
    latest: dict[str, float] = {}
    for line in lines:
        if "curve" in line:
            cpu = line.get("cpu", "")
            latest[cpu] = max(latest.get(cpu, 0), line["at"])
    found = {
        cpu: results(line for line in lines if "curve" not in line or line.get("cpu", "") == cpu) for cpu in latest
    }
    order = sorted(found, key=lambda cpu: (cpu != "", len(found[cpu].keys() & ROWS.keys()), latest[cpu]), reverse=True)
    return {cpu: found[cpu] for cpu in order}


def row_order(row: str) -> tuple[int, str]:
    known = [*ROWS, *OVER_N]
    return (known.index(row) if row in known else len(known), row)


def result(row: str, session: str, found: list[Line], lines: list[Line]) -> Result:
    bests: dict[str, Best] = {}
    for line in found:
        name = line["runner"]
        if name not in bests:
            bests[name] = Best(name, line["ours"], line["point"], line["config"], line["reached"])
            bests[name].versions, bests[name].cpu = line["versions"], line.get("cpu", "")
        bests[name].add(line)
    gaps = {}
    for line in lines:
        if line.get("row") != row:
            continue
        if "gap" in line and line["session"] == session and line["runner"] not in bests:
            gaps[line["runner"]] = line["gap"]
        elif "peak" in line and line["runner"] in bests:  # memory does not depend on the load: of any session
            bests[line["runner"]].memory = line["peak"] - line["before"]
    first = found[0]
    return Result(row, session, first["n"], first["d"], first["k"], first["R"], bests, gaps)


# ---- growth ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Growth:
    """Seconds per iteration over n or k, and the slope on log-log."""

    runner: str
    axis: str
    points: list[tuple[int, float]]

    @property
    def slope(self) -> float | None:
        if len({x for x, _ in self.points}) < 2:
            return None
        x, y = (np.log([p[i] for p in self.points]) for i in (0, 1))
        return float(np.polyfit(x, y, 1)[0])


def growth(found: dict[str, Result], axis: str, runner: str) -> Growth:
    points = []
    for row in OVER_K if axis == "k" else OVER_N:
        best = found[row].bests.get(runner) if row in found else None
        seconds = best.per_iteration() if best is not None else None
        if seconds:
            points.append((found[row].k if axis == "k" else found[row].n, seconds))
    return Growth(runner, axis, points)


# ---- the goals of the race ---------------------------------------------------------------------------------------


@dataclass
class Goal:
    """`values`: row, what was measured, is it enough (None: not measured, or a bound below the goal)."""

    text: str
    values: list[tuple[str, str, bool | None]] = field(default_factory=list)

    @property
    def state(self) -> str:
        states = [ok for _, _, ok in self.values]
        if False in states:
            return "missed"
        if True not in states:
            return "not run"
        return "not decided on every row" if None in states else "reached"


def every_row(found: dict[str, Result]) -> list[str]:
    """Every row of the plan, run or not, and a user's own; those of the scaling are for their own table."""
    return [*ROWS, *(row for row in found if row not in ROWS and row not in OVER_N)]


def ratio_goal(found: dict[str, Result], text: str, level: float, wanted: dict[str, float]) -> Goal:
    goal = Goal(text)
    for row, least_ratio in wanted.items():
        r = found.get(row)
        ratio, rival = (r.ratio(level), r.rival(level)) if r is not None else (None, None)
        if r is None or r.ours is None or rival is None:
            goal.values.append((row, "not run", None))
        elif ratio is None:
            goal.values.append((row, f"ours ends at {r.ours.reached:.4f} R", False))
        else:  # of a peer that never gets there, the ratio is a lower bound
            ok = True if ratio >= least_ratio else (False if rival.reached else None)
            goal.values.append((row, f"{'' if rival.reached else '> '}{ratio:.1f} of {least_ratio:g}", ok))
    return goal


def goals(found: dict[str, Result]) -> list[Goal]:
    """Those of the issue, each with what was measured."""
    two_hundred = {row: 3.0 for row, r in ROWS.items() if r.k == 200} | {"cnncaltech* k=200": 2.0, "yale k=200": 2.0}
    thousand = {"mnist k=1000": 4.0, "cifar k=1000": 4.0, "covtype k=1000": 6.0, "covtype581k k=1000": 6.0}
    largest = {"covtype581k k=10000": 8.0, "mixture1m k=10000": 8.0}
    words = {"glove100 k=4096": 6.0, "glove100 k=16384": 4.0}
    ends = {row: 5.0 if r.k == 200 else 15.0 if r.k >= 10000 else 8.0 for row, r in ROWS.items()}
    return [
        ratio_goal(found, "1.01 R, k = 200: fastest peer by ours at least 3 (cnncaltech, yale: 2)", 1.01, two_hundred),
        ratio_goal(found, "1.01 R, k = 1000: at least 4 on mnist and cifar, 6 on covtype", 1.01, thousand),
        ratio_goal(found, "1.01 R, k = 10000: at least 8", 1.01, largest),
        ratio_goal(found, "1.01 R, word vectors: at least 6 (k = 4096), 4 (k = 16384)", 1.01, words),
        ratio_goal(
            found,
            "1.000 R: at least 5 (k = 200), 8 (k = 1000 and 2000), 10 (k = 4096), 15 (k ≥ 10000)",
            1.0,
            ends | {"glove100 k=4096": 10.0},
        ),
        init_goal(found),
        pass_goal(found),
        *growth_goals(found),
        memory_goal(found),
        end_goal(found),
        hierarchical_goal(found),
    ]


def init_goal(found: dict[str, Result]) -> Goal:
    goal = Goal("GDI takes at most 1/5 of the seconds of faiss's k-means++, on every row")
    for row, ours, theirs in init_seconds(found):
        if ours is None or theirs is None:
            goal.values.append((row, "not run", None))
        else:
            goal.values.append((row, f"{ours / theirs:.3f}", ours <= theirs / 5))
    return goal


def init_seconds(found: dict[str, Result]) -> list[tuple[str, float | None, float | None]]:
    """Of GDI, sketches included, and of faiss's k-means++."""
    out = []
    for row in every_row(found):
        bests = found[row].bests if row in found else {}
        ours, theirs = (bests[name].init if name in bests else None for name in (GDI_ALONE, PLUS_PLUS))
        out.append((row, ours, theirs or None))
    return out


def pass_goal(found: dict[str, Result]) -> Goal:
    goal, row = Goal("GDI takes at most 0.3 of one exhaustive pass on mnist, k = 1000"), "mnist k=1000"
    bests = found[row].bests if row in found else {}
    ours, faiss = bests.get(GDI_ALONE), bests.get(FAISS)
    exhaustive = faiss.labels if faiss is not None else None  # faiss's, which surely looks at every center
    if ours is None or ours.init is None or not exhaustive:
        return Goal(goal.text, [(row, "not run", None)])
    share = ours.init / exhaustive
    return Goal(goal.text, [(row, f"{share:.2f}", share <= 0.3)])


def growth_goals(found: dict[str, Result]) -> list[Goal]:
    out = []
    for axis, text, most in (
        ("k", "Seconds per iteration grow with k by a slope of at most 0.3 (glove100, k = 1000 to 16384)", 0.3),
        ("n", "Seconds per iteration grow linearly with n (slope at most 1.1, covtype)", 1.1),
    ):
        slope = growth(found, axis, OUR_RUNNER).slope
        shown = ("", "not run", None) if slope is None else ("", f"{slope:.2f}", slope <= most)
        out.append(Goal(text, [shown]))
    return out


def memory_goal(found: dict[str, Result]) -> Goal:
    goal = Goal("Peak memory beyond the data: at most 200 bytes a row + 64 bytes · k·(d + 64)")
    for row in every_row(found):
        r = found.get(row)
        if r is None or r.ours is None or r.ours.memory is None:
            goal.values.append((row, "not run", None))
        else:
            allowed = 200 * r.n + 64 * r.k * (r.d + 64)
            goal.values.append((row, f"{r.ours.memory / allowed:.2f} of it", r.ours.memory <= allowed))
    return goal


def beside_hierarchical(found: dict[str, Result]) -> Iterator[tuple[str, Best | None, Best | None, Best | None]]:
    """The rows with k ≥ 1000: superkmeans hierarchical, ours, and ours in a hurry; those that were run."""
    for row in every_row(found):
        r = found.get(row)
        if (ROWS[row].k if r is None else r.k) >= 1000:
            bests = {} if r is None else r.bests
            yield row, bests.get(HIERARCHICAL), bests.get(OUR_RUNNER), bests.get(HURRIED)


def end_goal(found: dict[str, Result]) -> Goal:
    """A peer is not run on once it is at R: what it would have later is not known."""
    goal = Goal("k ≥ 1000: at the moment ours has used its seconds, superkmeans hierarchical has the higher energy")
    for row, theirs, ours, _ in beside_hierarchical(found):
        if theirs is None or ours is None:
            goal.values.append((row, "not run", None))
            continue
        mine, other = (b.energy_at(ours.longest) or math.inf for b in (ours, theirs))
        told = f"{mine:.4f} R, " + (f"{other:.4f} R" if other < math.inf else "nothing yet")
        if theirs.hits.get(1.0, math.inf) < ours.longest:
            goal.values.append((row, f"{told} and not run on", None))
        else:
            goal.values.append((row, told, mine < other))
    return goal


def hierarchical_goal(found: dict[str, Result]) -> Goal:
    """The same at every moment that it has a result, by defaults; beside it, if ours may also be told to stop at once
    by `max_time`."""
    goal = Goal("k ≥ 1000: after the seconds that superkmeans hierarchical takes, ours has the lower energy")
    for row, theirs, ours, hurried in beside_hierarchical(found):
        if theirs is None or ours is None:
            goal.values.append((row, "not run", None))
            continue
        won, all_points = points_won([ours], theirs), len(theirs.points)
        told = f"{won} of {all_points} points"
        if won < all_points and hurried is not None:
            told += f" ({points_won([ours, hurried], theirs)} with {HURRIED})"
        goal.values.append((row, told, won == all_points))
    return goal


def points_won(mine: list[Best], theirs: Best) -> int:
    """Points of theirs, at whose seconds one of mine has the lower energy."""
    return sum(any((own := b.energy_at(s)) is not None and own < e for b in mine) for _, s, e in theirs.points)
