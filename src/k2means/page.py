"""A clustering as one HTML page: energy, sizes, a map of the centers, the nearest rows. It needs nothing of the net."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .files import check_new, replace_file
from .loop import Record

PAGE_BYTES = 4_800_000  # names and pictures get what the numbers leave of it: a page stays under 5 MB
MAX_EXAMPLES = 60_000  # in a page, and 12 of a cluster: more is not looked at
MAX_DEPTH = 12
MAX_POINTS = 1500  # of the energy curve: more than its pixels
BLOCK = 1 << 20  # numbers converted to double at a time


@dataclass(frozen=True)
class Summary:
    """All that the page shows.

    Parameters
    ----------
    title : str
    centers : ndarray of shape (k, d)
    sizes : ndarray of shape (k,), int64
        Members of each cluster. Their sum is the number of rows.
    energies : ndarray of shape (k,), float64
        Sum of the squared distances of the members to their center; NaN where it is not known.
    trace : sequence of (seconds, energy, moved)
        For each iteration the seconds so far, the energy, and the rows that changed their cluster. See `curve`.
    parameters : mapping of str to str
        Shown as a table.
    examples : sequence of k sequences of (row, distance), or None
        The rows nearest to each center, nearest first.
    names : sequence of str, or None
        A text for each row of the data, shown beside the examples.
    images : sequence of Path, or None
        A picture for each row of the data, made small and shown beside the examples.
    """

    title: str
    centers: NDArray[Any]
    sizes: NDArray[np.int64]
    energies: NDArray[np.float64]
    trace: Sequence[tuple[float, float, int]]
    parameters: Mapping[str, str]
    examples: Sequence[Sequence[tuple[int, float]]] | None = None
    names: Sequence[str] | None = None
    images: Sequence[Path] | None = None

    def __post_init__(self) -> None:
        if self.centers.ndim != 2 or not self.centers.size:
            raise ValueError(f"centers must be a table with rows and columns, got shape {self.centers.shape}")
        k, n = len(self.centers), int(self.sizes.sum())
        for name in ("sizes", "energies", "examples"):
            value = getattr(self, name)
            if value is not None and len(value) != k:
                raise ValueError(f"{name} must have one entry for each of the {k} centers, got {len(value)}")
        for name in ("names", "images"):
            value = getattr(self, name)
            if value is not None and len(value) != n:
                raise ValueError(f"{name} must have one entry for each of the {n} rows, got {len(value)}")
        for row, _ in (example for nearest in self.examples or () for example in nearest):
            if not 0 <= row < n:
                raise ValueError(f"examples name row {row}, there are {n} rows")


# ---- from the data -------------------------------------------------------------------------------------------------


def summarize(
    X: Any, centers: ArrayLike, labels: ArrayLike, trace: Sequence[Record] = (), n_examples: int | None = None
) -> Summary:
    """Measure a clustering, a block of rows at a time. `dataclasses.replace` gives it a title, names and the rest.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Or anything with a length whose slices are such: a memory map, a data set on disk.
    centers : array-like of shape (k, d)
    labels : array-like of shape (n,)
        The cluster of each row.
    trace : sequence of Record
        `trace_` of the model.
    n_examples : int or None
        The nearest rows kept for each cluster. None: 12, or fewer for many clusters; 0: none.
    """
    centers, labels = np.asarray(centers), np.asarray(labels)
    n, k = len(X), len(centers)
    if labels.shape != (n,):
        raise ValueError(f"labels must have one entry for each of the {n} rows of X, got shape {labels.shape}")
    if n and not (labels.min() >= 0 and labels.max() < k):
        raise ValueError(f"labels must be from 0 to {k - 1}, got {labels.min()} to {labels.max()}")
    depth = max(1, min(MAX_DEPTH, MAX_EXAMPLES // k)) if n_examples is None else n_examples
    squares = _squared_distances(X, centers, labels)
    sizes = np.bincount(labels, minlength=k).astype(np.int64)
    return Summary(
        title="k2means",
        centers=centers,
        sizes=sizes,
        energies=np.bincount(labels, weights=squares, minlength=k).astype(np.float64),
        trace=curve(trace),
        parameters={"rows": f"{n:,}", "columns": f"{centers.shape[1]:,}", "clusters": f"{k:,}"},
        examples=_nearest_rows(squares, labels, sizes, depth) if depth else None,
    )


def curve(trace: Sequence[Record]) -> list[tuple[float, float, int]]:
    """For each iteration the seconds so far, the energy, and the rows moved."""
    seconds = np.cumsum([record.seconds for record in trace])
    return [(float(s), float(r.energy), int(r.moved)) for s, r in zip(seconds, trace, strict=True)]


def _squared_distances(x: Any, centers: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Of each row to its own center, in double."""
    squares = np.empty(len(labels))
    size = max(1, BLOCK // centers.shape[1])
    with np.errstate(over="ignore"):
        for begin in range(0, len(labels), size):
            rows = slice(begin, begin + size)
            block = np.array(x[rows], dtype=np.float64)
            block -= centers[labels[rows]]
            squares[rows] = np.square(block, out=block).sum(axis=1)
    return squares


def _nearest_rows(
    squares: NDArray[np.float64], labels: NDArray[Any], sizes: NDArray[np.int64], depth: int
) -> list[list[tuple[int, float]]]:
    """Of each cluster the rows nearest to its center; of equal ones the first."""
    order = np.lexsort((squares, labels))
    ends = np.cumsum(sizes)
    nearest = []
    for end, size in zip(ends.tolist(), sizes.tolist(), strict=True):
        rows = order[end - size : end - size + min(size, depth)]
        nearest.append(list(zip(rows.tolist(), np.sqrt(squares[rows]).tolist(), strict=True)))
    return nearest


# ---- the map of the centers ----------------------------------------------------------------------------------------

DIRECTIONS = 16  # iterated together: two are wanted, more make them come sooner
MAX_PASSES = 60
SETTLED = 1e-7  # a pass that gains less of the variance is the last
WORK = 5e9  # numbers looked at in all passes, of which four are always made

N_NEIGHBORS = 3
SPARE = 5  # candidates more than neighbors: products of vectors choose them, differences decide
MAX_GRAPH = 20_000  # centers; beyond, lines hide more than they show
GRAPH_WORK = 1e12  # k·k·d: some tens of seconds


class _Spread:
    """Centers about their mean, scaled by a power of two so that squares have room, in double, a block at a time."""

    def __init__(self, centers: NDArray[Any]) -> None:
        self.centers = centers
        largest = max(float(np.abs(block).max()) for block in self._pieces())
        if not math.isfinite(largest):
            raise ValueError("centers must be finite numbers")
        self.exponent = math.frexp(largest)[1]
        self.mean = np.zeros(centers.shape[1])
        total = sum((self.scaled(block).sum(axis=0) for block in self._pieces()), start=np.zeros_like(self.mean))
        self.mean = total / len(centers)

    def _pieces(self) -> Iterator[NDArray[Any]]:
        size = max(1, BLOCK // self.centers.shape[1])
        return (self.centers[begin : begin + size] for begin in range(0, len(self.centers), size))

    def scaled(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.ldexp(rows.astype(np.float64), -self.exponent) - self.mean

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        return (self.scaled(block) for block in self._pieces())


def centers_map(centers: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """The first two principal coordinates of the centers, up to their scale, and their share of the variance.

    By subspace iteration: a pass over the centers costs k·d·16 products and keeps d·16 numbers. The largest entry of
    an axis is positive, so that the map has one orientation.
    """
    k, d = centers.shape
    spread = _Spread(centers)
    total = sum(float(np.square(block).sum()) for block in spread.blocks())
    if total == 0:
        return np.zeros((k, 2)), 1.0
    basis = np.linalg.qr(_scattered(d, min(d, DIRECTIONS)))[0]
    captured = -1.0
    for _ in range(int(min(MAX_PASSES, max(4, WORK // (k * d))))):
        image = np.zeros_like(basis)
        inner = np.zeros((basis.shape[1], basis.shape[1]))
        for block in spread.blocks():
            products = block @ basis
            image += block.T @ products
            inner += products.T @ products
        values, turns = np.linalg.eigh(inner)
        axes = basis @ turns[:, ::-1][:, :2]
        previous, captured = captured, float(values[::-1][:2].sum())
        if captured - previous <= SETTLED * total:
            break
        basis = np.linalg.qr(image)[0]
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0))
    points = np.zeros((k, 2))
    points[:, : axes.shape[1]] = np.concatenate([block @ axes for block in spread.blocks()])
    return points, min(1.0, captured / total)


def _scattered(rows: int, columns: int) -> NDArray[np.float64]:
    """Numbers without a pattern, the same every time."""
    i, j = np.arange(rows, dtype=np.float64)[:, None], np.arange(columns, dtype=np.float64)[None, :]
    return np.modf(np.sin(i * 12.9898 + j * 78.233 + 1.0) * 43758.5453)[0]


def neighbors(centers: NDArray[Any], count: int = N_NEIGHBORS) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The `count` nearest other centers of each center and their distances, nearest first; of equal ones the first."""
    k, d = centers.shape
    count = min(count, k - 1)
    spread = _Spread(centers)
    near, gaps = np.empty((k, count), dtype=np.int64), np.empty((k, count))
    if not count:
        return near, gaps
    norms = np.concatenate([np.square(block).sum(axis=1) for block in spread.blocks()])
    size = max(64, min(2 * BLOCK // k, 4 * BLOCK // (d * (count + SPARE))))
    for begin in range(0, k, size):
        rows = np.arange(begin, min(k, begin + size))
        here = spread.scaled(centers[rows])
        squares = np.concatenate([here @ block.T for block in spread.blocks()], axis=1)
        squares *= -2
        squares += norms
        squares[np.arange(len(rows)), rows] = np.inf  # itself
        last = min(count + SPARE, k - 1) - 1
        candidates = np.sort(np.argpartition(squares, last, axis=1)[:, : last + 1], axis=1)
        exact = np.square(spread.scaled(centers[candidates]) - here[:, None, :]).sum(axis=2)
        best = np.argsort(exact, axis=1, kind="stable")[:, :count]
        near[rows] = np.take_along_axis(candidates, best, axis=1)
        gaps[rows] = np.ldexp(np.sqrt(np.take_along_axis(exact, best, axis=1)), spread.exponent)
    return near, gaps


# ---- the page ------------------------------------------------------------------------------------------------------


def write_page(path: str | os.PathLike[str], summary: Summary, overwrite: bool = False) -> None:
    """Write the page of `render`: whole or not at all, and over an existing file only if `overwrite`."""
    target = Path(path)
    check_new(target, overwrite=overwrite)
    text = render(summary)
    check_new(target, overwrite=overwrite)  # it took a while
    with replace_file(target) as file:
        file.write(text.encode("utf-8"))


def render(summary: Summary) -> str:
    """The page, as text to be stored in UTF-8. The same summary gives the same page."""
    parts = _Parts()
    _add_clusters(parts, summary)
    _add_map(parts, summary.centers)
    _add_trace(parts, summary.trace)
    shown = _shown(summary, parts)
    _add_examples(parts, shown)
    if summary.names is not None:
        _add_names(parts, [summary.names[row] for _, row, _ in shown], share=0.4 if summary.images else 1.0)
    if summary.images is not None:
        _add_pictures(parts, shown, summary)
    return _fill(parts, summary)


@dataclass
class _Parts:
    """What the page is made of: numbers and texts for the script, rules for the style, remarks for the reader."""

    data: dict[str, Any] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def room(self) -> int:
        """Bytes that are left for names and pictures."""
        used = len(_json(self.data).encode("utf-8")) + sum(map(len, self.rules)) + sum(map(len, _assets().values()))
        return max(0, PAGE_BYTES - used - 50_000)  # the table of parameters


SCRIPTS = ("common.js", "charts.js", "map.js", "table.js", "page.js")  # one script, in this order


def _assets() -> dict[str, str]:
    folder = files("k2means") / "assets"
    text = {name: (folder / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", *SCRIPTS)}
    return {"html": text["page.html"], "css": text["page.css"], "js": "\n".join(text[name] for name in SCRIPTS)}


def _json(value: Any) -> str:
    """JSON that may stand inside a script element, whatever its texts say."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # "<" begins every tag and comment. A lone surrogate is no character; UTF-8 has no bytes for it.
    return re.sub("[\ud800-\udfff]", "\ufffd", text.replace("<", "\\u003c"))


def _rounded(values: Iterable[float], digits: int) -> list[float | int | None]:
    """Short to write down. What is not finite becomes None: JSON has no word for it."""
    out: list[float | int | None] = []
    for value in values:
        if math.isfinite(value):
            short = float(f"{value:.{digits}g}")
            out.append(int(short) if abs(short) < 1e15 and short.is_integer() else short)
        else:
            out.append(None)
    return out


def _add_clusters(parts: _Parts, summary: Summary) -> None:
    parts.data["sizes"] = summary.sizes.tolist()
    parts.data["energies"] = _rounded(summary.energies.tolist(), 5)


def _add_map(parts: _Parts, centers: NDArray[Any]) -> None:
    k, d = centers.shape
    points, share = centers_map(centers)
    points -= points.min(axis=0)
    extent = points.max()
    points *= 9999 / extent if extent > 0 else 0.0  # one scale for both: distances are not bent
    parts.data["x"], parts.data["y"] = np.rint(points).astype(int).T.tolist()
    parts.data["share"] = round(share, 4)
    if k > MAX_GRAPH or float(k) * k * d > GRAPH_WORK:
        parts.notes.append(f"The neighbour graph is left out: {k:,} centers of {d:,} columns are too many for it.")
        return
    near, gaps = neighbors(centers)
    parts.data["degree"] = near.shape[1]
    parts.data["near"], parts.data["gaps"] = near.ravel().tolist(), _rounded(gaps.ravel().tolist(), 4)


def _add_trace(parts: _Parts, trace: Sequence[tuple[float, float, int]]) -> None:
    chosen = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), MAX_POINTS)).astype(int)).tolist()
    if len(chosen) < len(trace):
        parts.notes.append(f"The energy curve shows {len(chosen):,} of {len(trace):,} iterations.")
    points = [trace[i] for i in chosen]
    parts.data["trace"] = {
        "iterations": [i + 1 for i in chosen],
        "seconds": _rounded((p[0] for p in points), 4),
        "energies": _rounded((p[1] for p in points), 8),
        "moved": [p[2] for p in points],
    }


_Example = tuple[int, int, float]  # cluster, row, distance


def _shown(summary: Summary, parts: _Parts) -> list[_Example]:
    """The examples there is room for: of every cluster the first few."""
    examples = summary.examples or ()
    lengths = np.array([len(nearest) for nearest in examples], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    depth = longest
    while depth > 1 and np.minimum(lengths, depth).sum() > MAX_EXAMPLES:
        depth -= 1
    if depth < longest:
        parts.notes.append(f"Of each cluster at most {depth} of {longest} nearest rows are shown.")
    return [(j, row, distance) for j, nearest in enumerate(examples) for row, distance in nearest[:depth]]


def _add_examples(parts: _Parts, shown: list[_Example]) -> None:
    clusters = np.array([j for j, _, _ in shown], dtype=np.int64)
    parts.data["counts"] = np.bincount(clusters, minlength=len(parts.data["sizes"])).tolist() if shown else []
    parts.data["rows"] = [row for _, row, _ in shown]
    parts.data["distances"] = _rounded((distance for _, _, distance in shown), 4)


def _add_names(parts: _Parts, names: list[str], share: float) -> None:
    """As much of the names as there is room for."""
    room = int(parts.room() * share)
    longest = max(map(len, names), default=0)
    for length in (200, 120, 80, 50, 30, 20, 12):
        texts = [name if len(name) <= length else name[: length - 1] + "…" for name in names]
        if len(_json(texts).encode("utf-8")) <= room:
            parts.data["names"] = texts
            if longest > length:
                parts.notes.append(f"Names are cut to {length} characters to keep the page small.")
            return
    parts.notes.append("Names are left out: there are too many for a page of 5 MB.")


def _fill(parts: _Parts, summary: Summary) -> str:
    assets = _assets()
    style = assets["css"] + "\n".join(parts.rules)
    filling = {
        "policy": f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(assets['js'])}'",
        "title": _escape(summary.title),
        "tiles": _pairs(_tiles(summary)),
        "parameters": _pairs(summary.parameters),
        "notes": "\n".join(f"<li>{_escape(note)}</li>" for note in parts.notes),
        "style": style,
        "script": assets["js"],
        "data": _json(parts.data),
    }
    # in one pass: what is filled in is not looked at again
    return re.sub(r"\{\{(\w+)\}\}", lambda place: filling[place[1]], assets["html"])


def _hash(text: str) -> str:
    """As a content security policy wants it: no other script and no other style may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _escape(text: str) -> str:
    return html.escape(re.sub("[\ud800-\udfff]", "\ufffd", text))


def _pairs(pairs: Mapping[str, str]) -> str:
    return "\n".join(f"<div><dt>{_escape(k)}</dt><dd>{_escape(v)}</dd></div>" for k, v in pairs.items())


def _tiles(summary: Summary) -> dict[str, str]:
    """What one wants to know first."""
    sizes = summary.sizes
    tiles = {
        "clusters": f"{len(sizes):,}",
        "rows": f"{int(sizes.sum()):,}",
        "energy": _large(float(summary.energies.sum())),
        "median members": _large(float(np.median(sizes))),
        "least and most": f"{sizes.min():,} – {sizes.max():,}",
        "empty clusters": f"{int((sizes == 0).sum()):,}",
    }
    if summary.trace:
        tiles["iterations"] = f"{len(summary.trace):,}"
        tiles["seconds"] = f"{summary.trace[-1][0]:.3g}"
    return tiles


def _large(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 1e4 <= value < 1e9 else f"{value:.6g}"


# ---- pictures ------------------------------------------------------------------------------------------------------

MAX_SIDE, MIN_SIDE = 96, 24  # pixels of a thumbnail
MAX_PICTURES = 12_000  # files are slow to read
SHEET = 1024  # pixels of a side of a sheet of thumbnails
PIXELS_PER_BYTE = 4  # of a sheet in the page: WebP needs 1.5 bits a pixel, and base64 a third more
QUALITIES = (80, 60, 40, 20, 5)
LOSSLESS_PIXELS, LOSSLESS_BYTES = 500_000, 300_000  # small pictures are kept as they are, pixel for pixel
SMALL_FILE = 16_384  # bytes of a picture that is taken as it is
TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}


@dataclass(frozen=True)
class _Sheets:
    """Pictures in rows and columns, many in a file: a header and a palette for each would be most of the page."""

    uris: list[str]
    columns: int
    rows: list[int]  # of each sheet
    side: int  # pixels; 0: unknown


def _add_pictures(parts: _Parts, shown: list[_Example], summary: Summary) -> None:
    """Small pictures of the examples, the nearest of the largest clusters first, as many as there is room for."""
    assert summary.images is not None
    room = max(0, parts.room() - 7 * len(shown))  # the number of each one's cell
    fit = min(MAX_PICTURES, PIXELS_PER_BYTE * room // MIN_SIDE**2)
    order = _by_importance(shown, summary.sizes)[:fit]
    paths = [summary.images[shown[e][1]] for e in order]
    sheets, used, broken = _sheets(paths, room) if _has_pillow() else _as_they_are(paths, room)
    if used:
        cells = np.full(len(shown), -1)
        cells[np.array(order)[used]] = np.arange(len(used))
        parts.data["pictures"] = {
            "cells": cells.tolist(),
            "columns": sheets.columns,
            "rows": sheets.rows,
            "side": sheets.side,
        }
        parts.rules += [f'.sheet{i}{{background-image:url("{uri}")}}' for i, uri in enumerate(sheets.uris)]
    if broken:
        parts.notes.append(f"{len(broken):,} pictures could not be read, first {broken[0].name!r}.")
    if len(used) + len(broken) < len(shown):
        parts.notes.append(f"{len(used):,} pictures are shown: that is what fits into the page.")


def _by_importance(shown: list[_Example], sizes: NDArray[np.int64]) -> list[int]:
    clusters = np.array([j for j, _, _ in shown], dtype=np.int64)
    first = np.searchsorted(clusters, clusters)
    rank = np.arange(len(shown)) - first
    return [int(e) for e in np.lexsort((clusters, -sizes[clusters], rank))]


def _has_pillow() -> bool:
    try:
        from PIL import features
    except ImportError:
        return False
    return bool(features.check("webp"))


def _sheets(paths: list[Path], room: int) -> tuple[_Sheets, list[int], list[Path]]:
    """Sheets of thumbnails; which of the paths they hold, in order; which could not be read."""
    from PIL import Image

    side = int(math.sqrt(PIXELS_PER_BYTE * room / max(1, len(paths))))
    side = max(MIN_SIDE, min(MAX_SIDE, side))
    thumbnails, used, broken = [], [], []
    for i, path in enumerate(paths):
        try:
            thumbnails.append(_thumbnail(path, side))
            used.append(i)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            broken.append(path)
    side = max((max(t.size) for t in thumbnails), default=side)  # what is smaller is not blown up
    columns = SHEET // side
    sheets = []
    for begin in range(0, len(thumbnails), columns**2):
        cells = thumbnails[begin : begin + columns**2]
        sheet = Image.new("RGBA", (columns * side, math.ceil(len(cells) / columns) * side))
        for i, cell in enumerate(cells):
            x, y = i % columns * side + (side - cell.width) // 2, i // columns * side + (side - cell.height) // 2
            sheet.paste(cell, (x, y))
        sheets.append(sheet)
    uris = _encoded(sheets, room)
    used = used[: len(uris) * columns**2]
    return _Sheets(uris, columns, [sheet.height // side for sheet in sheets[: len(uris)]], side), used, broken


def _thumbnail(path: Path, side: int) -> Any:
    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        opened.draft("RGB", (2 * side, 2 * side))  # a large JPEG is read at a fraction of its size
        picture: Any = ImageOps.exif_transpose(opened)
        if picture.mode[0] in "IF":  # more than 8 bits: from darkest to lightest
            levels = np.asarray(picture, dtype=np.float64)
            low, high = float(levels.min()), float(levels.max())
            picture = Image.fromarray(((levels - low) * (255 / ((high - low) or 1.0))).astype(np.uint8))
        picture = picture.convert("RGBA")
        picture.thumbnail((side, side))
        return picture


def _encoded(sheets: list[Any], room: int) -> list[str]:
    """Data URIs of the sheets, of the best quality that fits; of the lowest, as many as fit."""
    uris: list[str] = []
    if sum(sheet.width * sheet.height for sheet in sheets) <= LOSSLESS_PIXELS:
        uris = [_webp(sheet, lossless=True) for sheet in sheets]
        if sum(map(len, uris)) <= min(room, LOSSLESS_BYTES):
            return uris
    for quality in QUALITIES:
        uris, left = [], room
        for sheet in sheets:
            uris.append(_webp(sheet, quality=quality))
            left -= len(uris[-1])
            if left < 0:
                uris.pop()
                break
        else:
            return uris
    return uris


def _webp(sheet: Any, **options: Any) -> str:
    buffer = io.BytesIO()
    sheet.save(buffer, "WEBP", **options)
    return _uri("webp", buffer.getvalue())


def _uri(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _as_they_are(paths: list[Path], room: int) -> tuple[_Sheets, list[int], list[Path]]:
    """Without Pillow: the files themselves, if they are small. A sheet for each."""
    uris: list[str] = []
    used, broken = [], []
    for i, path in enumerate(paths):
        kind = TYPES.get(path.suffix.lower())
        try:
            small = kind is not None and path.stat().st_size <= min(SMALL_FILE, room * 3 // 4 - 100)
            content = path.read_bytes() if small else b""
        except OSError:
            broken.append(path)
            continue
        if kind is not None and content:
            uris.append(_uri(kind, content))
            used.append(i)
            room -= len(uris[-1]) + 60
    if len(used) + len(broken) < len(paths):
        warnings.warn(
            f"{len(paths) - len(used) - len(broken)} pictures are left out of the page: without Pillow only small ones "
            f"(PNG, JPEG, GIF or WebP, at most {SMALL_FILE // 1024} kB each) are shown (pip install 'k2means[plot]')",
            RuntimeWarning,
            stacklevel=2,
        )
    return _Sheets(uris, 1, [1] * len(uris), 0), used, broken
