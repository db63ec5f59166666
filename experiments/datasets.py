"""The paper's nine datasets: found on disk, else fetched from where they are published, always checked."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from . import gist

Array = NDArray[Any]

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
MNIST50_SEED = 50
TIMEOUT = 30.0  # seconds without a byte
TRIES = 4  # requests for one file, each going on where the last broke off


class DatasetError(RuntimeError):
    """A dataset cannot be had, or a file is not what it should be."""


@dataclass(frozen=True)
class Dataset:
    """One row of the paper's tables. A stand-in has a star in its name and says in ``note`` what it is."""

    name: str
    paper: str
    n: int
    d: int
    stand_in: bool = False
    note: str = ""


@dataclass(frozen=True)
class Source:
    """What others keep: the array as stored, its check, and the file it is published as.

    ``digest`` is the first 16 digits of the sha256 of the array's bytes. It and ``md5``, of the published file, come
    from PROVENANCE.md of the data folder.
    """

    shape: tuple[int, int]
    dtype: str
    digest: str
    file: str = ""
    urls: tuple[str, ...] = ()
    parse: Callable[[Path], Array] | None = None
    md5: str = ""


# The published formats.


def parse_idx(path: Path) -> Array:
    """MNIST's images: a header of four big-endian integers, then bytes."""
    data = gzip.decompress(path.read_bytes())
    magic, n, rows, columns = struct.unpack_from(">4I", data)
    if magic != 0x803:
        raise ValueError(f"magic number {magic:#x}, not 0x803 (images)")
    return np.frombuffer(data, np.uint8, offset=16).reshape(n, rows * columns)


def parse_cifar(path: Path) -> Array:
    """CIFAR-10's binary version: five batches of records, one byte of label and 3072 of pixels. No pickles."""
    batches = {}
    with tarfile.open(path, "r:gz") as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            file = tar.extractfile(member) if re.fullmatch(r"data_batch_[1-5]\.bin", name) else None
            if file is not None:
                batches[name] = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)[:, 1:]
    if len(batches) != 5:
        raise ValueError(f"has {sorted(batches)}, not data_batch_1.bin to data_batch_5.bin")
    return np.concatenate([batches[name] for name in sorted(batches)])


def parse_covtype(path: Path) -> Array:
    """Lines of 54 integers and the label."""
    return np.loadtxt(path, dtype=np.int16, delimiter=",", ndmin=2)[:, :-1]


def parse_usps(path: Path) -> Array:
    """Lines of the label and 256 numbers."""
    return np.loadtxt(path, dtype=np.float32, ndmin=2)[:, 1:]


def parse_yale(path: Path) -> Array:
    """Pictures by file name; ambient ones and those the authors call bad are left out, as in the paper's 2414."""
    with zipfile.ZipFile(path) as archive:
        members = {PurePosixPath(m).name: m for m in archive.namelist()}
        names = sorted(n for n in members if re.fullmatch(r"yaleB\d\d_P00A[+-]\d+E[+-]\d+\.pgm", n))
        if not names:
            raise ValueError("has no pictures like yaleB01_P00A+000E+00.pgm")
        return np.stack([parse_pgm(archive.read(members[n]), n) for n in names])


def parse_pgm(data: bytes, name: str) -> Array:
    header = re.match(rb"P5\s(?:\s*#.*\n)*\s*(\d+)\s+(\d+)\s+255\s", data)
    if header is None or int(header[1]) * int(header[2]) != len(data) - header.end():
        raise ValueError(f"{name} is not an 8-bit PGM picture (P5)")
    return np.frombuffer(data, np.uint8, offset=header.end())


def unpack(packed: Array) -> Array:
    """Undo the packing of *_packed.npz: differences down, then along the rows; red and blue minus green; modulo 256."""
    x = np.cumsum(np.cumsum(packed, axis=-1, dtype=np.uint8), axis=-2, dtype=np.uint8)
    if x.ndim == 4:
        x[:, 0] += x[:, 1]
        x[:, 2] += x[:, 1]
    return x.reshape(len(x), -1)


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
_ESL = "ElemStatLearn/datasets/zip.train.gz"
_IDX = "train-images-idx3-ubyte.gz"

SOURCES: dict[str, Source] = {
    "cifar": Source(
        (50000, 3072),
        "uint8",
        "9d5c2eddadb0deff",
        "cifar-10-binary.tar.gz",
        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        parse_cifar,
    ),
    "cnncaltech": Source((9144, 4096), "uint8", "0f03f1bfecf0ed1a"),
    "covtype": Source(
        (581012, 54),
        "int16",
        "1d8ed656c88560e0",
        "covtype.data.gz",
        (_UCI, "https://ndownloader.figshare.com/files/5976039"),  # the second is scikit-learn's copy
        parse_covtype,
    ),
    "mnist": Source(
        (60000, 784),
        "uint8",
        "741c988805d008ac",
        _IDX,
        # The author's own page turns programs away; these are the copies PyTorch and TensorFlow use.
        (
            f"https://ossci-datasets.s3.amazonaws.com/mnist/{_IDX}",
            f"https://storage.googleapis.com/cvdf-datasets/mnist/{_IDX}",
        ),
        parse_idx,
        md5="f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ),
    "usps": Source(
        (7291, 256),
        "float32",
        "896622302e97b306",
        "zip.train.gz",
        (f"https://hastie.su.domains/{_ESL}", f"https://web.stanford.edu/~hastie/{_ESL}"),
        parse_usps,
    ),
    "yale": Source(
        (2414, 32256),
        "uint8",
        "bfa23584d09de1e3",
        "CroppedYale.zip",
        ("http://vision.ucsd.edu/extyaleb/CroppedYaleBZip/CroppedYale.zip",),
        parse_yale,
    ),
}

_CALTECH = (
    "AlexNet convolution features of the 9144 pictures of Caltech-101, in place of the CNN features of 15662 boxes of "
    "PASCAL VOC 2007, which are not published."
)
_TINY = "The first 10000 images of CIFAR-10, a subset of the 80 million tiny images, which were withdrawn in 2020."
_GIST = "GIST by our own function of the first 10000 images of CIFAR-10; the 80 million tiny images were withdrawn."
_COVTYPE01 = "covtype with every column scaled to [0, 1]: what the paper's covtype seems to be (see the remarks)."
_MNIST50 = f"Projected by our own Gaussian matrix (seed {MNIST50_SEED}); the paper's is not published."

DATASETS: dict[str, Dataset] = {
    data.name: data
    for data in (
        Dataset("cifar", "cifar", 50000, 3072),
        Dataset("cnncaltech*", "cnnvoc", 9144, 4096, True, _CALTECH),
        Dataset("covtype", "covtype", 150000, 54),
        Dataset("covtype01", "", 150000, 54, False, _COVTYPE01),
        Dataset("mnist", "mnist", 60000, 784),
        Dataset("mnist50", "mnist50", 60000, 50, False, _MNIST50),
        Dataset("tiny10k*", "tiny10k", 10000, 3072, True, _TINY),
        Dataset("tinygist10k*", "tinygist10k", 10000, 384, True, _GIST),
        Dataset("usps", "usps", 7291, 256),
        Dataset("yale", "yale", 2414, 32256),
        Dataset("cnnvoc", "cnnvoc", 15662, 4096),
        Dataset("tiny10k", "tiny10k", 10000, 3072),
        Dataset("tinygist10k", "tinygist10k", 10000, 384),
    )
}

# The paper's own, which only their owners have, and why.
UNPUBLISHED = {
    "cnnvoc": "the authors did not publish their CNN features of PASCAL VOC 2007",
    "tiny10k": "the 80 million tiny images were withdrawn by their authors in 2020",
    "tinygist10k": "the 80 million tiny images and their GIST were withdrawn by their authors in 2020",
}

# What a dataset is made of, if not of the source with its own name.
MADE_OF = {
    "cnncaltech*": "cnncaltech",
    "covtype01": "covtype",
    "mnist50": "mnist",
    "tiny10k*": "cifar",
    "tinygist10k*": "cifar",
}


def load(name: str, *, progress: bool = True) -> NDArray[np.float32]:
    """A dataset by its name in DATASETS: (n, d), float32, C order.

    Looked for in the folders of K2MEANS_DATA, in ../shared/data next to the project, in the cache (K2MEANS_CACHE, else
    ~/.cache/k2means), then on the net. ``progress`` shows bars for what takes long.
    """
    if name not in DATASETS:
        raise DatasetError(f"there is no dataset {name!r}; there are {', '.join(DATASETS)}")
    data = DATASETS[name]
    x = np.ascontiguousarray(_make(name, progress), dtype=np.float32)
    if x.shape != (data.n, data.d):
        raise DatasetError(f"{name} must be {data.n}×{data.d}, what was found is {'×'.join(map(str, x.shape))}")
    return x


def describe() -> str:
    """A table of the datasets: name, n, d, and where each would come from."""
    rows = []
    for data in DATASETS.values():
        stem = MADE_OF.get(data.name, data.name)
        source = SOURCES.get(stem)
        where = find(stem) or (source.urls[0] if source and source.urls else "not published")
        rows.append(f"{data.name:<13}{data.n:>7}{data.d:>7}  {where}")
    return "\n".join(rows)


def _make(name: str, progress: bool) -> Array:
    if name in UNPUBLISHED:
        return _unpublished(name)
    if name == "tinygist10k*":
        return _tinygist(progress)
    x = _source(MADE_OF.get(name, name), progress)
    if name == "cnncaltech*":
        return x * np.float32(0.25)
    if name == "mnist50":
        return project(x)
    if name == "covtype01":
        x = x[: DATASETS[name].n].astype(np.float64)
        low, high = x.min(axis=0), x.max(axis=0)
        return np.asarray((x - low) / np.where(high > low, high - low, 1.0))
    return x[: DATASETS[name].n]  # covtype and tiny10k* are the first rows


def project(x: Array) -> NDArray[np.float32]:
    """x to 50 dimensions by a Gaussian matrix, standard normal / sqrt(50), so that squared distances keep their mean.

    The matrix comes from PCG64 with MNIST50_SEED and is rounded to multiples of 2^-32. Pixels are integers up to 255,
    so every sum of products is exact in float64: the result does not depend on BLAS, its threads or its order.
    """
    d = DATASETS["mnist50"].d
    normal = np.random.Generator(np.random.PCG64(MNIST50_SEED)).standard_normal((x.shape[1], d))
    matrix = np.round(normal / np.sqrt(d) * 2.0**32) / 2.0**32
    return np.asarray(x.astype(np.float64) @ matrix, dtype=np.float32)


def _tinygist(progress: bool) -> Array:
    path = cache() / f"tinygist10k-gist{gist.VERSION}.npy"
    if path.exists():
        return read(path)
    x = gist.gist(_source("cifar", progress)[: DATASETS["tinygist10k*"].n], progress=progress)
    with suppress(OSError):  # a cache that cannot be written only costs time
        save(path, x)
    return x


def _unpublished(name: str) -> Array:
    path, data = find(name), DATASETS[name]
    if path is not None:
        return read(path)
    stand_in = next(s.name for s in DATASETS.values() if s.stand_in and s.paper == name)
    raise DatasetError(
        f"{name} cannot be had: {UNPUBLISHED[name]}. If you have it, put {name}.npz (key X, {data.n}×{data.d}) or "
        f"{name}.npy into a folder and set K2MEANS_DATA to that folder. The stand-in is {stand_in!r}."
    )


def _source(stem: str, progress: bool) -> Array:
    path = find(stem)
    return fetch(stem, progress) if path is None else read(path, SOURCES[stem])


# Folders and files.


def cache() -> Path:
    """Where fetched and computed arrays are kept."""
    if folder := os.environ.get("K2MEANS_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "k2means"


def folders() -> list[Path]:
    given = [Path(f).expanduser() for f in os.environ.get("K2MEANS_DATA", "").split(os.pathsep) if f]
    for folder in given:
        if not folder.is_dir():
            raise DatasetError(f"K2MEANS_DATA names {folder}, which is not a folder")
    return [*given, SHARED, cache()]


def find(stem: str) -> Path | None:
    """The first file that has it: as an array, packed, or as published."""
    names = [f"{stem}.npy", f"{stem}.npz", f"{stem}_packed.npz"]
    if stem in SOURCES and SOURCES[stem].file:
        names.append(SOURCES[stem].file)
    return next((path for folder in folders() for name in names if (path := folder / name).is_file()), None)


# What readers of broken files raise; gzip's own error is an OSError.
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
)


def read(path: Path, source: Source | None = None) -> Array:
    """The array in a file, checked against its source."""
    try:
        if path.stat().st_size == 0:
            raise EOFError("the file is empty")
        if path.suffix in (".npy", ".npz"):
            x = read_numpy(path)
        else:
            assert source is not None
            assert source.parse is not None
            x = source.parse(path)
    except _BROKEN as error:
        raise DatasetError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    x = np.ascontiguousarray(x)
    if source is not None:
        check(path, x, source)
    return x


def read_numpy(path: Path) -> Array:
    with path.open("rb") as file:  # opened here: numpy leaves a broken one open
        content = np.load(file, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        return unpack(content["D"]) if "D" in content.files else np.asarray(content["X"])


def check(path: Path, x: Array, source: Source) -> None:
    if (x.shape, x.dtype) != (source.shape, np.dtype(source.dtype)):
        raise DatasetError(f"{path}: expected {source.dtype} {source.shape}, found {x.dtype} {x.shape}")
    found = hashlib.sha256(x.data).hexdigest()[:16]
    if found != source.digest:
        raise DatasetError(f"{path}: expected sha256 {source.digest}…, found {found}… (of the array's bytes)")


def save(path: Path, x: Array) -> None:
    """As .npy, under its name only when complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.save(file, x)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# The net.


def fetch(stem: str, progress: bool) -> Array:
    """From the first address that gives the right array, which is then kept in the cache."""
    source, folder = SOURCES[stem], cache()
    if not source.urls:
        raise DatasetError(
            f"{stem} is not published anywhere: put {stem}.npz into a folder and set K2MEANS_DATA to that folder. "
            f"Looked in {', '.join(map(str, folders()))}."
        )
    failed = []
    target = folder / source.file
    for url in source.urls:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            download(url, target, source.md5, progress)
            x = read(target, source)
            save(folder / f"{stem}.npy", x)
            return x
        except (OSError, HTTPException, DatasetError) as error:
            failed.append(f"\n  {url}: {error}")
        finally:
            with suppress(OSError):
                target.unlink()  # the array is kept instead; a wrong file is not kept at all
    raise DatasetError(
        f"{stem} could not be fetched:{''.join(failed)}\nIt is not in {', '.join(map(str, folders()))} either. "
        f"Download {source.urls[0]}, put it as {source.file} into a folder, and set K2MEANS_DATA to that folder."
    )


def download(url: str, target: Path, md5: str, progress: bool) -> None:
    """Bring url to target, going on from where an earlier try to the same host broke off."""
    part = target.with_name(f"{target.name}.{urlsplit(url).hostname}.part")
    if not any(transfer(url, part, progress) for _ in range(TRIES)):
        raise DatasetError(f"broke off {TRIES} times; {part} has the beginning, the next call goes on from there")
    if md5:
        found = hashlib.md5(part.read_bytes(), usedforsecurity=False).hexdigest()
        if found != md5:
            part.unlink()
            raise DatasetError(f"{target.name}: expected md5 {md5}, found {found}")
    part.replace(target)


def transfer(url: str, part: Path, progress: bool) -> bool:
    """One request, added to part. Is part complete now?"""
    answer, start = ask(url, part.stat().st_size if part.exists() else 0)
    length = answer.headers.get("Content-Length")
    total = None if length is None else start + int(length)
    name = part.name.split(".")[0]
    with (
        answer,
        part.open("ab" if start else "wb") as file,
        tqdm(desc=name, total=total, initial=start, unit="B", unit_scale=True, disable=not progress) as bar,
    ):
        try:
            while block := answer.read1(1 << 18):
                file.write(block)
                bar.update(len(block))
        except (HTTPException, ConnectionError, TimeoutError):
            return False
        return total is None or file.tell() == total


def ask(url: str, have: int) -> tuple[Any, int]:
    """The answer, and the byte it starts at: have, or 0 if the server will not go on from there."""
    headers = {"User-Agent": "k2means-experiments"}
    if have:
        try:
            answer = urlopen(Request(url, headers=headers | {"Range": f"bytes={have}-"}), timeout=TIMEOUT)
        except HTTPError as error:
            if error.code != 416:  # 416: there is nothing after what we have, so it may be another file
                raise
        else:
            if answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                return answer, have
            if answer.status == 200:
                return answer, 0
            answer.close()
    return urlopen(Request(url, headers=headers), timeout=TIMEOUT), 0
