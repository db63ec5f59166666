"""The command line: what it prints, what it writes, how it fails."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

import k2means
from k2means import cli, demo

PNG = b"\x89PNG"


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A demo of no more than a second, in a directory of its own."""
    digits = load_digits().data[:300].astype(np.float32)
    small = [demo.Case("digits", digits, 10), demo.Case("mixture", demo.mixture(400, 8), 20)]
    monkeypatch.setattr(demo, "cases", lambda quick: small)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def outcome(method, seconds, energy):
    case = demo.Case("digits", np.zeros((1, 64), dtype=np.float32), 1)
    return demo.Outcome(case, method, seconds, energy, 1, 1.0, np.zeros((1, 64)), [(seconds, energy)])


def test_version_is_the_package_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"k2means {k2means.__version__}\n"


def test_no_command_is_an_error_on_stderr(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: k2means" in err
    assert "fit vectors.npy -k 1000" in err  # a help that teaches


def test_without_click_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "click", None)
    assert cli.main(["demo"]) == 2
    assert "pip install 'k2means[cli]'" in capsys.readouterr().err


def test_the_demo_prints_both_methods_on_both_data_sets_and_a_conclusion(tiny, capsys):
    assert cli.main(["demo"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if "×" in line]
    assert [row.split()[0] for row in rows] == ["digits", "digits", "mixture", "mixture"]
    assert ["K2Means" in row for row in rows] == [True, False, True, False]
    assert len({len(row) for row in rows} | {len(demo.HEADER)}) == 1, "the columns are aligned"
    assert "K2Means beside KMeans: digits: " in out


def test_the_demo_tells_the_truth_about_its_fits(tiny):
    ours, theirs = list(demo.compare(demo.cases(True), 1))[:2]
    for o in (ours, theirs):
        labels = ((o.case.x[:, None, :] - o.centers[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        energy = ((o.case.x.astype(np.float64) - o.centers[labels]) ** 2).sum()
        assert o.energy == pytest.approx(energy, rel=1e-4)  # scikit-learn sums 300 x 64 squares in float32
        assert o.curve[-1] == (o.seconds, o.energy)
    times = [t for t, _ in ours.curve]
    assert times == sorted(times)
    assert times[0] > 0


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ((1.0, 99.0), (3.0, 100.0), "digits: 3.0 times faster, energy 1 % lower."),
        ((3.0, 102.0), (1.0, 100.0), "digits: 3.0 times slower, energy 2 % higher."),
    ],
)
def test_the_conclusion_follows_the_numbers_whoever_wins(ours, theirs, words):
    assert demo.conclusion([outcome("K2Means", *ours), outcome("KMeans", *theirs)]).endswith(words)


def test_the_demo_writes_a_picture_and_never_over_another(tiny, capsys):
    pytest.importorskip("matplotlib")
    for name in ("k2means-demo.png", "k2means-demo-2.png", "k2means-demo-3.png"):
        assert cli.main(["demo", "--quick"]) == 0
        assert f"Picture: {name}\n" in capsys.readouterr().out
        assert (tiny / name).read_bytes().startswith(PNG)
    written = {p: p.read_bytes() for p in tiny.iterdir()}
    cli.main(["demo", "--out", str(tiny / "mine.png")])
    assert (tiny / "mine.png").read_bytes().startswith(PNG)
    assert {p: p.read_bytes() for p in written} == written


def test_without_matplotlib_the_table_is_printed_and_the_extra_named(tiny, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "K2Means beside KMeans" in out
    assert "k2means[plot]" in err
    assert not list(tiny.iterdir())


def test_a_picture_in_no_directory_is_refused_before_any_work(tiny, capsys, monkeypatch):
    monkeypatch.setattr(demo, "compare", lambda *_: pytest.fail("work was done"))
    assert cli.main(["demo", "--out", str(tiny / "nowhere" / "x.png")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_same_threads_are_given_to_both_methods(tiny, monkeypatch):
    monkeypatch.setenv("K2MEANS_NUM_THREADS", "1")
    asked = []
    monkeypatch.setattr(demo, "fit_ours", lambda case, n: asked.append(n) or outcome("K2Means", 1.0, 1.0))
    monkeypatch.setattr(demo, "fit_theirs", lambda case, n: asked.append(n) or outcome("KMeans", 1.0, 1.0))
    monkeypatch.setattr(demo, "draw", lambda *_: None)
    cli.main(["demo"])
    assert set(asked) == {1}


def test_ctrl_c_ends_it_without_a_traceback(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "compare", interrupted)
    assert cli.main(["demo"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_it_runs_as_a_process():
    run = subprocess.run(
        [sys.executable, "-m", "k2means.cli", "--version"], capture_output=True, text=True, check=True, env=os.environ
    )
    assert run.stdout.startswith("k2means ")
