"""Run a plan: one JSON line for every finished spec, appended; what is there already is not run again."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import groupby
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import k2means
from k2means import Ops, Record, Result, Stop, cluster

from . import figure1
from .datasets import DATASETS, load
from .plans import (
    COMPLEXITY_D,
    INITS,
    LEVELS,
    MAX_ITER,
    MINIBATCH_ITER,
    SLACK,
    Cell,
    Spec,
    method_of,
    seconds,
    specs,
)

RESULTS = Path(__file__).parent / "results"
Line = dict[str, Any]  # one line of a results file


def machine() -> str:
    """Names the folder of the results. Counts and energies do not depend on it, seconds do."""
    return f"{platform.system()}-{platform.machine()}-{os.cpu_count()}cpu".lower()


# ---- results on disk ---------------------------------------------------------------------------------------------


def read_results(folder: Path) -> dict[str, Line]:
    """All lines under `folder` by key. A line cut off by a kill is left out; its spec will be run again."""
    found: dict[str, Line] = {}
    for path in sorted(folder.glob("*/*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            found.setdefault(line["key"], line)
    return found


def append(folder: Path, plan: str, line: Line) -> None:
    path = folder / machine() / f"{plan}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # the last line was cut off: close it, so that only it is lost
                file.write(b"\n")
        file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


# ---- one run -----------------------------------------------------------------------------------------------------


class Shared:
    """An initialisation done once for a seed. The generator is left as after the first time."""

    def __init__(self, init: Any) -> None:
        self.init = init
        self.kept: tuple[Any, Any] | None = None

    def __call__(self, data: Any, k: int, rng: np.random.Generator) -> Any:
        if self.kept is None:
            self.kept = self.init(data, k, rng), rng.bit_generator.state
        start, rng.bit_generator.state = self.kept
        return start

    def ops(self) -> float:
        return 0.0 if self.kept is None else float(self.kept[0].ops.total)


@dataclass
class Progress:
    """Energy and operations of a run so far, and when it first reached each level of the reference."""

    reference: float | None
    ops: float = 0.0  # without the initialisation
    rows: list[tuple[int, float, float]] = field(default_factory=list)
    hits: dict[float, tuple[int, float]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        self.ops += record.ops.total
        self.rows.append((record.iteration, record.energy, self.ops))
        self.look(*self.rows[-1])

    def look(self, iteration: int, energy: float, ops: float) -> None:
        for level in LEVELS:
            if level not in self.hits and reached(energy, level, self.reference):
                self.hits[level] = (iteration, ops)

    def measure_by(self, reference: float) -> None:
        """Lloyd++ itself knows the reference only when it is done."""
        self.reference = reference
        for row in self.rows:
            self.look(*row)

    def thinned(self) -> list[tuple[int, float, float]]:
        """The first iterations, then ever fewer; always those that reach a level, and the last."""
        keep = {i for i, _ in self.hits.values()} | {self.rows[-1][0]}
        step = 1.0
        while step <= len(self.rows):
            keep.add(round(step))
            step = max(step + 1, step * 1.1)
        return [(i, float(f"{e:.10g}"), round(o, 1)) for i, e, o in self.rows if i in keep]


# Given a run's progress and its operations, initialisation included: can it still matter?
Hopeless = Callable[[Progress, float], bool]


def reached(energy: float, level: float, reference: float | None) -> bool:
    return reference is not None and energy <= (1 + level) * reference * (1 + SLACK)


def run_spec(
    spec: Spec,
    x: NDArray[Any],
    init: Shared,
    reference: float | None,
    hopeless: Hopeless | None = None,
    n_threads: int = 1,
) -> Line:
    progress = Progress(reference)
    pruned = False

    def on_step(record: Record) -> bool:
        nonlocal pruned
        progress.add(record)
        pruned = hopeless is not None and hopeless(progress, init.ops() + progress.ops)
        return pruned

    stop = Stop(
        max_iter=MINIBATCH_ITER if spec.method == "minibatch" else MAX_ITER,
        energy=None if spec.stop == "converged" or reference is None else reference * (1 + SLACK),
    )
    rng = np.random.default_rng([spec.seed, spec.k])
    started = time.perf_counter()
    result = cluster(
        x, spec.k, method=method_of(spec), init=init, stop=stop, seed=rng, n_threads=n_threads, on_step=on_step
    )
    if reference is None:
        progress.measure_by(result.energy)
    ended = "converged" if result.converged else "max_iter"
    if spec.stop != "converged" and 0.0 in progress.hits:
        ended = "reached"
    elif pruned:
        ended = "pruned"
    line = as_line(spec, x.shape, result, time.perf_counter() - started)
    line |= {
        "ended": ended,
        "hits": {str(level): [i, round(ops, 1)] for level, (i, ops) in progress.hits.items()},
        "trace": progress.thinned(),
    }
    if spec.dataset.startswith("mixture"):
        line["distances"] = [r.ops.distances for r in result.trace]
    return line


def as_line(spec: Spec, shape: tuple[int, ...], result: Result, elapsed: float) -> Line:
    return {
        "key": spec.key,
        **spec.as_dict(),
        "n": shape[0],
        "d": shape[1],
        "configuration": str(method_of(spec)),
        "energy": result.energy,
        "n_iter": result.n_iter,
        "init_ops": ops_dict(result.init_ops),
        "ops": ops_dict(result.ops),
        "seconds": round(elapsed, 3),
        "versions": {"k2means": k2means.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "machine": machine(),
    }


def ops_dict(ops: Ops) -> dict[str, float]:
    return {
        "distances": ops.distances,
        "products": ops.products,
        "additions": ops.additions,
        "sorts": round(ops.sorts, 1),
    }


# ---- one cell ----------------------------------------------------------------------------------------------------


@dataclass
class Bests:
    """The best sum of operations over all seeds that a parameter has needed for each level, so far.

    A run is hopeless once, for every level it could still reach first, the operations of this parameter (the seeds
    before and this one up to now) exceed that. It cannot be chosen then: stopping it does not change the choice.
    """

    last_seed: int
    best: dict[float, float] = field(default_factory=lambda: dict.fromkeys(LEVELS, float("inf")))
    so_far: dict[float, float] = field(default_factory=dict)  # of the parameter at hand; failed levels are missing

    def next_parameter(self) -> None:
        self.so_far = dict.fromkeys(LEVELS, 0.0)

    def hopeless(self, progress: Progress, spent: float) -> bool:
        return all(level in progress.hits or sum + spent > self.best[level] for level, sum in self.so_far.items())

    def add(self, line: Line) -> None:
        hits = {float(level): ops + total(line["init_ops"]) for level, (_, ops) in line["hits"].items()}
        self.so_far = {level: so_far + hits[level] for level, so_far in self.so_far.items() if level in hits}
        if line["seed"] == self.last_seed:
            self.best |= {level: min(ops, self.best[level]) for level, ops in self.so_far.items()}


def total(ops: dict[str, float]) -> float:
    return sum(ops.values())


def run_cell(cell: Cell, done: dict[str, Line], n_threads: int) -> Iterator[Line]:
    """The lines of a cell that are not in `done`, as they are finished."""
    if cell.plan == "figure1":
        if "figure1" not in done:
            yield {"key": "figure1", **figure1.compute(np.random.default_rng(figure1.SEED))}
        return
    if cell.plan == "complexity":
        yield from run_complexity(cell, done, n_threads)
        return
    todo = list(specs(cell))
    if all(s.key in done for s in todo):
        return
    x = rows_of(cell.dataset)
    inits = {(name, seed): Shared(init) for name, init in INITS.items() for seed in cell.seeds}
    lines: dict[str, Line] = {s.key: done[s.key] for s in todo if s.key in done}

    def line_of(spec: Spec, reference: float | None, hopeless: Hopeless | None = None) -> Iterator[Line]:
        if spec.key not in lines:
            lines[spec.key] = run_spec(spec, x, inits[spec.init, spec.seed], reference, hopeless, n_threads)
            yield lines[spec.key]

    references: dict[int, float] = {}
    for spec in todo:
        if spec.stop.startswith("oracle"):
            continue
        reference = None if cell.plan == "init" else references.get(spec.seed)  # none yet: this is Lloyd++
        yield from line_of(spec, reference)
        if spec.method == "lloyd" and spec.init == "k-means++":
            references[spec.seed] = lines[spec.key]["energy"]
        elif spec.method == "elkan":
            check_same_energies(lines[spec.key], lines[replace(spec, method="lloyd").key])
    searched = [s for s in todo if s.stop.startswith("oracle")]
    for _, of_method in groupby(searched, key=lambda spec: spec.method):
        yield from search_parameter(list(of_method), references, lines, line_of)


def search_parameter(
    searched: list[Spec], references: dict[int, float], lines: dict[str, Line], line_of: Callable[..., Iterator[Line]]
) -> Iterator[Line]:
    """Run one parameter after the other over all seeds, each as far as it may turn out to be the best."""
    bests = Bests(last_seed=searched[-1].seed)
    for _, of_parameter in groupby(searched, key=lambda spec: spec.parameter):
        bests.next_parameter()
        for spec in of_parameter:
            if not bests.so_far:  # a seed before failed at every level, so this parameter does
                break
            yield from line_of(spec, references[spec.seed], bests.hopeless)
            bests.add(lines[spec.key])


def check_same_energies(elkan: Line, lloyd: Line) -> None:
    """Elkan's is Lloyd's algorithm with fewer distances. If it were not, the table would be wrong."""
    energies = {i: e for i, e, _ in lloyd["trace"]}
    for i, e, _ in elkan["trace"]:
        if i in energies and not abs(e - energies[i]) <= 1e-9 * e:
            raise AssertionError(f"{elkan['key']}: energy {e} at iteration {i}, Lloyd has {energies[i]}")
    if elkan["n_iter"] != lloyd["n_iter"]:
        raise AssertionError(f"{elkan['key']}: {elkan['n_iter']} iterations, Lloyd needs {lloyd['n_iter']}")


def run_complexity(cell: Cell, done: dict[str, Line], n_threads: int) -> Iterator[Line]:
    for spec in specs(cell):
        if spec.key not in done:
            yield run_spec(spec, rows_of(spec.dataset), Shared(INITS[spec.init]), None, n_threads=n_threads)


def rows_of(dataset: str) -> NDArray[Any]:
    return load(dataset, progress=False) if dataset in DATASETS else mixture(*shape_of(dataset))


def mixture(n: int, d: int, seed: int = 7) -> NDArray[np.float32]:
    """Overlapping clumps of several sizes."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(scale=1.5, size=(64, d))
    chosen = middles[rng.integers(64, size=n)] + rng.normal(size=(n, d)) * rng.uniform(0.3, 1.2, size=(n, 1))
    return np.ascontiguousarray(chosen, dtype=np.float32)


# ---- a plan ------------------------------------------------------------------------------------------------------


def shape_of(dataset: str) -> tuple[int, int]:
    if dataset in DATASETS:
        return DATASETS[dataset].n, DATASETS[dataset].d
    return (600, 8) if dataset == "smoke" else (int(dataset.split("-")[1]), COMPLEXITY_D)


def estimate(cell: Cell, done: dict[str, Line]) -> float:
    """Seconds of one core that the rest of a cell may take."""
    return sum(seconds(s, *shape_of(s.dataset)) for s in specs(cell) if s.key not in done)


def matches(cell: Cell, only: list[str] | None) -> bool:
    return not only or any(text in f"{cell.plan}/{cell.dataset}/k={cell.k}/" for text in only)


_queue: Any = None  # of a worker: where its lines go


def _start_worker(queue: Any) -> None:
    global _queue
    _queue = queue
    parent = parent_process()
    if parent is not None:  # killed, it cannot stop us
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _work(cell: Cell, folder: Path, n_threads: int) -> None:
    done = read_results(folder)  # only now: cells share runs, and another may have made them
    for line in run_cell(cell, done, n_threads):
        _queue.put((cell.plan, line))


def run_plan(cells: list[Cell], folder: Path, jobs: int, n_threads: int, quiet: bool = False) -> int:
    """Run the cells, `jobs` at a time. Returns the number of lines appended. Killed, it goes on where it was."""
    done = read_results(folder)
    bar = tqdm(total=round(sum(estimate(c, done) for c in cells)), unit="s of work", disable=quiet, smoothing=0.05)
    written = 0

    def finish(plan: str, line: Line) -> None:
        nonlocal written
        append(folder, plan, line)
        written += 1
        if "dataset" in line:
            spec = Spec(**{name: line[name] for name in Spec.__dataclass_fields__})
            bar.update(min(seconds(spec, line["n"], line["d"]), max(0.0, bar.total - bar.n)))
            bar.set_postfix_str(line["key"], refresh=False)

    context = get_context("spawn")
    queue = context.SimpleQueue()
    with bar, ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(queue,)) as pool:
        pending = {pool.submit(_work, c, folder, n_threads) for c in cells}
        try:
            while pending or not queue.empty():
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
                while not queue.empty():
                    finish(*queue.get())
                for future in finished:
                    future.result()
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return written
