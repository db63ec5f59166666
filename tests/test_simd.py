"""Every variant of the kernels that this CPU runs gives the same result, to the last bit."""

import json
import os
import subprocess
import sys

import pytest
from subprocesses import run_script

from k2means import _core

SCRIPT = """
    import hashlib, json
    import numpy as np
    from problems import blobs, grid
    from k2means import AKM, GDI, K2, Elkan, Given, Lloyd, MiniBatch, PlusPlus, Sketched, Stop, _core, cluster

    def told(r):
        bits = r.labels.tobytes() + r.centers.tobytes()
        trace = [(t.energy, t.moved, t.shift, t.ops.additions) for t in r.trace]
        return [hashlib.sha256(bits).hexdigest(), r.energy, trace, [r.init_ops.total]]

    results = {}
    for dtype in (np.float32, np.float64):
        for d in (1, 3, 16, 37, 130):
            for data in (blobs(700, d, 30, dtype), grid(400, d, dtype), blobs(700, d, 30, dtype) + dtype(50)):
                k2 = K2(7), K2(7, bounds="hamerly"), Sketched(7), Sketched(lists=True)
                for method in (Lloyd(), Elkan(), *k2, AKM(7), MiniBatch(spacing=3)):
                    for init in (GDI(), GDI(exact=False, early=3), PlusPlus(), Given(data[:40])):
                        r = cluster(data, 40, method=method, init=init, stop=Stop(max_iter=6), n_threads=1)
                        results[f"{len(results)} {dtype.__name__} {d} {method} {init}"] = told(r)
    many = blobs(20000, 5, 30, np.float32)  # GDI cuts them by a tree of planes
    r = cluster(many, 40, method=Sketched(7), init=GDI(exact=False, early=3), stop=Stop(max_iter=1), n_threads=1)
    results["many rows"] = told(r)
    wide = blobs(3000, 5, 30, np.float64) @ np.random.default_rng(0).normal(size=(5, 1100))
    wide = (wide + np.random.default_rng(1).normal(size=wide.shape)).astype(np.float32)  # looked at by sketches
    results["wide rows"] = told(cluster(wide, 300, method=Sketched(), stop=Stop(max_iter=8), n_threads=1))
    sketches = _core.sketch(wide, _core.survey(wide, None, 1), 0, 1).rows()
    results["sketches"] = hashlib.sha256(sketches.tobytes()).hexdigest()
    for dtype in (np.float32, np.float64):
        for k in (40, 4200):  # all centers are looked at, or neighborhoods
            x = blobs(200 * 40 if k == 40 else 4800, 9, 30, dtype)
            start = np.random.default_rng(0).integers(0, k, len(x)).astype(np.int32)
            labels, _ = _core.assign_capped(x, None, x[:k].copy(), start, -(-len(x) // k), 1e-3, 1)
            results[f"capped {dtype.__name__} {k}"] = hashlib.sha256(labels.tobytes()).hexdigest()
    print(json.dumps([_core.simd, results]))
"""


@pytest.fixture(scope="module")
def tests_on_path(request):
    here = str(request.path.parent)
    return os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="module")
def default(tests_on_path):
    return json.loads(run_script(SCRIPT, PYTHONPATH=tests_on_path, PYTHONWARNINGS="ignore", K2MEANS_SIMD=""))


def runs(variant):
    """Whether the import works; on a CPU without the variant it must fail in words, not crash."""
    done = subprocess.run(
        [sys.executable, "-c", "import k2means"],
        env={**os.environ, "K2MEANS_SIMD": variant},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        assert f"K2MEANS_SIMD={variant}" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.parametrize("variant", ["v2", "v3", "v4", "base"])
def test_every_variant_gives_the_same_bits(variant, default, tests_on_path):
    if not runs(variant):
        pytest.skip(f"this CPU does not run {variant}")
    name, results = json.loads(
        run_script(SCRIPT, PYTHONPATH=tests_on_path, PYTHONWARNINGS="ignore", K2MEANS_SIMD=variant)
    )
    assert name == variant
    for key, want in default[1].items():
        assert results[key] == want, key


def test_the_best_variant_is_the_default(default):
    name = default[0]
    assert name == _core.simd or "K2MEANS_SIMD" in os.environ
    better = ["v2", "v3", "v4"]
    if name in better:
        assert not any(runs(v) for v in better[better.index(name) + 1 :])


def test_an_unknown_variant_is_refused_by_name():
    assert not runs("v9")
