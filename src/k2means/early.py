"""Rough iterations before the real ones: on sketches of the rows, over few neighbours, and with swaps of clusters."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .loop import Ops, Record, Stop, run
from .methods import Problem

NEIGHBORS, TURNS = 32, 2
LITTLE = 0.002  # of the energy; iterations end with one that saves less
ROUNDS = 16  # of swaps, at most; each is followed by
AFTER_SWAPS = 3  # iterations, at most
SAVED = 0.0003  # of the energy; swaps end with a round that saves less


def refine_early(
    problem: Problem, tells_all: bool, iterations: int, rng: np.random.Generator, deadline: float = float("inf")
) -> tuple[NDArray[np.int32], Ops]:
    """Better labels than those of the problem, whose rows tell all of the real ones or not, and what they cost.
    Nothing begins after the deadline, by time.perf_counter(), but the first iteration."""
    p = problem
    engine = _core.rough(p.x, p.weights, p.survey, p.centers, p.labels, NEIGHBORS, TURNS, p.n_threads)
    ops = _iterate(engine, iterations, deadline)
    # Else what is saved by swaps may lie in what the rows here do not tell.
    for key in rng.integers(0, 2**63, size=ROUNDS).tolist() if tells_all else ():
        if time.perf_counter() >= deadline:
            break
        saved, counted = engine.swap(key)
        ops += Ops(*counted)
        if saved < SAVED:
            break
        ops += _iterate(engine, AFTER_SWAPS, deadline)
    return engine.labels(), ops


def _iterate(engine: Any, most: int, deadline: float) -> Ops:
    energies: list[Any] = [np.inf]

    def brings_little(record: Record) -> bool:
        energies.append(record.energy)
        return bool(energies[-1] > (1 - LITTLE) * energies[-2])

    trace = run(engine, Stop(max_iter=most, seconds=deadline), brings_little, started=0.0)
    return sum((r.ops for r in trace), Ops())
