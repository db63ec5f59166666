"""The race: seconds until the centers are at a given energy, for ours and every peer, one JSON line a repetition.

A row is run by one process. Each runner first explores: untimed, it finds how many iterations reach which level, by the
same exact energy for everybody; that is the full-size warm-up too. Then the runners take turns, and the clock runs.
Every repetition of a runner is the same computation, so the best of several is its time.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import k2means
from k2means import PlusPlus, Sketched, Stop, cluster

from .race_data import Row
from .race_runners import MAX_ITER, OUR_RUNNER, RUNNERS, Centers, Gap, Problem, Run, Runner, fitted, peer
from .runner import Line, append, machine, read_results

PLAN = "race"
LEVELS = (1.02, 1.01, 1.005, 1.0)  # of R
MARGIN = 1e-3  # a peer's report is often a float32 sum: it stops on the way only when it is surely past R
LARGE_K = 4096  # from here on R is one seed and fewer iterations
FOREIGN = 0.1  # of the machine: more than that by others, and a repetition is made again
PATIENCE = 3
PAUSE = 0.1  # seconds before a timed run: threads of the runner before may wait awake for work, on our cores
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """One session. Ratios are only formed within it."""

    results: Path
    session: str
    runners: tuple[str, ...] = tuple(RUNNERS)
    repeat: int = 3
    threads: int = 2
    budget: float = 600.0
    seed: int = 0
    memory: bool = False
    patience: int = PATIENCE
    tell: Tell = print

    def key(self, kind: str, row: str, runner: str) -> str:
        return f"{kind}/{self.session}/{row}/{runner}"


# ---- energy and the reference ------------------------------------------------------------------------------------


def energy_of(p: Problem, centers: Centers) -> float:
    """Each row with its nearest center, exactly: one pass, the same for everybody."""
    return -fitted(p, centers).score(p.x)


def recipe(k: int) -> tuple[int, int]:
    """Seeds and iterations of R."""
    return (1, 50) if k >= LARGE_K else (3, 100)


def reference(row: Row, x: NDArray[np.float32], settings: Settings, done: dict[str, Line]) -> float:
    """R: the energy of Lloyd from k-means++. Computed once, whatever the session."""
    seeds, iterations = recipe(row.k)
    energies = []
    for seed in range(seeds):
        key = f"reference/{row.name}/seed={seed}"
        if key not in done:
            settings.tell(f"{row.name}: {key}")
            # Lloyd's steps, bit for bit (tests/test_exactness.py), for a fraction of its time
            lloyd, init, stop = Sketched(row.k, turns=1, hartigan=False), PlusPlus(), Stop(max_iter=iterations)
            began = time.perf_counter()
            r = cluster(x, row.k, method=lloyd, init=init, stop=stop, seed=seed, n_threads=settings.threads)
            line = {
                "key": key,
                "row": row.name,
                "recipe": f"Lloyd from {init}, {iterations} iterations, tol 0, exact energy of the centers",
                "energy": energy_of(Problem(x, row.k, seed, settings.threads, 0.0), r.centers),
                "n_iter": r.n_iter,
                "n": len(x),
                "d": x.shape[1],
                "k": row.k,
                "race_seconds": round(time.perf_counter() - began, 3),
                "versions": versions(RUNNERS[OUR_RUNNER]),
                "machine": machine(),
            }
            append(settings.results, PLAN, line)
            done[key] = line
        energies.append(float(done[key]["energy"]))
    return mean(energies)


# ---- exploring: which iterations matter ----------------------------------------------------------------------------


@dataclass
class Explored:
    """Energies by R: `exact` of the iterations measured, `reported` of the others; when a level is reached first."""

    last: int
    exact: dict[int, float] = field(default_factory=dict)
    reported: dict[int, float] = field(default_factory=dict)
    hits: dict[float, int] = field(default_factory=dict)

    def ratio(self, t: int) -> float | None:
        return self.exact.get(t, self.reported.get(t))

    def cut(self, last: int) -> None:
        """Nothing more to win after this iteration."""
        self.last = last
        self.exact, self.reported = ({t: e for t, e in x.items() if t <= last} for x in (self.exact, self.reported))

    @property
    def wanted(self) -> list[int]:
        """The iterations to time where each needs its own run."""
        return sorted({*self.hits.values(), self.last, *(t for t in self.exact if t == min(self.exact))})

    def as_dict(self) -> Line:
        return {
            "last": self.last,
            "exact": [[t, e] for t, e in sorted(self.exact.items())],
            "reported": [[t, e] for t, e in sorted(self.reported.items())],
            "hits": [[level, t] for level, t in self.hits.items()],
        }

    @classmethod
    def restored(cls, told: Line) -> Explored:
        pairs = (dict(told[name]) for name in ("exact", "reported", "hits"))
        return cls(told["last"], *pairs)


class Explorer:
    """One runner on one row, untimed. Centers are kept, so that energies further on need no run from the start."""

    def __init__(self, runner: Runner, p: Problem, R: float) -> None:
        self.runner, self.p, self.R = runner, p, R
        self.kept: dict[int, Centers] = {}
        self.found = Explored(0)

    def explore(self) -> Explored:
        if self.runner.counts is not None:
            self.every_count(self.runner.counts)
        elif self.runner.stops:
            self.look(MAX_ITER)
        else:
            run = self.look(2)
            if self.runner.more(self.p, self.centers(self.found.last), 1) is not None:
                self.chain(run)
            else:
                self.grow(run)
        self.energy(self.found.last)
        self.found.hits = {level: t for level in LEVELS if (t := self.crossing(level)) is not None}
        if not self.runner.ours and LEVELS[-1] in self.found.hits:
            self.found.cut(self.found.hits[LEVELS[-1]])
        return self.found

    def look(self, t: int) -> Run:
        """A run of t iterations, or fewer if it may stop itself: at R (ours goes on, it is cheap) or at the budget."""

        def enough(seconds: float, energy: float) -> bool:
            return seconds > self.p.budget or (not self.runner.ours and energy <= self.R * (1 - MARGIN))

        run = self.runner.fit(self.p, t, enough)
        self.found.last = run.iterations
        self.note(run)
        if run.centers is not None:
            self.kept[run.iterations] = run.centers
        if run.start is not None:
            self.kept[0] = run.start[1]
            self.energy(0)
        return run

    def note(self, run: Run, start: int = 0) -> None:
        """What a run from iteration `start` on reports. The start itself is no iteration."""
        self.found.reported |= {start + i: e / self.R for i, e in run.reported.items() if start + i > 0}

    def every_count(self, counts: tuple[int, ...]) -> None:
        """Runs of their own; the next only if the budget allows twice the last. Where a level is reached between counts
        far apart, those between are tried too, by halves."""
        for t in counts:
            run = self.runner.fit(self.p, t)
            if run.centers is None:
                raise Gap("gave no centers")
            self.found.last, self.kept[t] = t, run.centers
            if self.energy(t) <= 1.0 or 2 * run.seconds > self.p.budget:
                break
        for level in LEVELS:
            while (hit := self.crossing(level)) is not None:
                before = max((t for t in self.found.exact if t < hit), default=hit)
                if hit - before < 2:
                    break
                self.energy((before + hit) // 2)

    def grow(self, run: Run) -> None:
        """No warm start: from the beginning with twice as many iterations each time, as far as the budget reaches."""
        t = before = 0
        spent = 0.0
        while run.iterations > before and run.iterations < MAX_ITER and self.energy(run.iterations) > 1.0:
            per = max((run.seconds - spent) / (run.iterations - before), 1e-9)
            t = min(2 * run.iterations, MAX_ITER, int(run.iterations + (self.p.budget - run.seconds) / per))
            if t <= run.iterations:
                break
            before, spent = run.iterations, run.seconds
            run = self.look(t)

    def chain(self, run: Run) -> None:
        """Warm starts, a few iterations each; fewer where the runner tells nothing on the way."""
        t, spent = run.iterations, run.seconds
        while t < MAX_ITER and spent < self.p.budget and not self.is_there(t):
            step = min(5 if run.reported else max(1, t // 20), MAX_ITER - t)
            link = self.runner.more(self.p, self.kept[t], step)
            if link is None or link.centers is None or np.array_equal(link.centers, self.kept[t]):
                break
            self.note(link, t)
            t, spent = t + link.iterations, spent + link.seconds
            self.kept[t] = link.centers
        self.found.last = t

    def is_there(self, t: int) -> bool:
        """Is R reached? Reports only save the measuring while they are above it; the exact energy decides."""
        if self.found.reported and min(self.found.reported.values()) > 1.0 + MARGIN:
            return False
        return self.energy(t) <= 1.0

    def energy(self, t: int) -> float:
        """Of the centers after t iterations, by R."""
        if t not in self.found.exact:
            self.found.exact[t] = energy_of(self.p, self.centers(t)) / self.R
        return self.found.exact[t]

    def centers(self, t: int) -> Centers:
        if t not in self.kept:
            made = None
            if earlier := [i for i in self.kept if i < t]:
                link = self.runner.more(self.p, self.kept[max(earlier)], t - max(earlier))
                made = None if link is None else link.centers
            self.kept[t] = made if made is not None else self._from_start(t)
        return self.kept[t]

    def _from_start(self, t: int) -> Centers:
        run = self.runner.fit(self.p, t)
        if run.centers is None:
            raise Gap(f"gave no centers after {t} iterations")
        return run.centers

    def crossing(self, level: float) -> int | None:
        """The first iteration whose centers are at the level, by their exact energy."""
        found = self.found
        first = 0 if 0 in found.exact else 1
        order = sorted(found.exact) if self.runner.counts is not None else list(range(first, found.last + 1))
        at = next((i for i, t in enumerate(order) if (found.ratio(t) or np.inf) <= level), len(order) - 1)
        while self.energy(order[at]) > level:  # a report may have promised too much
            at += 1
            if at == len(order):
                return None
        while at > 0 and self.energy(order[at - 1]) <= level:  # or too little: a late hit would be unfair
            at -= 1
        return order[at]


# ---- one repetition ----------------------------------------------------------------------------------------------


@dataclass
class Load:
    """What others did to the machine while we measured."""

    average: float = 0.0
    began: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def start(self) -> None:
        with suppress(OSError):
            self.average = os.getloadavg()[0]
        self.began = (time.perf_counter(), busy_seconds(), time.process_time())

    def foreign(self) -> float:
        """Share of the machine that others used since `start`; 0 where that cannot be told."""
        wall, busy, own = (
            now - then
            for now, then in zip((time.perf_counter(), busy_seconds(), time.process_time()), self.began, strict=True)
        )
        return max(0.0, busy - own) / max(wall * (os.cpu_count() or 1), 1e-9)


def busy_seconds() -> float:
    """Of all cores since boot, time stolen by other virtual machines included."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, soft, steal = map(float, fields)
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


@dataclass
class Timed:
    seconds: dict[int, float]  # by iteration
    init: float | None
    labels: float | None
    deviation: float  # of the energies reported now from those when it was explored


def check_same(runner: Runner, run: Run, found: Explored, R: float) -> float:
    """Seconds and energies come from different runs of one computation: how much do the energies differ?"""
    both = [(e / R, found.reported[t]) for t, e in run.reported.items() if t in found.reported]
    worst = max((abs(a / b - 1) for a, b in both), default=0.0)
    if runner.ours and worst > 1e-9:
        raise RuntimeError(f"{runner.name} does not do what it did when it was explored: take another --session")
    return worst


def repetition(runner: Runner, p: Problem, found: Explored, R: float) -> Timed:
    """The seconds at each iteration. Without stamps, each wanted iteration count is a run of its own."""
    gc.collect()
    time.sleep(PAUSE)
    run = runner.fit(p, found.last)
    deviation = check_same(runner, run, found, R)
    if run.stamps is not None:
        seconds = ({} if run.start is None else {0: run.start[0]}) | dict(enumerate(run.stamps, start=1))
    else:
        wanted = sorted(found.exact) if runner.counts else found.wanted
        seconds = {t: runner.fit(p, t).seconds for t in wanted if t != found.last} | {found.last: run.seconds}
    labels = run.labels
    if labels is None and run.centers is not None:
        began = time.perf_counter()
        with suppress(Gap):
            runner.label(p, run.centers)
            labels = time.perf_counter() - began
    return Timed(seconds, run.init, labels, deviation)


def as_line(key: str, row: Row, runner: Runner, p: Problem, found: Explored, timed: Timed, load: Load) -> Line:
    curve = [(t, s, found.ratio(t)) for t, s in sorted(timed.seconds.items())]
    return {
        "key": key,
        "row": row.name,
        "runner": runner.name,
        "ours": runner.ours,
        "point": runner.counts is not None and len(runner.counts) == 1,
        "config": runner.config(p),
        "curve": [[t, round(s, 5), round(e, 7)] for t, s, e in curve if e is not None],
        "hits": {f"{level:g}": round(timed.seconds[t], 5) for level, t in found.hits.items() if t in timed.seconds},
        "longest": round(max(timed.seconds.values()), 5),
        "reached": min(found.exact.values()),
        "init": rounded(timed.init),
        "labels": rounded(timed.labels),
        "deviation": timed.deviation,
        "n": len(p.x),
        "d": p.x.shape[1],
        "k": p.k,
        "seed": p.seed,
        "threads": p.threads,
        "budget": p.budget,
        "load": round(load.average, 2),
        "versions": versions(runner),
        "machine": machine(),
        "cpu": cpu(),
        "at": round(time.time()),
    }


def rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 5)


def cpu() -> str:
    """Its name, how many cores there are, its widest vectors; where /proc does not tell, what Python knows."""
    with suppress(OSError, IndexError):
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
        name, family, model = (text.split(key, 1)[1].split(":", 1)[1].split("\n", 1)[0].strip()
                               for key in ("model name\t", "cpu family\t", "model\t\t"))  # fmt: skip
        vectors = next((v for flag, v in ((" avx512f", "AVX-512"), (" avx2", "AVX2")) if flag in text), "no AVX2")
        return f"{name} (family {family}, model {model}), {os.cpu_count()} cores, {vectors}"
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def versions(runner: Runner) -> dict[str, str]:
    found = {"python": platform.python_version(), "numpy": np.__version__, "k2means": k2means.__version__}
    with suppress(PackageNotFoundError):
        found.setdefault(runner.package, version(runner.package))
    return found


# ---- a row -------------------------------------------------------------------------------------------------------


def race_row(row: Row, settings: Settings, runners: dict[str, Runner] | None = None) -> int:
    """All that is missing of a row in this session. Returns the number of repetitions made."""
    made = 0
    contestants = RUNNERS if runners is None else runners
    done = read_results(settings.results)
    turns = [(i, name) for i in range(settings.repeat) for name in settings.runners]
    todo = [(i, name) for i, name in turns if rep_key(settings, row, name, i) not in done]
    if not todo:
        return 0
    x = row.load()
    p = Problem.of(x, row.k, settings.seed, settings.threads, settings.budget)
    for name in settings.runners:
        with suppress(ImportError):  # now, for only the pools of loaded libraries can be limited
            peer(contestants[name].module)
    with threadpool_limits(settings.threads):
        R = reference(row, x, settings, done)
        ready = {}
        for name in dict.fromkeys(name for _, name in todo):
            if (found := prepared(row, contestants[name], p, R, settings, done)) is not None:
                ready[name] = found
        for i, name in todo:
            if name in ready:
                line = quiet_line(rep_key(settings, row, name, i), row, contestants[name], p, ready[name], R, settings)
                append(settings.results, PLAN, line | {"session": settings.session, "rep": i, "R": R})
                made += 1
    return made


def rep_key(settings: Settings, row: Row, runner: str, i: int) -> str:
    return f"{settings.key('race', row.name, runner)}/seed={settings.seed}/rep={i}"


def prepared(row: Row, runner: Runner, p: Problem, R: float, s: Settings, done: dict[str, Line]) -> Explored | None:
    """Explored before, or now; None, with a line that says why, if the runner cannot take part."""
    key = s.key("explored", row.name, runner.name)
    same: Line = {"row": row.name, "runner": runner.name, "config": runner.config(p), "versions": versions(runner)}
    same |= {"seed": p.seed, "threads": p.threads, "budget": p.budget, "R": R, "machine": machine()}
    try:
        runner.require(p)
        if (told := explored_before(key, same, runner.ours, done)) is not None:
            found = Explored.restored(told)
            runner.fit(p, min(found.last, 2) if runner.counts is None else found.last)  # a process warms up once
            return found
        s.tell(f"{row.name}: exploring {runner.name}")
        found = Explorer(runner, p, R).explore()
    except Exception as error:
        if runner.ours:
            raise
        why = str(error) if isinstance(error, Gap) else f"{type(error).__name__}: {error}".split("\n")[0][:300]
        append(s.results, PLAN, {"key": f"{key}/gap", "session": s.session, "gap": why, **same})
        s.tell(f"{row.name}: {runner.name} left out: {why}")
        return None
    append(s.results, PLAN, {"key": key, "session": s.session, **same, "explored": found.as_dict()})
    return found


def explored_before(key: str, same: Line, ours: bool, done: dict[str, Line]) -> Line | None:
    """Of this session; of a peer also of another one, if all that decides its iterations is the same."""
    for line in [done[key]] if key in done else [] if ours else done.values():
        if "explored" in line and all(line.get(name) == value for name, value in same.items()):
            told: Line = line["explored"]
            return told
    return None


def quiet_line(key: str, row: Row, runner: Runner, p: Problem, found: Explored, R: float, settings: Settings) -> Line:
    """A repetition, made again while others keep the machine busy, a few times at most; the quietest is kept."""
    tries: list[tuple[float, Line]] = []
    while not tries or (tries[-1][0] > FOREIGN and len(tries) <= settings.patience):
        load = Load()
        load.start()
        timed = repetition(runner, p, found, R)
        foreign = load.foreign()
        line = as_line(key, row, runner, p, found, timed, load)
        line |= {"foreign": round(foreign, 3), "tries": len(tries) + 1}
        tries.append((foreign, line))
        settings.tell(f"{key}: {line['longest']:.3f} s, {line['reached']:.4f} R, others {foreign:.0%}")
    return min(tries, key=lambda t: t[0])[1]


# ---- memory ------------------------------------------------------------------------------------------------------


def resident(what: str) -> int:
    """VmRSS or VmHWM in bytes; elsewhere than on Linux the peak of the process is all there is."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(text.split(f"{what}:", 1)[1].split()[0])
    except (OSError, IndexError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure_memory(row: Row, settings: Settings, name: str) -> None:
    """In a process of its own: the peak while a runner does two iterations, and what was there before."""
    runner, x = RUNNERS[name], row.load()
    p = Problem.of(x, row.k, settings.seed, settings.threads, settings.budget)
    try:
        runner.require(p)
    except Gap:
        return
    with threadpool_limits(settings.threads):
        tiny = Problem.of(np.ascontiguousarray(x[:200]), 4, 0, settings.threads, settings.budget)
        with suppress(Exception):
            runner.fit(tiny, 2)  # imports, code and pools are not what is asked for
        gc.collect()
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak of loading
        before = resident("VmRSS")
        runner.fit(p, 2)
    line = {
        "key": settings.key("memory", row.name, name),
        "session": settings.session,
        "row": row.name,
        "runner": name,
        "before": before,
        "peak": resident("VmHWM"),
        "n": len(x),
        "d": x.shape[1],
        "k": row.k,
        "versions": versions(runner),
        "machine": machine(),
    }
    append(settings.results, PLAN, line)


# ---- a session ---------------------------------------------------------------------------------------------------


def race(rows: list[Row], settings: Settings) -> int:
    """Each row in a process of its own. Returns how many of them failed; killed, the same session goes on."""
    failed = 0
    for row in rows:
        failed += not alone(race_row, row, settings)
        if settings.memory:
            done = read_results(settings.results)
            for name in settings.runners:
                counts = RUNNERS[name].counts
                if (counts is None or len(counts) > 1) and settings.key("memory", row.name, name) not in done:
                    alone(measure_memory, row, settings, name)
    return failed


def alone(work: Callable[..., Any], *arguments: Any) -> bool:
    """In a fresh process: a crash in a peer's code ends only that."""
    process = get_context("spawn").Process(target=work, args=arguments)
    process.start()
    try:
        process.join()
    except BaseException:
        process.terminate()
        process.join()
        raise
    return process.exitcode == 0


def plan(rows: list[Row], settings: Settings) -> list[str]:
    """What a session would do, in words."""
    done = read_results(settings.results)
    out = []
    for row in rows:
        have = sum(rep_key(settings, row, n, i) in done for n in settings.runners for i in range(settings.repeat))
        seeds, iterations = recipe(row.k)
        known = sum(f"reference/{row.name}/seed={seed}" in done for seed in range(seeds))
        R = f"reference {known}/{seeds} seeds of {iterations} iterations"
        out.append(f"{row.name:24} {have:3}/{len(settings.runners) * settings.repeat} repetitions, {R}")
    return out
