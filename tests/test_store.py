"""A saved model comes back as it was, without pickle; nothing is written over, nothing half is left."""

import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problems import blobs

import k2means
from k2means import GDI, K2Means, PlusPlus, Random
from k2means.store import FORMAT, ModelError

STORED = Path(__file__).parent / "data" / "model-format-1.npz"
PLACES = ("model.npz", "model")


@pytest.fixture(scope="module")
def fitted():
    return K2Means(20, random_state=0, n_neighbors=7).fit(blobs(600, 5, 20, np.float32))


def same(a, b):
    assert a.get_params().keys() == b.get_params().keys()
    for name, value in a.get_params().items():
        np.testing.assert_equal(b.get_params()[name], value)
    for name in ("cluster_centers_", "labels_"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
        assert getattr(a, name).dtype == getattr(b, name).dtype
    for name in ("inertia_", "n_iter_", "trace_", "ops_", "n_features_in_"):
        assert getattr(a, name) == getattr(b, name)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", ["gdi", "random", GDI(3), PlusPlus(trials=2), Random(), "array"], ids=str)
def test_it_comes_back_as_it_was(tmp_path, init, dtype, place):
    x = blobs(400, 5, 12, dtype)
    model = K2Means(12, init=x[:12].tolist() if init == "array" else init, random_state=np.int64(4), tol=0).fit(x)
    k2means.save(model, tmp_path / place)
    back = k2means.load(tmp_path / place)
    if init == "array":
        assert (back.init == x[:12]).all()
        back.init = model.init
    same(model, back)
    assert (back.predict(x) == model.predict(x)).all()
    assert back.fit(x).labels_.tobytes() == model.labels_.tobytes()  # and it can be fitted again, to the same
    assert os.listdir(tmp_path) == [place]


def test_names_of_features_come_back(tmp_path):
    x = pd.DataFrame(blobs(300, 3, 5, np.float64), columns=["a", "b", "c"])
    model = K2Means(5, random_state=0).fit(x)
    k2means.save(model, tmp_path / "m.npz")
    back = k2means.load(tmp_path / "m.npz")
    assert list(back.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        back.predict(x.rename(columns={"a": "z"}))


def test_only_a_fitted_model_is_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        k2means.save(K2Means(3), tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "value"), [("random_state", np.random.RandomState(0)), ("init", lambda x, k, random_state: x[:k])]
)
def test_what_cannot_be_stored_is_named(tmp_path, fitted, name, value):
    model = K2Means(**{**fitted.get_params(), name: value}).fit(blobs(100, 5, 20, np.float32))
    with pytest.raises(ValueError, match=rf"{name}=.* cannot be stored in a file; set another with .*{name}="):
        k2means.save(model, tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_written_over_unless_asked(tmp_path, fitted, place):
    target = tmp_path / place
    k2means.save(fitted, target)
    other = K2Means(3, random_state=0).fit(blobs(50, 2, 3, np.float64))
    with pytest.raises(FileExistsError, match=place):
        k2means.save(other, target)
    same(k2means.load(target), fitted)
    k2means.save(other, target, overwrite=True)
    same(k2means.load(target), other)
    assert os.listdir(tmp_path) == [place]


def test_a_directory_of_other_things_is_never_replaced(tmp_path, fitted):
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter1.txt").write_text("a year of work")
    with pytest.raises(FileExistsError, match="other things"):
        k2means.save(fitted, mine, overwrite=True)
    assert (mine / "chapter1.txt").read_text() == "a year of work"
    assert os.listdir(tmp_path) == ["thesis"]


@pytest.mark.parametrize("place", PLACES)
def test_a_failed_write_leaves_what_was_there(tmp_path, fitted, place, monkeypatch):
    target = tmp_path / place
    k2means.save(fitted, target)
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        k2means.save(fitted, target, overwrite=True)
    monkeypatch.undo()
    same(k2means.load(target), fitted)
    assert os.listdir(tmp_path) == [place]


def test_there_is_no_directory_to_write_to(tmp_path, fitted):
    with pytest.raises(NotADirectoryError, match="there is no directory"):
        k2means.save(fitted, tmp_path / "not" / "m.npz")


# ---- what is no model --------------------------------------------------------------------------------------------


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model .*nothing"):
        k2means.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + bytes(50)])
def test_other_files_are_no_models(tmp_path, content):
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(ModelError, match="is not a model of k2means, or damaged"):
        k2means.load(tmp_path / "m.npz")


def test_other_archives_are_no_models(tmp_path):
    np.savez(tmp_path / "m.npz", X=np.eye(3))
    with pytest.raises(ModelError, match="is not a model"):
        k2means.load(tmp_path / "m.npz")
    with pytest.raises(ModelError, match="is not a model"):
        k2means.load(tmp_path)


def test_damage_is_detected(tmp_path, fitted):
    path = tmp_path / "m.npz"
    k2means.save(fitted, path)
    whole = path.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelError):
            k2means.load(path)
    at = whole.index(fitted.cluster_centers_.tobytes()) + 5  # a flipped bit of a center: the archive's checksum
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    with pytest.raises(ModelError, match="damaged"):
        k2means.load(path)


def rewritten(path, change):
    """The model with its description changed."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    described = json.loads(members["model.json"])
    change(described)
    members["model.json"] = json.dumps(described).encode()
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)


def test_a_newer_format_says_so(tmp_path, fitted):
    k2means.save(fitted, tmp_path / "m.npz")
    rewritten(tmp_path / "m.npz", lambda d: d.update(format=FORMAT + 5))
    with pytest.raises(ModelError, match=rf"format {FORMAT + 5}; this k2means reads formats up to {FORMAT}"):
        k2means.load(tmp_path / "m.npz")


def test_arrays_that_do_not_fit_are_refused(tmp_path, fitted):
    k2means.save(fitted, tmp_path / "m")
    np.save(tmp_path / "m" / "labels.npy", np.full(5, 99, np.int32))
    with pytest.raises(ModelError, match="labels are not indices of 20 centers"):
        k2means.load(tmp_path / "m")
    (tmp_path / "m" / "labels.npy").unlink()
    with pytest.raises(ModelError, match="has no labels"):
        k2means.load(tmp_path / "m")


def test_no_pickle_is_ever_read(tmp_path, fitted):
    k2means.save(fitted, tmp_path / "m")
    np.save(tmp_path / "m" / "centers.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ModelError, match=r"allow_pickle|Object arrays"):
        k2means.load(tmp_path / "m")


def test_a_model_of_the_first_format_still_loads(tmp_path):
    # written once, by the version that introduced the format; never rewrite it
    shutil.copy(STORED, tmp_path / "m.npz")
    model = k2means.load(tmp_path / "m.npz")
    x = np.arange(60, dtype=np.float64).reshape(20, 3)
    assert (model.predict(x) == model.labels_).all()
    assert model.get_params()["n_clusters"] == 4
    assert model.inertia_ == pytest.approx(1080.0)
