"""Rough iterations before the real ones: on sketches of the rows, over few neighbours, and with swaps of clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .loop import Ops, Record, Stop, run
from .measure import means
from .methods import Problem, Sketched

ROUGH = Sketched(32, turns=2, exact=False)
LITTLE = 0.995  # iterations end with one that leaves more than this of the energy
ROUNDS = 8  # of swaps, at most; each is followed by
AFTER_SWAPS = 3  # iterations, at most
FEW = 200  # swaps end when there are fewer than one for so many clusters


def refine_early(problem: Problem, iterations: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], Ops]:
    """Better labels than those of the problem, and what they cost."""
    x, weights, threads, k = problem.x, problem.weights, problem.n_threads, len(problem.centers)
    labels, ops = _iterate(problem, iterations)
    for key in rng.integers(0, 2**63, size=ROUNDS).tolist():
        labels, swaps, counted = _core.swap_clusters(x, weights, labels, k, key, threads)
        ops += Ops(*counted)
        if swaps * FEW < k:
            break
        centers = means(x, weights, labels, k, threads)
        labels, more = _iterate(replace(problem, centers=centers, labels=labels), AFTER_SWAPS)
        ops += more
    return labels, ops


def _iterate(problem: Problem, most: int) -> tuple[NDArray[np.int32], Ops]:
    energies: list[Any] = [np.inf]

    def brings_little(record: Record) -> bool:
        energies.append(record.energy)
        return bool(energies[-1] > LITTLE * energies[-2])

    engine = ROUGH.bind(problem)
    trace = run(engine, Stop(max_iter=most), brings_little)
    return engine.labels(), sum((r.ops for r in trace), Ops())
