"""The rows of the race: which vectors, how many clusters. What is generated is seeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from k2means import read_vectors

from .datasets import SOURCES, DatasetError, fetch, find, load, read

Vectors = NDArray[np.float32]
COVTYPE = 581012


@dataclass(frozen=True)
class Row:
    """One line of the tables. `vectors` is called with `data`; the clock does not run then."""

    data: str
    k: int
    vectors: Callable[[str], Vectors]
    note: str = ""
    file: str = ""  # of a user's own vectors

    @property
    def name(self) -> str:
        return f"{self.data} k={self.k}"

    def load(self) -> Vectors:
        """As everybody gets them: float32, C order."""
        return np.ascontiguousarray(self.vectors(self.file or self.data), dtype=np.float32)


# ---- vectors -----------------------------------------------------------------------------------------------------


def paper_data(name: str) -> Vectors:
    return load(name, progress=False)


def covtype_rows(name: str) -> Vectors:
    """The first rows of all of covtype; `covtype290k` has half of them."""
    path = find("covtype")
    x = fetch("covtype", progress=False) if path is None else read(path, SOURCES["covtype"])
    return np.asarray(x[: covtype_count(name)], dtype=np.float32)


def covtype_count(name: str) -> int:
    return COVTYPE // {"73k": 8, "145k": 4, "290k": 2, "581k": 1}[name.removeprefix("covtype")]


def glove(name: str) -> Vectors:
    """GloVe word vectors in units of 1/31: the hard case for neighbourhoods."""
    path = find("glove100_i8")
    if path is None:
        raise DatasetError("glove100_i8.npz was not found: put it into a folder and set K2MEANS_DATA to that folder")
    return np.asarray(read(path), dtype=np.float32)


def tree_mixture(name: str, n: int = 1_000_000, d: int = 128, seed: int = 11) -> Vectors:
    """Clusters within clusters, overlapping: 40 × 40 × 10 middles, each level half as wide as the one above."""
    rng = np.random.default_rng(seed)
    x = np.empty((n, d), dtype=np.float32)
    levels = [rng.normal(scale=s, size=(m, d)).astype(np.float32) for s, m in ((2.0, 40), (1.0, 1600), (0.5, 16000))]
    leaf = rng.integers(16000, size=n)
    for begin in range(0, n, 1 << 16):  # in blocks: no float64 copy of it all
        part = leaf[begin : begin + (1 << 16)]
        noise = rng.normal(scale=0.7, size=(len(part), d)).astype(np.float32)
        x[begin : begin + len(part)] = levels[0][part // 400] + levels[1][part // 10] + levels[2][part] + noise
    return x


def noise(name: str, n: int = 100_000, d: int = 64, seed: int = 12) -> Vectors:
    """No clusters at all."""
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def zipf(name: str, n: int = 200_000, d: int = 64, clumps: int = 2000, seed: int = 13) -> Vectors:
    """Clumps of very unequal size: the i-th has a share of 1 / i."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, clumps + 1)
    which = rng.choice(clumps, size=n, p=share / share.sum())
    middles = rng.normal(scale=1.5, size=(clumps, d)).astype(np.float32)
    return np.asarray(middles[which] + rng.standard_normal((n, d), dtype=np.float32))


def own_vectors(path: str) -> Vectors:
    return np.asarray(read_vectors(path), dtype=np.float32)


# ---- rows --------------------------------------------------------------------------------------------------------


def _rows(vectors: Callable[[str], Vectors], note: str, *data_and_ks: tuple[str, tuple[int, ...]]) -> list[Row]:
    return [Row(data, k, vectors, note) for data, ks in data_and_ks for k in ks]


_HELD_OUT = "generated, nobody tuned on it"
ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        *_rows(paper_data, "", ("usps", (200,)), ("mnist", (200, 1000)), ("cifar", (200, 1000))),
        *_rows(paper_data, "features of Caltech-101", ("cnncaltech*", (200,))),
        *_rows(paper_data, "", ("yale", (200,))),
        *_rows(paper_data, "the first 150000 rows", ("covtype", (200, 1000))),
        *_rows(covtype_rows, "all rows", ("covtype581k", (1000, 10000))),
        *_rows(glove, "word vectors, int8 units", ("glove100", (1000, 4096, 16384))),
        *_rows(tree_mixture, "generated: clusters within clusters", ("mixture1m", (10000,))),
        *_rows(noise, f"isotropic noise, {_HELD_OUT}", ("noise100k", (1000,))),
        *_rows(zipf, f"heavy-tailed sizes, {_HELD_OUT}", ("zipf200k", (2000,))),
    )
}
_PARTS = tuple((f"covtype{n}", (1000,)) for n in ("73k", "145k", "290k", "581k"))
SCALING: dict[str, Row] = {row.name: row for row in _rows(covtype_rows, "for the scaling over n", *_PARTS)}
OVER_K = ("glove100 k=1000", "glove100 k=4096", "glove100 k=16384")
OVER_N = tuple(SCALING)


def chosen(wanted: list[str]) -> list[Row]:
    """By name, by the data's name (all its k), `scaling`, `all`; nothing asked for: the rows of the tables."""
    every = ROWS | SCALING
    if not wanted:
        return list(ROWS.values())
    out: dict[str, Row] = {}
    for text in wanted:
        groups: dict[str, Any] = {"all": every, "scaling": SCALING}
        found = groups.get(text) or {n: r for n, r in every.items() if text in (n, r.data)}
        if not found:
            raise ValueError(f"there is no row {text!r}; there are {', '.join(every)}, scaling and all")
        out |= found
    return list(out.values())


def own_row(path: Path, k: int) -> Row:
    return Row(path.stem, k, own_vectors, f"read from {path.name}", str(path))
