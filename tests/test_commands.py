"""fit, predict, inspect, convert, report and compare: data on stdout, words on stderr, exit codes, nothing lost."""

import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems import blobs
from subprocesses import start_python

import k2means
from k2means import K2Means, cli, demo
from k2means.checkpoint import NAME


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory of its own with 600 rows of 5 in vectors.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("vectors.npy", blobs(600, 5, 20, np.float32))
    return tmp_path


def rows():
    return np.load("vectors.npy")


def run(capsys, *words):
    """(exit code, stdout, stderr) of a command."""
    code = cli.main([str(w) for w in words])
    return (code, *capsys.readouterr())


# ---- fit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["m.npz", "model"])
def test_fit_writes_exactly_the_model_that_python_would(here, capsys, out):
    code, told, words = run(capsys, "fit", "vectors.npy", "-k", 20, "-o", out, "--seed", 3, "--neighbors", 7)
    assert (code, told) == (0, f"{out}\n")
    assert "600 rows of 5" in words
    assert "energy" in words
    model, want = k2means.load(out), K2Means(20, n_neighbors=7, random_state=3).fit(rows())
    assert model.labels_.tobytes() == want.labels_.tobytes()
    assert model.cluster_centers_.tobytes() == want.cluster_centers_.tobytes()
    assert model.inertia_ == want.inertia_
    assert sorted(os.listdir()) == sorted([out, "vectors.npy"])


def test_fit_without_a_name_takes_that_of_the_file(here, capsys):
    assert run(capsys, "fit", "vectors.npy", "-k", 5)[:2] == (0, "vectors.k2means.npz\n")


def test_json_is_all_there_is_on_stdout(here, capsys):
    code, out, words = run(capsys, "fit", "vectors.npy", "-k", 12, "--json", "--quiet", "-o", "m.npz")
    told = json.loads(out)
    assert (code, words) == (0, "")
    assert {"model": "m.npz", "n": 600, "d": 5, "k": 12, "interrupted": False}.items() <= told.items()
    assert told["energy"] == k2means.load("m.npz").inertia_
    assert {"read", "seed", "iterate", "polish", "write"} <= told["phases"].keys()


def test_a_terminal_gets_a_bar_for_every_phase(here):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = ("-m", "k2means.cli", "fit", "vectors.npy", "-k", 20, "-o", "m.npz")
    with start_python(*words, stdout=subprocess.PIPE, stderr=theirs) as run:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        out = run.communicate(timeout=60)[0]
    os.close(ours)
    assert (run.returncode, out) == (0, "m.npz\n")
    for phase in ("read", "look", "seed", "iterate", "polish", "write"):
        assert f"{phase:8}:".encode() in shown, phase
    assert b"energy" in shown


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--init", "k-means++"),
        ("--algorithm", "lloyd"),
        ("--metric", "cosine"),
        ("--polish", "certify"),
        ("--max-cluster-size", 51),
    ],
)
def test_options_reach_the_fit(here, capsys, option, value):
    run(capsys, "fit", "vectors.npy", "-k", 12, "-o", "m.npz", option, value, "--max-iter", 3, "--tol", 0)
    name = option.removeprefix("--").replace("-", "_")
    want = K2Means(12, **{name: value}, max_iter=3, tol=0, random_state=0).fit(rows())
    assert k2means.load("m.npz").labels_.tobytes() == want.labels_.tobytes()
    assert k2means.load("m.npz").n_iter_ == want.n_iter_
    np.testing.assert_equal(k2means.load("m.npz").certified_, want.certified_)


def test_a_report_by_cosine_is_of_unit_rows(here, capsys, monkeypatch):
    pages = []
    monkeypatch.setattr("k2means.page.write_page", lambda path, summary, **_: pages.append(summary))
    words = ("--metric", "cosine", "--polish", "none", "--report", "--json")
    code, out, _ = run(capsys, "fit", "vectors.npy", "-k", 12, "-o", "m.npz", *words)
    assert (code, json.loads(out)["certified"]) == (0, None)
    assert sum(pages[0].energies) == pytest.approx(json.loads(out)["energy"], rel=1e-5)


def test_a_fit_may_start_from_a_model_or_from_centers(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 12, "-o", "m.npz", "--max-iter", 2, "--init", "random")
    np.save("centers.npy", k2means.load("m.npz").cluster_centers_)
    for start in ("m.npz", "centers.npy"):
        assert run(capsys, "fit", "vectors.npy", "-k", 12, "-o", f"from-{start}.npz", "--init", start)[0] == 0
    a, b = (k2means.load(f"from-{start}.npz") for start in ("m.npz", "centers.npy"))
    assert a.labels_.tobytes() == b.labels_.tobytes()
    assert a.inertia_ < k2means.load("m.npz").inertia_


def test_rows_columns_and_norms_are_chosen(here, capsys):
    words = ("--rows", "100:500", "--columns", "1:4", "--normalize")
    assert run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m.npz", *words)[0] == 0
    model = k2means.load("m.npz")
    assert (len(model.labels_), model.n_features_in_) == (400, 3)
    assert np.abs(model.cluster_centers_).max() <= 1


def test_no_time_left_is_one_iteration(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 12, "-o", "m.npz", "--max-time", 1e-9, "--tol", 0)
    assert k2means.load("m.npz").n_iter_ == 1


# ---- what goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["fit", "nothing.npy", "-k", 3], 2, "nothing.npy"),
        (["fit", "vectors.npy"], 2, "-k"),
        (["fit", "vectors.npy", "-k", 0], 2, "-k"),
        (["fit", "vectors.npy", "-k", 601], 3, "n_samples=600 should be >= n_clusters=601"),
        (["fit", "vectors.npy", "-k", 3, "--neighbors", "many"], 2, "neither 'auto' nor an integer"),
        (["fit", "vectors.npy", "-k", 3, "--init", "best"], 2, "neither one of gdi"),
        (["fit", "vectors.npy", "-k", 3, "--every", "soon", "--checkpoint", "c"], 2, "neither a number of iterations"),
        (
            ["fit", "vectors.npy", "-k", 3, "--metric", "cosine", "--algorithm", "k2"],
            2,
            "--metric, --polish and --max-cluster-size are for",
        ),
        (["fit", "vectors.npy", "-k", 3, "--max-cluster-size", 199], 3, "it must be at least 200"),
        (["fit", "vectors.npy", "-k", 3, "--max-cluster-size", 0], 2, "--max-cluster-size"),
        (["fit", "vectors.npy", "-k", 3, "--resume"], 2, "--resume needs --checkpoint"),
        (["fit", "vectors.npy", "-k", 3, "-o", "not/there.npz"], 5, "there is no directory 'not'"),
        (["fit", "vectors.npy", "-k", 3, "--checkpoint", "none", "--resume"], 6, "no directory 'none'"),
        (["fit", "vectors.npy", "-k", 3, "-o", "vectors.npy", "--overwrite"], 5, "is a file"),
        (["fit", "vectors.npy", "-k", 3, "-o", ".", "--overwrite"], 5, "other things than a model"),
        (["fit", "vectors.npy", "-k", 3, "-o", "c", "--checkpoint", "c"], 5, "cannot be the model and"),
        (["fit", "vectors.npy", "-k", 3, "--names", "broken.npy", "--report"], 3, "broken.npy"),
        (["fit", "broken.npy", "-k", 3], 3, "broken.npy"),
        (["fit", "nan.npy", "-k", 3], 3, "NaN at row 7, column 2"),
        (["fit", "vectors.npy", "-k", 3, "--rows", "a:b"], 3, "rows"),
        (["predict", "vectors.npy", "vectors.npy"], 3, "not a model"),
        (["inspect", "broken.npy"], 3, "broken.npy"),
        (["convert", "vectors.npy", "vectors.xyz"], 3, "xyz"),
        (["convert", "vectors.npy", "not/there.npy"], 5, "there is no directory 'not'"),
    ],
)
def test_errors_are_one_line_and_a_code(here, capsys, words, code, message):
    Path("broken.npy").write_bytes(b"\x93NUMPY nonsense")
    bad = rows()
    bad[7, 2] = np.nan
    np.save("nan.npy", bad)
    before = sorted(os.listdir())
    got, out, told = run(capsys, *words)
    assert (got, out) == (code, ""), told
    assert message in told
    assert "Traceback" not in told
    assert sorted(os.listdir()) == before


def test_nothing_is_written_over_and_no_work_is_done_for_it(here, capsys, monkeypatch):
    for name in ("m.npz", "m2.npz.html", "labels.npy"):
        Path(name).write_text("mine")
    run(capsys, "fit", "vectors.npy", "-k", 4, "-o", "good.npz")
    with monkeypatch.context() as patch:
        patch.setattr(K2Means, "_fit", lambda *_, **__: pytest.fail("work was done"))
        for words in (
            ["fit", "vectors.npy", "-k", 4, "-o", "m.npz"],
            ["fit", "vectors.npy", "-k", 4, "-o", "m2.npz", "--report"],
            ["predict", "good.npz", "vectors.npy", "-o", "labels.npy"],
            ["convert", "vectors.npy", "labels.npy"],
        ):
            code, _, told = run(capsys, *words)
            assert code == 5
            assert "exists" in told
    assert all(Path(n).read_text() == "mine" for n in ("m.npz", "m2.npz.html", "labels.npy"))
    assert run(capsys, "fit", "vectors.npy", "-k", 4, "-o", "m.npz", "--overwrite")[0] == 0
    assert len(k2means.load("m.npz").cluster_centers_) == 4


def test_what_does_not_fit_in_memory_is_refused_with_advice(here, capsys, monkeypatch):
    monkeypatch.setattr(k2means.memory, "machine_memory", lambda: 1000)
    code, _, told = run(capsys, "fit", "vectors.npy", "-k", 4)
    assert code == 4
    assert "--force" in told
    assert os.listdir() == ["vectors.npy"]
    assert run(capsys, "fit", "vectors.npy", "-k", 4, "--force")[0] == 0


# ---- checkpoints and interruption --------------------------------------------------------------------------------


def test_a_checkpoint_is_removed_when_the_model_is_written(here, capsys):
    assert run(capsys, "fit", "vectors.npy", "-k", 20, "-o", "m.npz", "--checkpoint", "c", "--every", 1)[0] == 0
    assert os.listdir("c") == []


def test_a_checkpoint_that_is_there_is_not_written_over(here, capsys):
    Path("c").mkdir()
    Path("c", NAME).write_text("of yesterday")
    code, _, told = run(capsys, "fit", "vectors.npy", "-k", 20, "--checkpoint", "c")
    assert code == 5
    assert "--resume goes on from it" in told
    code, _, told = run(capsys, "fit", "vectors.npy", "-k", 20, "--checkpoint", "c", "--resume")
    assert code == 6
    assert "not a checkpoint" in told
    assert Path("c", NAME).read_text() == "of yesterday"


def start(*words, slow=0.0):
    """The command in a process of its own, `slow` seconds longer for each iteration."""
    script = f"""
import sys, time
from k2means import loop, cli
reached = loop.Stop.reached
def slowly(self, record, elapsed):
    print("iteration", record.iteration, file=sys.stderr, flush=True)
    time.sleep({slow})
    return reached(self, record, elapsed)
loop.Stop.reached = slowly
sys.exit(cli.main(sys.argv[1:]))
"""
    return start_python("-c", script, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(process, text):
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text!r} was not told")


LONG_FIT = ("fit", "vectors.npy", "-k", 40, "-o", "m.npz", "--init", "random", "--tol", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_ctrl_c_ends_the_iteration_writes_and_says_how_to_go_on(here, number):
    process = start(*LONG_FIT, "--checkpoint", "c", slow=0.1)
    wait_for(process, "iteration 2")
    process.send_signal(number)
    out, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == "m.npz\n"
    assert "--resume --overwrite" in words
    partial = k2means.load("m.npz")
    whole = K2Means(40, init="random", random_state=0, tol=0).fit(rows())
    assert partial.n_iter_ < whole.n_iter_
    resumed = start(*LONG_FIT, "--checkpoint", "c", "--resume", "--overwrite")
    assert resumed.wait(timeout=60) == 0
    end = k2means.load("m.npz")
    assert end.labels_.tobytes() == whole.labels_.tobytes()
    assert end.cluster_centers_.tobytes() == whole.cluster_centers_.tobytes()
    assert end.inertia_ == whole.inertia_


def test_nobody_listening_is_no_reason_to_stop(here):
    process = start(*LONG_FIT, slow=0.05)
    wait_for(process, "iteration 1")
    process.stderr.close()  # as when Ctrl-C also ends the `tee` that listened
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert k2means.load("m.npz").n_iter_ < K2Means(40, init="random", random_state=0, tol=0).fit(rows()).n_iter_


def test_out_of_time_the_checkpoint_is_kept_and_goes_on(here, capsys):
    words = ("fit", "vectors.npy", "-k", 40, "-o", "m.npz", "--tol", 0, "--checkpoint", "c")
    code, _, told = run(capsys, *words, "--max-time", 1e-9)
    assert code == 0
    assert "not converged" in told
    assert run(capsys, *words, "--resume", "--overwrite")[0] == 0
    whole = K2Means(40, random_state=0, tol=0).fit(rows())
    assert k2means.load("m.npz").labels_.tobytes() == whole.labels_.tobytes()
    assert os.listdir("c") == []


def test_a_checkpoint_of_other_centers_is_foreign(here, capsys):
    np.save("one.npy", rows()[:300])
    np.save("two.npy", rows()[300:])
    words = ("fit", "vectors.npy", "-k", 300, "-o", "m.npz", "--checkpoint", "c")
    run(capsys, *words, "--init", "one.npy", "--max-iter", 1, "--tol", 0)
    code, _, told = run(capsys, *words, "--init", "two.npy", "--resume", "--overwrite")
    assert code == 6
    assert "of another run: init was" in told


def test_predict_reads_as_the_model_was_fitted(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m.npz", "--normalize", "--columns", "0:4")
    out = run(capsys, "predict", "m.npz", "vectors.npy")[1]
    assert [int(line) for line in out.split()] == k2means.load("m.npz").labels_.tolist()


def test_an_input_is_never_written_over(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m.npz")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    for target in ("m.npz", "vectors.npy"):
        code, _, told = run(capsys, "predict", "m.npz", "vectors.npy", "-o", target, "--overwrite")
        assert code == 5
        assert "is the input" in told
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def test_a_damaged_or_newer_model_is_named(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m")
    described = json.loads(Path("m/model.json").read_text())
    Path("m/model.json").write_text(json.dumps({k: v for k, v in described.items() if k != "trace"}))
    code, _, told = run(capsys, "inspect", "m")
    assert (code, "trace" in told) == (3, True)
    Path("m/model.json").write_text(json.dumps({**described, "format": 9}))
    for words in (["inspect", "m"], ["fit", "vectors.npy", "-k", 9, "--init", "m", "-o", "x.npz"]):
        code, _, told = run(capsys, *words)
        assert code == 3
        assert "format 9" in told


def test_a_second_ctrl_c_stops_at_once(here):
    process = start("fit", "vectors.npy", "-k", 40, "-o", "m.npz", "--tol", 0, slow=30)
    wait_for(process, "iteration 1")
    process.send_signal(signal.SIGINT)
    wait_for(process, "Ctrl-C again stops at once")
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in words
    assert os.listdir() == ["vectors.npy"]


def test_killed_and_resumed_it_gives_the_same_bits(here):
    words = ("fit", "vectors.npy", "-k", 40, "-o", "m.npz", "--tol", 0, "--checkpoint", "c", "--every", 1)
    process = start(*words, slow=0.05)
    wait_for(process, "iteration 4")
    process.kill()
    process.communicate()
    assert not Path("m.npz").exists()
    assert start(*words, "--resume").wait(timeout=60) == 0
    whole = K2Means(40, random_state=0, tol=0).fit(rows())
    end = k2means.load("m.npz")
    assert (end.labels_.tobytes(), end.inertia_) == (whole.labels_.tobytes(), whole.inertia_)
    assert end.n_iter_ == whole.n_iter_


# ---- predict, inspect, convert, report, compare ------------------------------------------------------------------


def test_predict_prints_or_writes_the_labels(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m.npz")
    labels = k2means.load("m.npz").labels_
    code, out, words = run(capsys, "predict", "m.npz", "vectors.npy")
    assert (code, words) == (0, "")
    assert [int(line) for line in out.split()] == labels.tolist()
    assert run(capsys, "predict", "m.npz", "vectors.npy", "-o", "labels.npy")[0] == 0
    written = np.load("labels.npy")
    assert written.shape == (600,)
    assert (written == labels).all()
    code, _, words = run(capsys, "predict", "m.npz", "vectors.npy", "--columns", "0:3")
    assert code == 3
    assert "3 columns" in words


def test_inspect_tells_a_model_from_vectors(here, capsys):
    run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m.npz")
    model = json.loads(run(capsys, "inspect", "m.npz", "--json")[1])
    assert {"kind": "model", "n": 600, "d": 5, "k": 9, "empty": 0}.items() <= model.items()
    vectors = json.loads(run(capsys, "inspect", "vectors.npy", "--json")[1])
    assert {"kind": "vectors", "n": 600, "d": 5, "stored": "float32"}.items() <= vectors.items()
    assert "600" in run(capsys, "inspect", "vectors.npy")[1]


def test_convert_keeps_the_values(here, capsys):
    assert run(capsys, "convert", "vectors.npy", "v.fvecs", "--rows", "10:20")[0] == 0
    assert run(capsys, "convert", "v.fvecs", "back.npy")[0] == 0
    assert (np.load("back.npy") == rows()[10:20]).all()


def test_a_report_is_written_with_the_fit_or_after(here, capsys):
    Path("names.txt").write_text("\n".join(f"row {i}" for i in range(600)))
    assert run(capsys, "fit", "vectors.npy", "-k", 9, "-o", "m.npz", "--report", "--names", "names.txt")[0] == 0
    with_fit = Path("m.npz.html").read_text(encoding="utf-8")
    assert run(capsys, "report", "m.npz", "-o", "later.html", "--names", "names.txt")[0] == 0
    assert with_fit.startswith("<!")
    nearest = np.argmin(np.linalg.norm(rows() - k2means.load("m.npz").cluster_centers_[0], axis=1))
    for page in (with_fit, Path("later.html").read_text(encoding="utf-8")):
        assert f"row {nearest}" in page
    Path("vectors.npy").rename("moved.npy")
    code, _, words = run(capsys, "report", "m.npz", "-o", "again.html")
    assert code == 3
    assert "--vectors" in words
    assert run(capsys, "report", "m.npz", "-o", "again.html", "--vectors", "moved.npy")[0] == 0
    Path("names.txt").write_text("only one")
    assert run(capsys, "report", "m.npz", "-o", "b.html", "--vectors", "moved.npy", "--names", "names.txt")[0] == 3


def test_compare_shows_ours_beside_what_is_installed(here, capsys):
    code, out, _ = run(capsys, "compare", "vectors.npy", "-k", 9)
    assert code == 0
    assert "K2Means beside KMeans: " in out
    assert all(name in out for name in ("seconds", "energy", "K2Means", "KMeans"))


def test_a_peer_that_is_installed_joins(here, capsys, monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: name == "faiss" or None)
    monkeypatch.setattr(demo, "fit_faiss", lambda case, n: replace(demo.fit_theirs(case, n), method="faiss"))
    assert "K2Means beside faiss: " in run(capsys, "compare", "vectors.npy", "-k", 9)[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(capsys, shell):
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0
    assert "_K2MEANS_COMPLETE" in out


def test_every_command_has_help(capsys):
    for command in ("fit", "predict", "inspect", "convert", "report", "compare", "demo", "completion"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert "Usage: k2means" in out
