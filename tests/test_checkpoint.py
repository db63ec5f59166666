"""A run that is cut off goes on with the same bits; a checkpoint that is not whole, or not its own, is named."""

import errno
import os
import re
import struct
import subprocess
import textwrap
import time

import numpy as np
import pytest
from problems import blobs, unequal
from subprocesses import start_python

from k2means import GDI, Given, K2Means, PlusPlus, Sketched, checkpoint, cluster
from k2means.checkpoint import CheckpointError, Every, Keeper

ALGORITHMS = ("auto", "k2", "lloyd", "elkan")


def bits(model):
    trace = [(r.iteration, r.energy, r.moved, r.shift) for r in model.trace_]
    return model.labels_.tobytes(), model.cluster_centers_.tobytes(), model.inertia_, model.n_iter_, trace


def fit_until(model, x, directory, iteration, weights=None):
    """Fit with a checkpoint after every iteration, and lose the process after `iteration`."""

    class Lost(BaseException):
        pass

    def lose(trace):
        if len(trace) == iteration:
            raise Lost

    keeper = Keeper(directory, Every(iterations=1))
    kept = keeper.save
    keeper.save = lambda engine, start, trace: (kept(engine, start, trace), lose(trace))
    with pytest.raises(Lost):
        model._fit(x, weights, keeper=keeper)


def resumed(model, x, directory, weights=None):
    keeper = Keeper(directory, Every(iterations=1000), resume=True)
    model._fit(x, weights, keeper=keeper)
    assert keeper.saved is not None
    return model


@pytest.mark.parametrize("init", ["gdi", "k-means++", "random"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_run_cut_off_after_any_iteration_ends_with_the_same_bits(tmp_path, algorithm, init, dtype):
    x = blobs(900, 6, 30, dtype)
    model = K2Means(30, n_neighbors=8, init=init, algorithm=algorithm, random_state=3, n_threads=2)
    whole = bits(model.fit(x))
    last = model.n_iter_
    for iteration in {min(i, last) for i in (0, 1, 2, 7, last - 1, last)}:
        directory = tmp_path / str(iteration)
        directory.mkdir()
        fit_until(model, x, directory, iteration)
        assert bits(resumed(model, x, directory)) == whole, iteration


@pytest.mark.parametrize("kind", ["weights", "wild weights", "zero weights", "far from the origin", "tiny values"])
def test_it_does_so_for_sums_in_double_and_in_other_coordinates(tmp_path, kind):
    x, weights = blobs(700, 5, 25, np.float32), None
    rng = np.random.default_rng(0)
    if kind == "far from the origin":
        x += np.float32(1000)
    elif kind == "tiny values":
        x *= np.float32(1e-30)
    elif kind == "zero weights":
        weights = rng.integers(0, 3, len(x)).astype(float)
    else:
        weights = 10.0 ** rng.uniform(*((-1, 1) if kind == "weights" else (-6, 6)), len(x))
    model = K2Means(25, n_neighbors=6, random_state=1)
    whole = bits(model.fit(x, sample_weight=weights))
    fit_until(model, x, tmp_path, min(3, model.n_iter_), weights)
    assert bits(resumed(model, x, tmp_path, weights)) == whole


def test_threads_may_change_between_the_parts(tmp_path):
    x = blobs(3000, 6, 40, np.float32)
    whole = bits(K2Means(40, random_state=0, n_threads=1).fit(x))
    fit_until(K2Means(40, random_state=0, n_threads=3), x, tmp_path, 4)
    assert bits(resumed(K2Means(40, random_state=0, n_threads=2), x, tmp_path)) == whole


def test_a_cap_comes_after_the_iterations_and_may_change_between_the_parts(tmp_path):
    x = unequal()
    model = K2Means(60, max_cluster_size=80, random_state=0)
    whole = bits(model.fit(x))
    assert model.cluster_sizes_.max() == 80
    for cap in (80, 75, None):
        directory = tmp_path / str(cap)
        directory.mkdir()
        fit_until(K2Means(60, max_cluster_size=cap, random_state=0), x, directory, 3)
        assert bits(resumed(model, x, directory)) == whole, cap


def test_refreshed_neighbors_are_part_of_the_state(tmp_path):
    x = blobs(9000, 3, 300, np.float32)  # above 4096 clusters, the next neighbors depend on the last
    model = K2Means(4200, n_neighbors=8, init="random", random_state=0, max_iter=9, tol=0, polish=None)
    whole = bits(model.fit(x))
    for iteration in (1, 3, 6):
        directory = tmp_path / str(iteration)
        directory.mkdir()
        fit_until(model, x, directory, iteration)
        assert bits(resumed(model, x, directory)) == whole, iteration


@pytest.mark.parametrize("d", [4, 60])
def test_lists_of_centers_are_part_of_the_state(tmp_path, d):
    x = unequal(d)
    model = K2Means(150, init="random", random_state=0, tol=0, max_iter=40)
    whole = bits(model.fit(x))
    last = model.n_iter_
    assert last > 8
    for iteration in {*range(1, 9), last - 1, last}:
        directory = tmp_path / str(iteration)
        directory.mkdir()
        fit_until(model, x, directory, iteration)
        assert bits(resumed(model, x, directory)) == whole, iteration


def test_swaps_that_are_next_or_over_are_part_of_the_state(tmp_path):
    x = unequal()
    model = K2Means(60, init=x[:60], random_state=0)
    whole = bits(model.fit(x))
    assert model.inertia_ < 0.98 * cluster(x, 60, init=Given(x[:60]), method=Sketched(swaps=False)).energy
    assert model.n_iter_ > 12
    for iteration in range(1, 13):
        directory = tmp_path / str(iteration)
        directory.mkdir()
        fit_until(model, x, directory, iteration)
        assert bits(resumed(model, x, directory)) == whole, iteration


def test_more_iterations_may_be_asked_for_when_it_goes_on(tmp_path):
    x = blobs(2000, 6, 40, np.float32)
    fit_until(K2Means(40, init="random", random_state=0, max_iter=5, tol=0), x, tmp_path, 5)
    model = resumed(K2Means(40, init="random", random_state=0, max_iter=60, tol=0), x, tmp_path)
    assert bits(model) == bits(K2Means(40, init="random", random_state=0, max_iter=60, tol=0).fit(x))


# ---- what is not a usable checkpoint -----------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    x = blobs(400, 4, 12, np.float64)
    fit_until(K2Means(12, random_state=0), x, tmp_path, 2)
    return x, tmp_path, tmp_path / checkpoint.NAME


def refused(x, directory, words, **parameters):
    with pytest.raises(CheckpointError, match=words) as error:
        resumed(K2Means(**{"n_clusters": 12, "random_state": 0, **parameters}), x, directory)
    assert str(directory / checkpoint.NAME) in str(error.value)


def test_any_cut_is_detected(saved):
    x, directory, path = saved
    whole = path.read_bytes()
    for length in {0, 5, 8, 30, checkpoint.HEADER.size, len(whole) // 2, len(whole) - 1}:
        path.write_bytes(whole[:length])
        refused(x, directory, "cut off")
    path.write_bytes(whole + b"x")
    refused(x, directory, "grown")


def test_any_flipped_bit_is_detected(saved):
    x, directory, path = saved
    whole = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    header = [(at, bit) for at in range(checkpoint.HEADER.size) for bit in range(8)]
    for at, bit in header + [(int(rng.integers(len(whole))), int(rng.integers(8))) for _ in range(60)]:
        damaged = whole.copy()
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        refused(x, directory, "damaged|not a checkpoint|format|cut off or grown")


def test_a_newer_format_is_named(saved):
    x, directory, path = saved
    whole = bytearray(path.read_bytes())
    struct.pack_into("<I", whole, 8, 7)
    path.write_bytes(whole)
    refused(x, directory, "format 7; this k2means reads formats up to 2")


def test_another_file_is_not_a_checkpoint(saved):
    x, directory, path = saved
    path.write_bytes(b"PK\x03\x04" + bytes(300))
    refused(x, directory, "is not a checkpoint of k2means")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_clusters": 13}, "k was 12, is 13"),
        ({"random_state": 1}, "seed was .*, is "),
        ({"n_neighbors": 5}, "method was Sketched.*, is Sketched"),
        ({"algorithm": "lloyd"}, r"method was Sketched.*, is Lloyd\(\)"),
        ({"init": "random"}, "init was gdi, is random"),
    ],
)
def test_a_checkpoint_of_other_settings_is_foreign(saved, change, words):
    x, directory, _ = saved
    refused(x, directory, f"of another run: {words}", **change)


def test_a_checkpoint_of_other_data_is_foreign(saved):
    x, directory, _ = saved
    changed = x.copy()
    changed[123, 1] += 1e-9
    refused(changed, directory, "of another run: the data are not the same")
    refused(x[::-1].copy(), directory, "the data are not the same")
    refused(x[:-1], directory, "shape was")
    refused(x.astype(np.float32), directory, "dtype was float64, is float32")


# ---- saving ------------------------------------------------------------------------------------------------------


def test_it_saves_as_often_as_asked_and_leaves_no_other_file(tmp_path, monkeypatch):
    x, written = blobs(800, 5, 30, np.float32), []
    monkeypatch.setattr(checkpoint, "write", lambda path, identity, state, trace: written.append(len(trace)))
    model = K2Means(30, init="random", random_state=0, tol=0, max_iter=9)  # as many as it has
    model._fit(x, None, keeper=Keeper(tmp_path, Every(iterations=4)))
    assert written == [0, 4, 8, 9]  # and the end, which is not convergence
    written.clear()
    model._fit(x, None, keeper=Keeper(tmp_path, Every(seconds=1e-9)))
    assert written == list(range(10))
    written.clear()
    model._fit(x, None, keeper=Keeper(tmp_path, Every(iterations=100), ending=lambda: True))
    assert written[:10] == list(range(10))
    monkeypatch.undo()
    model._fit(x, None, keeper=Keeper(tmp_path, Every(iterations=1)))
    assert os.listdir(tmp_path) == [checkpoint.NAME]


@pytest.mark.filterwarnings("ignore:no checkpoint")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS])
def test_a_full_disk_warns_and_the_fit_goes_on(tmp_path, monkeypatch, code):
    x = blobs(500, 5, 20, np.float32)
    before = b"what was there"
    (tmp_path / checkpoint.NAME).write_bytes(before)

    def full(*arguments):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    model = K2Means(20, random_state=0)
    with pytest.warns(RuntimeWarning, match=f"no checkpoint at iteration 0: .*{os.strerror(code)}"):
        model._fit(x, None, keeper=Keeper(tmp_path, Every(iterations=3)))
    monkeypatch.undo()
    assert bits(model) == bits(K2Means(20, random_state=0).fit(x))
    assert (tmp_path / checkpoint.NAME).read_bytes() == before
    assert os.listdir(tmp_path) == [checkpoint.NAME]


LIMITED = """
    import resource, signal, sys, warnings
    import numpy as np
    from problems import blobs
    from k2means import K2Means
    from k2means.checkpoint import Every, Keeper
    from pathlib import Path
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    x = blobs(500, 5, 20, np.float32)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        K2Means(20, random_state=0)._fit(x, None, keeper=Keeper(Path(sys.argv[1]), Every(iterations=1)))
    print(len([w for w in told if "no checkpoint" in str(w.message)]) > 0, list(Path(sys.argv[1]).iterdir()))
"""


def run_python(script, *arguments):
    return start_python("-c", textwrap.dedent(script), *arguments, stdout=subprocess.PIPE)


def test_a_limit_on_the_size_of_files_is_survived(tmp_path):
    assert run_python(LIMITED, tmp_path).communicate(timeout=120)[0].strip() == "True []"


SLOW = """
    import sys, time
    from pathlib import Path
    import numpy as np
    from problems import blobs
    from k2means import K2Means
    from k2means.checkpoint import Every, Keeper
    x = blobs(4000, 8, 60, np.float32)
    model = K2Means(60, n_neighbors=10, random_state=5, tol=0, n_threads=1)
    print("begin", flush=True)
    keeper = Keeper(Path(sys.argv[1]), Every(iterations=1), resume=True)
    model._fit(x, None, keeper=keeper, on_step=lambda record: time.sleep(0.005))
"""


def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path):
    x = blobs(4000, 8, 60, np.float32)
    model = K2Means(60, n_neighbors=10, random_state=5, tol=0)
    whole = bits(model.fit(x))
    rng, kills = np.random.default_rng(1), 0
    for _ in range(4):
        process = run_python(SLOW, tmp_path)
        assert process.stdout.readline() == "begin\n"
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        process.communicate()
        kills += process.returncode == -9
        for name in os.listdir(tmp_path):  # a kill may leave a part, never a broken checkpoint
            assert re.fullmatch(rf"{checkpoint.NAME}|\.{checkpoint.NAME}\.\w+\.part", name)
    assert kills > 0
    model._fit(x, None, keeper=Keeper(tmp_path, Every(iterations=1), resume=True))
    assert bits(model) == whole


def test_starts_of_this_package_are_part_of_the_identity(tmp_path):
    x = blobs(400, 4, 12, np.float64)
    fit_until(K2Means(12, init=GDI(3), random_state=0), x, tmp_path, 2)
    refused(x, tmp_path, r"init was GDI\(iterations=3, exact=True, early=0\), is PlusPlus", init=PlusPlus())
