"""What to run: the specs behind every table and figure of the paper, in the order they are worth having."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from k2means import AKM, GDI, K2, Elkan, Lloyd, MiniBatch, PlusPlus, Random

from .datasets import DATASETS

# Relative errors at which operations are compared (Tables 5, 6 and the supplement). A level counts as reached at
# E <= (1 + level) R (1 + SLACK), where R is the energy of Lloyd++ at convergence for the same dataset, k and seed.
LEVELS = (0.0, 0.005, 0.01, 0.02)
SLACK = 1e-6
MAX_ITER = 100
MINIBATCH_ITER = 50  # iterations of n / 100 batches each: the paper's t = n / 2 batches of b = 100 rows

# m of AKM and k_n of k². Those likely to be best come first: the others can then be cut short.
PARAMETERS = (30, 20, 50, 10, 100, 5, 200, 3)
SEARCHED = {"k2": "gdi", "akm": "random", "akm-keep": "random"}  # methods with such a parameter, and where they start
INITS = {"random": Random(), "k-means++": PlusPlus(), "gdi": GDI()}


@dataclass(frozen=True)
class Spec:
    """One run. `stop` says when it ends:

    "converged"      when no center moves, or after MAX_ITER iterations;
    "reference"      also when it reaches the energy of Lloyd++;
    "oracle of S"    also when it cannot become the best parameter of its method on the mean over S seeds.
    """

    dataset: str
    k: int
    method: str
    parameter: int | str | None
    init: str
    seed: int
    stop: str

    @property
    def key(self) -> str:
        parameter = "" if self.parameter is None else f"({self.parameter})"
        return f"{self.dataset}/k={self.k}/{self.method}{parameter}/{self.init}/seed={self.seed}/{self.stop}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def method_of(spec: Spec) -> K2 | AKM | Lloyd | Elkan | MiniBatch:
    if spec.method == "k2":
        return K2(spec.parameter)  # type: ignore[arg-type]
    if spec.method in ("akm", "akm-keep"):
        return AKM(checks=int(spec.parameter or 0), keep_previous=spec.method == "akm-keep")
    plain: dict[str, Lloyd | Elkan | MiniBatch] = {"lloyd": Lloyd(), "elkan": Elkan(), "minibatch": MiniBatch()}
    return plain[spec.method]


@dataclass(frozen=True)
class Cell:
    """Runs that share a dataset, k and seedings, done one after the other in one process."""

    plan: str
    dataset: str
    k: int
    seeds: tuple[int, ...]
    minibatch_seeds: int = 0
    parts: tuple[str, ...] = ("exact", "k2", "akm")  # of the plans that search: what is run beside the reference


@dataclass(frozen=True)
class Scope:
    """How much of a plan is run on a dataset: what fits into a few hours."""

    ks: tuple[int, ...] = (50, 100, 200, 500, 1000)
    seeds: int = 3
    minibatch_seeds: int = 3
    init_ks: tuple[int, ...] = (100, 200, 500)
    init_seeds: int = 20


SCOPES: dict[str, Scope] = {
    **dict.fromkeys(("usps", "tinygist10k*", "mnist50", "covtype"), Scope()),
    **dict.fromkeys(("yale", "cnncaltech*", "mnist"), Scope(init_seeds=5, minibatch_seeds=1)),
    "covtype01": Scope(ks=(50, 200, 1000), seeds=1, minibatch_seeds=1, init_seeds=3),
    **dict.fromkeys(("tiny10k*", "cifar"), Scope(ks=(50, 200, 1000), seeds=1, minibatch_seeds=1, init_ks=())),
    "smoke": Scope(ks=(10, 25), seeds=2, minibatch_seeds=1, init_ks=(10, 25), init_seeds=2),
}


def cells(plan: str) -> list[Cell]:
    """The cells of a plan, in the order to run them."""
    if plan in ("figure1", "complexity"):
        return [Cell(plan, plan, 0, (0,))]
    if plan == "smoke":
        return [*_cells("speedup", ["smoke"]), *_cells("init", ["smoke"]), *cells("figure1")]
    if plan == "all":
        tiers = [list(SCOPES)[a:b] for a, b in ((0, 4), (4, 8), (8, 10))]
        small = [*cells("figure1"), *cells("complexity")]
        first = [*_cells("speedup", tiers[0]), *_cells("init", tiers[0])]
        later = tiers[1] + tiers[2]  # here AKM takes most of the time and reaches least: it comes last
        parts = [_cells("speedup", later, ("exact", "k2")), _cells("init", later), _cells("speedup", later, ("akm",))]
        return [*small, *first, *cells("akm"), *(c for part in parts for c in part)]
    if plan == "curves":  # their traces are what Figures 2 to 4 draw
        drawn = _cells("speedup", ["mnist50", "mnist", "cnncaltech*", "cifar"])
        return [c for c in drawn if c.k in (50, 200, 1000)]
    return _cells(plan, [d for d in SCOPES if d in (AKM_DATASETS if plan == "akm" else DATASETS)])


PLANS = ("init", "speedup", "curves", "akm", "figure1", "complexity", "smoke", "all")
AKM_DATASETS = ("usps", "tinygist10k*")  # where it is cheap to ask what AKM's missing rule costs it


def _cells(plan: str, datasets: list[str], parts: tuple[str, ...] = Cell.parts) -> list[Cell]:
    out = []
    parts = ("akm-keep",) if plan == "akm" else parts
    for dataset in datasets:
        scope = SCOPES[dataset]
        if plan in ("speedup", "akm"):
            seeds = tuple(range(scope.seeds))
            out += [Cell(plan, dataset, k, seeds, scope.minibatch_seeds, parts) for k in scope.ks[::-1]]
        elif plan == "init":
            out += [Cell(plan, dataset, k, (s,)) for k in scope.init_ks for s in range(scope.init_seeds)]
        else:
            raise ValueError(f"plan must be one of {', '.join(PLANS)}, got {plan!r}")
    return out


def parameters(k: int) -> list[int]:
    return [p for p in PARAMETERS if p <= k]


def specs(cell: Cell) -> Iterator[Spec]:
    """Every run of a cell, in order. Those of AKM and k² may turn out not to be needed."""
    if cell.plan == "complexity":
        yield from complexity_specs()
    if cell.plan in ("complexity", "figure1"):  # the latter is no run of ours
        return
    for seed in cell.seeds:
        if cell.plan == "init":
            for init in INITS:
                yield Spec(cell.dataset, cell.k, "lloyd", None, init, seed, "converged")
        elif "exact" in cell.parts:
            yield from _exact(cell, seed)
        else:  # only the reference
            yield Spec(cell.dataset, cell.k, "lloyd", None, "k-means++", seed, "converged")
    if cell.plan != "init":
        for method, init in ((m, i) for m, i in SEARCHED.items() if m in cell.parts):
            for parameter in parameters(cell.k):
                for seed in cell.seeds:
                    stop = f"oracle of {len(cell.seeds)}"
                    yield Spec(cell.dataset, cell.k, method, parameter, init, seed, stop)


def _exact(cell: Cell, seed: int) -> Iterator[Spec]:
    """The runs that need no parameter; Lloyd++ first, for the others are measured by it."""
    for init, stop in (("k-means++", "converged"), ("random", "reference")):
        for method in ("lloyd", "elkan"):
            yield Spec(cell.dataset, cell.k, method, None, init, seed, stop)
    yield Spec(cell.dataset, cell.k, "k2", "auto", "gdi", seed, "reference")
    if seed < cell.minibatch_seeds:
        yield Spec(cell.dataset, cell.k, "minibatch", None, "random", seed, "reference")


# ---- Tables 2 and 3: operations counted on generated data, over n, k and the parameter ---------------------------

COMPLEXITY_D = 16


def complexity_specs() -> Iterator[Spec]:
    base = {"n": 20000, "k": 200, "parameter": 20}
    shapes = [base]
    shapes += [base | {"n": n} for n in (5000, 10000, 40000)]
    shapes += [base | {"k": k} for k in (50, 100, 400, 800)]
    shapes += [base | {"parameter": p} for p in (5, 10, 40, 80)]
    for shape in shapes:
        dataset = f"mixture-{shape['n']}"
        for method, init in (("lloyd", "k-means++"), ("elkan", "k-means++"), ("minibatch", "random")):
            if shape["parameter"] == base["parameter"]:
                yield Spec(dataset, shape["k"], method, None, init, 0, "converged")
        for method, init in (("akm", "random"), ("k2", "gdi")):
            yield Spec(dataset, shape["k"], method, shape["parameter"], init, 0, "converged")


# ---- how long it will take: for the estimate of the time left, not for any result --------------------------------


def seconds(spec: Spec, n: int, d: int) -> float:
    """A rough guess for one core of 2024: 45 GFLOP/s in blocks, less for one distance at a time."""
    rows = min(MAX_ITER, 15 + n / spec.k / 4) * n  # iterations times rows
    block, single, search = 4.5e-11 * (d + 8), 1.2e-10 * d + 4e-8, 6e-8
    width = float(spec.parameter) if isinstance(spec.parameter, int) else 40.0
    per_row = {
        "lloyd": spec.k * block,
        "elkan": spec.k * single / 6,
        "k2": width / 4 * single,
        "akm": width * (single + search) * 0.6,
        "minibatch": spec.k * block * 2,
    }[spec.method.removesuffix("-keep")]
    seeding = n * spec.k * d * 1.5e-10 if spec.init == "k-means++" and spec.method == "lloyd" else 0.0
    return 0.02 + rows * per_row + seeding
