"""The experiments: a run resumes where it was, pruning does not change the oracle's choice, the plans are complete."""

import json
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import oracle
import pytest
from subprocesses import start_python

from experiments import __main__ as command
from experiments import figure1, plans, runner
from experiments.datasets import DATASETS
from experiments.plans import LEVELS, PARAMETERS, SLACK, Spec, cells, complexity_specs, specs
from k2means import Ops, Record

ROOT = Path(__file__).parent.parent
SMOKE = cells("smoke")


def without_seconds(lines):
    return {line["key"]: {k: v for k, v in line.items() if k != "seconds"} for line in lines}


def run_smoke(done=()):
    done = {line["key"]: line for line in done}
    lines = []
    for cell in SMOKE:
        lines += runner.run_cell(cell, {**done, **{line["key"]: line for line in lines}}, 1)
    return lines


@pytest.fixture(scope="module")
def smoke():
    return run_smoke()


# ---- plans -------------------------------------------------------------------------------------------------------


def test_keys_are_the_identity_of_a_spec():
    every = {s for c in cells("all") for s in specs(c)}
    assert len({s.key for s in every}) == len(every) > 2000


def test_the_plans_cover_the_papers_tables():
    speedup = {(c.dataset, c.k) for c in cells("speedup")}
    init = {(c.dataset, c.k) for c in cells("init")}
    stars = {"cnnvoc": "cnncaltech*", "tiny10k": "tiny10k*", "tinygist10k": "tinygist10k*"}
    for table, have in (("speedup_at_1.0pct", speedup), ("init_energy_by_k", init)):
        text = (ROOT / "experiments" / "paper" / f"{table}.csv").read_text().splitlines()
        names = text[0].split(",")
        rows = [dict(zip(names, line.split(","), strict=True)) for line in text[1:]]
        want = {(stars.get(r["dataset"], r["dataset"]), int(r["k"])) for r in rows}
        # cifar and tiny10k are the costliest: only the k of the paper's main table
        assert {w for w in want - have if w[0] not in ("cifar", "tiny10k*")} == set(), table


def test_every_dataset_of_the_plans_has_a_loader_and_none_passes_as_what_it_stands_in_for():
    for cell in cells("speedup"):
        dataset = DATASETS[cell.dataset]
        assert dataset.stand_in == cell.dataset.endswith("*")
        assert dataset.paper == dataset.name or dataset.stand_in or not dataset.paper  # "": beside none of the paper's


@pytest.mark.parametrize("k", [2, 50, 1000])
def test_parameters_are_the_papers_and_not_above_k(k):
    cell = replace(SMOKE[0], k=k)
    used = {s.parameter for s in specs(cell) if s.stop.startswith("oracle")}
    assert used == {p for p in PARAMETERS if p <= k}
    assert sorted(PARAMETERS) == [3, 5, 10, 20, 30, 50, 100, 200]


# ---- one run -----------------------------------------------------------------------------------------------------


def record(iteration, energy, distances):
    return Record(iteration, energy, Ops(distances=distances), 1, 1.0, 0.0)


def test_a_level_is_reached_at_the_first_energy_within_it():
    progress = runner.Progress(reference=100.0)
    for i, energy in enumerate([110, 102.00001, 101.5, 103, 100.6, 100.00011, 100.00009], start=1):
        progress.add(record(i, energy, 10))
    assert progress.hits == {0.02: (2, 20), 0.01: (5, 50), 0.005: (6, 60), 0.0: (7, 70)}
    assert runner.reached(100 * 1.01 * (1 + SLACK), 0.01, 100.0)


def test_a_thinned_trace_keeps_the_hits_the_first_and_the_last():
    progress = runner.Progress(reference=100.0)
    for i in range(1, 101):
        progress.add(record(i, 200.0 - i if i < 99 else 100.0, 10))
    kept = [i for i, _, _ in progress.thinned()]
    assert len(kept) < 45
    assert set(kept) >= {1, 2, 3, 100} | {i for i, _ in progress.hits.values()}


def test_a_seeding_is_made_once_and_leaves_the_generator_as_the_first_time():
    calls = []

    def init(data, k, rng):
        calls.append(k)
        return rng.random()

    shared = runner.Shared(init)
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    assert shared(None, 3, first) == shared(None, 3, second)
    assert calls == [3]
    assert first.random() == second.random()


def test_shared_work_gives_the_lines_of_runs_on_their_own(smoke):
    x = runner.rows_of("smoke")
    by_key = {line["key"]: line for line in smoke}
    for line in smoke:
        if "dataset" not in line or line["ended"] == "pruned":
            continue
        spec = Spec(**{name: line[name] for name in Spec.__dataclass_fields__})
        lloyd = by_key[replace(spec, method="lloyd", parameter=None, init="k-means++", stop="converged").key]
        reference = None if spec.stop == "converged" and spec.method == "lloyd" else lloyd["energy"]
        alone = runner.run_spec(spec, x, runner.Shared(runner.INITS[spec.init]), reference)
        assert without_seconds([alone])[spec.key] == without_seconds([line])[spec.key]


def test_a_difference_between_elkan_and_lloyd_is_an_error(smoke):
    lines = {line["key"]: line for line in smoke}
    elkan = next(line for line in smoke if line.get("method") == "elkan")
    lloyd = lines[elkan["key"].replace("elkan", "lloyd")]
    runner.check_same_energies(elkan, lloyd)
    with pytest.raises(AssertionError, match="energy"):
        runner.check_same_energies({**elkan, "trace": [[i, e * 1.001, o] for i, e, o in elkan["trace"]]}, lloyd)
    with pytest.raises(AssertionError, match="iterations"):
        runner.check_same_energies({**elkan, "n_iter": 99}, lloyd)


def test_complexity_counts_the_distances_of_every_iteration(monkeypatch):
    shapes = [replace(s, dataset="mixture-500", k=20) for s in complexity_specs()][:5]
    monkeypatch.setattr(plans, "complexity_specs", lambda: shapes)
    lines = {line["method"]: line for line in runner.run_cell(cells("complexity")[0], {}, 1)}
    assert set(lines) == {"lloyd", "elkan", "minibatch", "akm", "k2"}
    assert set(lines["lloyd"]["distances"]) == {500 * 20}
    assert all(len(line["distances"]) == line["n_iter"] for line in lines.values())


# ---- the oracle --------------------------------------------------------------------------------------------------


def oracle_choice(lines, method, k, level, seeds):
    """The parameter of the least operations over all seeds, and those operations, by looking at everything."""
    best = (None, np.inf)
    for parameter in PARAMETERS:
        runs = [s for s in lines if (s["method"], s["parameter"], s["k"]) == (method, parameter, k)]
        if len(runs) < seeds or any(str(level) not in r["hits"] for r in runs):
            continue
        ops = sum(r["hits"][str(level)][1] + sum(r["init_ops"].values()) for r in runs)
        best = min(best, (parameter, ops), key=lambda b: b[1])
    return best


def test_pruning_does_not_change_the_oracles_choice(smoke, monkeypatch):
    monkeypatch.setattr(runner.Bests, "hopeless", lambda self, progress, spent: False)
    everything = run_smoke()
    searched = [[s for s in lines if s.get("stop", "").startswith("oracle")] for lines in (smoke, everything)]
    assert sum(r["n_iter"] for r in searched[0]) < sum(r["n_iter"] for r in searched[1])
    for method in ("k2", "akm"):
        for cell in (c for c in SMOKE if c.plan == "speedup"):
            for level in LEVELS:
                pruned, full = (oracle_choice(lines, method, cell.k, level, len(cell.seeds)) for lines in searched)
                assert pruned == full, (method, cell.k, level)


# ---- resuming ----------------------------------------------------------------------------------------------------


def test_what_is_done_is_not_done_again_and_the_rest_is_the_same(smoke):
    assert run_smoke(smoke) == []
    half = smoke[::2]
    assert without_seconds([*half, *run_smoke(half)]) == without_seconds(smoke)


def test_a_line_cut_off_is_run_again_and_no_other_is_lost(tmp_path):
    for i in range(3):
        runner.append(tmp_path, "smoke", {"key": f"run {i}", "energy": 1.5})
    path = next(tmp_path.glob("*/smoke.jsonl"))
    path.write_bytes(path.read_bytes()[:-9])
    assert runner.read_results(tmp_path).keys() == {"run 0", "run 1"}
    runner.append(tmp_path, "smoke", {"key": "run 3"})
    assert runner.read_results(tmp_path).keys() == {"run 0", "run 1", "run 3"}
    assert path.read_bytes().count(b"\n") == 4  # append only: the broken line is still there


def start(results):
    run = ("-m", "experiments", "run", "smoke", "--results", results, "--jobs", 2)
    return start_python(*run, cwd=ROOT, stderr=subprocess.PIPE)


def test_a_killed_run_is_finished_by_the_same_command(smoke, tmp_path):
    process = start(tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*/*.jsonl")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)  # ends only when the workers have let go of the pipe
    assert start(tmp_path).wait(timeout=300) == 0
    assert runner.read_results(tmp_path).keys() == {line["key"] for line in smoke}


def test_an_error_in_a_worker_stops_the_plan_and_is_told(tmp_path):
    broken = replace(SMOKE[0], dataset="mixture-not a number")
    with pytest.raises(ValueError, match="not a number"):
        runner.run_plan([broken], tmp_path, 1, 1, quiet=True)


# ---- the command line --------------------------------------------------------------------------------------------


def test_a_dry_run_lists_and_estimates_and_runs_nothing(tmp_path, capsys):
    assert command.main(["run", "all", "--dry-run", "--only", "/usps/k=200/", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"speedup +usps +k=200 +0/66 +runs done, +\d+ s to go", out)
    assert "k=1000" not in out
    assert re.search(r"22 cells, at most [\d.]+ h of one core", out)
    assert list(tmp_path.iterdir()) == []


def test_smoke_runs_and_reports_from_the_command_line(tmp_path):
    results, docs = tmp_path / "results", tmp_path / "docs"
    assert start(results).wait(timeout=300) == 0
    lines = [json.loads(text) for p in results.glob("*/*.jsonl") for text in p.read_text().splitlines()]
    assert {line["method"] for line in lines if "method" in line} == {"lloyd", "elkan", "k2", "akm", "minibatch"}
    for line in lines:
        if "trace" in line:
            assert line["versions"].keys() >= {"k2means", "numpy", "python"}
            assert line["machine"] == runner.machine()
    assert command.main(["report", "--results", str(results), "--docs", str(docs)]) == 0
    assert {p.name for p in docs.iterdir()} >= {"reproduction.md", "reproduction.html"}


# ---- Figure 1 ----------------------------------------------------------------------------------------------------


def test_projective_split_takes_the_cut_of_lowest_energy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(size=(25, 2)) + rng.integers(0, 4, size=(25, 1))
        a, b = x[:2]
        right, cut = figure1.projective_split(x, a, b)
        best = min(oracle.cut_energy(x, mask) for mask in oracle.cuts(x, b - a))
        assert oracle.cut_energy(x, right) == pytest.approx(best)
        assert (right == (x @ (b - a) > cut)).all()


def test_in_the_figure_projective_split_separates_at_once_and_2_means_does_not():
    methods = figure1.compute(np.random.default_rng(figure1.SEED))["methods"]
    split, means = methods["Projective Split"], methods["k-means"]
    assert split[0]["centers"] == means[0]["centers"]
    assert split[0]["energy"] < means[1]["energy"]
