"""A fitted `K2Means` on disk: `save` and `load`. Arrays and JSON, no pickle; one `.npz` file, or a directory."""

from __future__ import annotations

import json
import os
import platform
import shutil
import zipfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .estimator import K2Means
from .files import check_new, replace_file, sync_directory, temporary
from .initialize import GDI, PlusPlus, Random
from .loop import Ops, Record

FORMAT = 1
DESCRIPTION = "model.json"
STARTS = {"GDI": GDI, "PlusPlus": PlusPlus, "Random": Random}


class ModelError(ValueError):
    """A file that is no model, or not one this version can read; the message names it and says why."""


PER_CLUSTER = ("cluster_sizes", "cluster_energies", "medoid_indices")


def save(
    model: K2Means, path: str | os.PathLike[str], *, overwrite: bool = False, about: dict[str, Any] | None = None
) -> None:
    """Write a fitted model.

    Parameters
    ----------
    model : K2Means
        Fitted.
    path : path
        With the suffix `.npz` one file, else a directory with `model.json` and an `.npy` file for each array. It is
        written under another name, synced and renamed: it is there whole, or not at all.
    overwrite : bool
        Whether a model that is there may be replaced.
    about : dict or None
        More to write down beside it: whatever JSON takes.
    """
    check_is_fitted(model)
    target = Path(path)
    check_target(target, overwrite=overwrite)
    described, arrays = describe(model)
    described["about"] = about or {}
    if target.suffix == ".npz":
        with replace_file(target) as file:
            write_npz(file, described, arrays)
    else:
        write_directory(target, described, arrays)


def load(path: str | os.PathLike[str]) -> K2Means:
    """The model that `save` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    model : K2Means
        Fitted, with all that `fit` gave it.
    """
    described, arrays = read(Path(path))
    try:
        return rebuild(described, arrays)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{str(path)!r} is damaged: its {DESCRIPTION} lacks or misnames something: {error}") from error


def rebuild(described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> K2Means:
    parameters = described["parameters"]
    start = parameters["init"]
    if isinstance(start, dict):
        parameters["init"] = arrays["init"] if start["kind"] == "array" else STARTS[start["kind"]](**start["options"])
    model = K2Means(**parameters)
    model.cluster_centers_, model.labels_ = arrays["centers"], arrays["labels"]
    model.inertia_, model.n_iter_ = described["inertia"], described["n_iter"]
    model.ops_ = Ops(**described["ops"])
    certified = described.get("certified")
    model.certified_ = float("nan") if certified is None else certified
    for name in PER_CLUSTER:
        if name in arrays:
            setattr(model, f"{name}_", arrays[name])
    model.trace_ = tuple(map(Record.restored, described["trace"]))
    model.n_features_in_ = arrays["centers"].shape[1]
    if described["feature_names"] is not None:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    return model


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether it is meant to be a model; it may still be damaged, or of a newer format."""
    if Path(path).is_dir():
        return (Path(path) / DESCRIPTION).is_file()
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        return DESCRIPTION in archive.namelist()
    return False


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What is written down about a model, beside its arrays."""
    return read(Path(path), only_description=True)[0]


# ---- what a model is ---------------------------------------------------------------------------------------------


def describe(model: K2Means) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    from . import __version__

    arrays: dict[str, NDArray[Any]] = {"centers": model.cluster_centers_, "labels": model.labels_}
    arrays |= {name: getattr(model, f"{name}_") for name in PER_CLUSTER if hasattr(model, f"{name}_")}
    parameters = model.get_params(deep=False)
    parameters["init"] = storable_init(model.init, arrays)
    for name, value in parameters.items():
        if isinstance(value, np.generic):
            parameters[name] = value.item()
        elif not isinstance(value, (str, int, float, bool, dict, type(None))):
            raise ValueError(
                f"{name}={value!r} cannot be stored in a file; set another with model.set_params({name}=…), "
                "the fitted attributes stay"
            )
    names = getattr(model, "feature_names_in_", None)
    described = {
        "format": FORMAT,
        "kind": "k2means.K2Means",
        "versions": {"k2means": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "parameters": parameters,
        "inertia": float(model.inertia_),
        "n_iter": int(model.n_iter_),
        "ops": asdict(model.ops_),
        "certified": None if np.isnan(model.certified_) else float(model.certified_),
        "trace": [asdict(r) for r in model.trace_],
        "feature_names": None if names is None else [str(n) for n in names],
    }
    return described, arrays


def storable_init(init: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A name as it is, GDI(...) and its like by their options, an array beside the others."""
    if isinstance(init, K2Means):
        init = init.cluster_centers_
    if isinstance(init, str):
        return init
    if isinstance(init, (GDI, PlusPlus, Random)):
        return {"kind": type(init).__name__, "options": asdict(init)}
    if callable(init) or hasattr(init, "centers"):
        return init
    arrays["init"] = np.asarray(init)
    return {"kind": "array"}


# ---- files -------------------------------------------------------------------------------------------------------


def write_npz(file: BinaryIO, described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """What `np.load` reads, and the description as a member beside the arrays. Stored, so that it is quick."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(DESCRIPTION, json.dumps(described, indent=1))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def write_directory(target: Path, described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    partial, aside = temporary(target), temporary(target, "old")
    try:
        partial.mkdir()
        for name, array in arrays.items():
            with replace_file(partial / f"{name}.npy") as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        with replace_file(partial / DESCRIPTION) as file:
            file.write(json.dumps(described, indent=1).encode())
        if target.exists() or target.is_symlink():
            target.rename(aside)
        partial.rename(target)
        sync_directory(target.parent)
    except BaseException:
        if os.path.lexists(aside) and not os.path.lexists(target):  # between the two renames: as it was
            aside.rename(target)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse before any work what `save` could not write, or what is no model that a model may replace."""
    check_new(target, overwrite=overwrite)
    if target.suffix == ".npz":
        if target.is_dir():
            raise FileExistsError(f"{str(target)!r} is a directory; a model with this suffix is one file")
    elif target.exists() and not target.is_dir():
        raise FileExistsError(f"{str(target)!r} is a file; without the suffix .npz a model is a directory")
    elif target.is_dir() and any(target.iterdir()) and not is_model(target):
        raise FileExistsError(f"{str(target)!r} is a directory with other things than a model; it is not written over")


def read(path: Path, *, only_description: bool = False) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if not path.exists():
        raise FileNotFoundError(f"there is no model {str(path)!r}")
    try:
        described, arrays = (read_directory if path.is_dir() else read_npz)(path, only_description)
        if not only_description:
            check_arrays(path, described, arrays)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{str(path)!r} is not a model of k2means, or damaged: {error}") from error
    return described, arrays


def read_directory(path: Path, only_description: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    described = check_description(path, json.loads((path / DESCRIPTION).read_bytes()))
    files = [] if only_description else sorted(path.glob("*.npy"))
    return described, {f.stem: np.load(f, allow_pickle=False) for f in files}


def read_npz(path: Path, only_description: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(path) as archive:
        described = check_description(path, json.loads(archive.read(DESCRIPTION)))
        arrays = {}
        for name in [] if only_description else archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:  # the archive's checksums are verified on the way
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    return described, arrays


def check_description(path: Path, described: Any) -> dict[str, Any]:
    if not isinstance(described, dict) or described.get("kind") != "k2means.K2Means":
        raise ModelError(f"{str(path)!r} is not a model of k2means: its {DESCRIPTION} describes something else")
    if not isinstance(described.get("format"), int) or described["format"] > FORMAT:
        raise ModelError(
            f"{str(path)!r} has format {described.get('format')}; this k2means reads formats up to {FORMAT}: update it"
        )
    return described


def check_arrays(path: Path, described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    centers, labels = arrays.get("centers"), arrays.get("labels")
    if centers is None or labels is None:
        raise ModelError(f"{str(path)!r} is damaged: it has no {'centers' if centers is None else 'labels'}")
    if centers.ndim != 2 or centers.dtype.kind != "f" or len(centers) != described["parameters"]["n_clusters"]:
        raise ModelError(f"{str(path)!r} is damaged: centers have shape {centers.shape}, dtype {centers.dtype}")
    if (
        labels.ndim != 1
        or labels.dtype != np.int32
        or (len(labels) and not 0 <= labels.min() <= labels.max() < len(centers))
    ):
        raise ModelError(f"{str(path)!r} is damaged: labels are not indices of {len(centers)} centers")
