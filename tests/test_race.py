"""The race: levels are crossed by exact energies, a session resumes, ratios stay within it, losing rows are shown."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from experiments import __main__ as command
from experiments import race, race_data, race_report, race_runners, race_tables, runner
from experiments.race_runners import RUNNERS, Gap, Problem, Run, Runner, Sklearn
from k2means import Lloyd, PlusPlus, Stop, cluster

X = runner.mixture(400, 8)
ROW = race_data.Row("small", 10, lambda name: X)
P = Problem.of(X, 10, 0, 1, 60.0)


def settings(folder, names, **options):
    return race.Settings(folder, **{"session": "one", "runners": tuple(names), "repeat": 2, "threads": 1, "patience": 0,
                                    "tell": lambda text: None} | options)  # fmt: skip


# ---- stand-ins ---------------------------------------------------------------------------------------------------


class Scripted(Runner):
    """Iteration t takes t seconds and has the energy of the script, in units of R = 100."""

    package = module = "numpy"  # which is there

    def __init__(self, exact, reported=None, name="scripted", stamps=True, warm=False, stops=True, start=False):
        super().__init__(name)
        self.start = start  # the last energy of the script is that of the start
        self.exact, self.told = exact, reported or exact
        self.stamped, self.warm, self.stops = stamps, warm, stops
        self.calls = []

    def config(self, p):
        return "a script"

    def require(self, p):
        return

    def fit(self, p, iterations, enough=None):
        self.calls.append(iterations)
        t = min(iterations, len(self.exact))
        reported = {i: 100 * self.told[i - 1] for i in range(1, t + 1)} if self.told is not None else {}
        if enough is not None:
            t = next((i for i in range(1, t + 1) if enough(i, reported.get(i, np.inf))), t)
        start = (0.5, np.array([0])) if self.start else None
        stamps = list(range(1, t + 1)) if self.stamped else None
        return Run(np.array([t]), float(t), t, stamps=stamps, reported=reported, start=start)

    def more(self, p, centers, iterations):
        if not self.warm:
            return None
        start, t = int(centers[0]), min(int(centers[0]) + iterations, len(self.exact))
        return Run(np.array([t]), float(t - start), t - start)


@pytest.fixture
def by_script(monkeypatch):
    """Energies are read off the script instead of being measured."""

    def explore(scripted):
        monkeypatch.setattr(race, "energy_of", lambda p, centers: 100 * scripted.exact[int(centers[0]) - 1])
        return race.Explorer(scripted, P, 100.0).explore()

    return explore


# ---- crossing a level --------------------------------------------------------------------------------------------


def test_a_level_is_crossed_where_the_exact_energy_is_though_the_report_is_later(by_script):
    found = by_script(Scripted([1.10, 1.019, 1.009, 1.004, 0.999], reported=[1.2, 1.15, 1.019, 1.009, 1.004]))
    assert found.hits == {1.02: 2, 1.01: 3, 1.005: 4, 1.0: 5}


def test_a_report_that_promises_too_much_is_not_believed(by_script):
    found = by_script(Scripted([1.10, 1.0200001, 1.015, 1.01], reported=[1.10, 1.02, 1.015, 1.01]))
    assert found.hits == {1.02: 3, 1.01: 4}


def test_a_peer_ends_at_the_reference_and_ours_goes_on(by_script):
    energies = [1.03, 1.005, 0.9995, 0.99, 0.98]
    peer, ours = Scripted(energies), Scripted(energies)
    ours.ours = True
    assert by_script(peer).last == 3
    assert by_script(ours).last == 5


def test_the_start_counts_where_it_is_known(by_script):
    first = Scripted([1.004, 0.999, 1.015], start=True)
    found = by_script(first)
    assert found.hits == {1.02: 0, 1.01: 1, 1.005: 1, 1.0: 2}
    assert race.repetition(first, P, found, 100.0).seconds[0] == 0.5
    assert 0 not in by_script(Scripted([1.004, 0.999])).exact


def test_a_report_that_is_too_early_or_too_late_does_not_move_a_peers_hit(by_script):
    exact = [1.1, 1.0004, 1.0001, 0.9999, 0.9998, 0.9]
    early, late = [e - 0.0003 for e in exact], [e + 0.0003 for e in exact]
    for told in (early, late):
        assert by_script(Scripted(exact, reported=told)).hits[1.0] == 4
    chained = Scripted(exact, reported=early, warm=True, stops=False)
    assert by_script(chained).hits[1.0] == 4


def test_the_budget_ends_a_run(by_script):
    long = Scripted([2.0 - i / 1000 for i in range(100)])
    assert by_script(long).last == pytest.approx(P.budget, abs=1)
    growing = Scripted([2.0 - i / 1000 for i in range(100)], stops=False)
    assert by_script(growing).last <= P.budget
    assert max(growing.calls) <= P.budget


def test_without_reports_or_stamps_warm_starts_find_the_iterations_worth_timing(by_script, monkeypatch):
    energies = [1.5, 1.3, 1.1, 1.018, 1.0099, 1.004, 1.001, 0.9999, 0.99]
    scripted = Scripted(energies, stamps=False, warm=True, stops=False)
    scripted.told = None
    found = by_script(scripted)
    assert found.hits == {1.02: 4, 1.01: 5, 1.005: 6, 1.0: 8}
    timed = race.repetition(scripted, P, found, 100.0)
    assert {t: timed.seconds[t] for t in found.hits.values()} == {4: 4.0, 5: 5.0, 6: 6.0, 8: 8.0}


def test_between_counts_far_apart_the_first_hit_is_looked_for(by_script):
    scripted = Scripted([1.5, 1.3, 1.1, 1.018, 1.0099, 1.004, 1.001, 0.9999, 0.99, 0.98], stamps=False, stops=False)
    scripted.counts = (1, 2, 10)
    assert by_script(scripted).hits == {1.02: 4, 1.01: 5, 1.005: 6, 1.0: 8}


def test_what_was_explored_comes_back_from_json(by_script):
    found = by_script(Scripted([1.1, 1.01, 0.99]))
    assert race.Explored.restored(json.loads(json.dumps(found.as_dict()))) == found


def test_ours_that_became_another_computation_needs_another_session(by_script):
    ours = Scripted([1.03, 1.005, 0.999])
    ours.ours = True
    found = by_script(ours)
    ours.told = [1.03, 1.004, 0.999]
    with pytest.raises(RuntimeError, match="--session"):
        race.repetition(ours, P, found, 100.0)


# ---- the real ones -----------------------------------------------------------------------------------------------


def test_the_energy_that_counts_is_of_given_centers_each_row_with_its_nearest():
    centers = X[:10]
    brute = ((X[:, None].astype(np.float64) - centers) ** 2).sum(axis=2).min(axis=1).sum()
    assert race.energy_of(P, centers) == pytest.approx(brute, rel=1e-6)  # float32 rows


def test_our_centers_at_an_iteration_are_those_of_a_run_of_that_length():
    ours = RUNNERS["k2means"]
    run = ours.fit(P, 100)
    assert len(run.stamps) == len(run.reported) == run.iterations
    assert 0 <= run.init <= run.stamps[0]
    assert run.stamps == sorted(run.stamps)
    for t in (1, run.iterations):
        exact = race.energy_of(P, ours.fit(P, t).centers)
        assert exact <= run.reported[t] * (1 + 1e-6)  # labels of the last assignment, centers after the move


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
def test_what_scikit_learn_prints_is_read_as_the_energy_of_its_centers(algorithm):
    theirs = Sklearn("theirs", init="random", algorithm=algorithm)
    run = theirs.fit(P, 5)
    assert run.iterations == len(run.stamps) == 5
    assert run.labels > 0
    for t in (1, 3, 4):
        assert race.energy_of(P, theirs.fit(P, t).centers) == pytest.approx(run.reported[t], rel=1e-5)
    link = theirs.more(P, theirs.fit(P, 2).centers, 3)
    assert np.allclose(link.centers, run.centers, rtol=1e-4)


def test_scikit_learn_is_stopped_on_the_way():
    run = Sklearn("theirs", init="random").fit(P, 50, lambda seconds, energy: True)
    assert (run.iterations, run.centers) == (1, None)


@pytest.mark.parametrize("name", ["scikit-learn", "minibatch", "bisecting", "minibatch default", "k2means default"])
def test_a_runner_that_is_always_here_gives_k_centers(name):
    found = race.Explorer(RUNNERS[name], replace(P, budget=0.01), 1e-9).explore()
    assert found.exact
    assert RUNNERS[name].fit(P, found.last).centers.shape == (10, 8)


@pytest.mark.parametrize(
    "name",
    [
        "scikit-learn",
        "minibatch",
        "minibatch default",
        "bisecting",
        "bisecting default",
        "faiss default",
        "intelex default",
    ],
)
def test_what_nothing_can_stop_is_not_begun_if_the_budget_is_too_small_for_it(name):
    pytest.importorskip(RUNNERS[name].module)
    RUNNERS[name].require(replace(P, budget=60.0))
    with pytest.raises(Gap, match=r"would take about \d+ s, the budget is 1e-09 s"):
        RUNNERS[name].require(replace(P, budget=1e-9))


def test_rows_too_long_to_be_turned_are_not():
    pytest.importorskip("faiss")
    long = replace(P, x=np.random.default_rng(0).normal(size=(64, 3 * race_runners.SHORT)).astype(np.float32))
    RUNNERS["faiss"].require(replace(long, budget=1e-9))  # it does not turn them
    with pytest.raises(Gap, match=r"to turn its rows would take about \d+ s"):
        RUNNERS["faiss super"].require(replace(long, budget=1e-9))


@pytest.mark.parametrize(
    ("name", "module"),
    [("faiss", "faiss"), ("faiss k-means++", "faiss"), ("superkmeans", "superkmeans"), ("intelex", "sklearnex")],
)
def test_an_installed_peer_gives_what_the_race_asks_for(name, module):
    pytest.importorskip(module)
    peer = RUNNERS[name]
    peer.require(P)
    run = peer.fit(P, 4)
    assert run.centers.shape == (10, 8)
    for t in set(run.reported) - {0}:
        assert race.energy_of(P, peer.fit(P, t).centers) <= run.reported[t] * (1 + 1e-4)


def test_the_reference_is_lloyd_from_kmeans_plus_plus_with_its_recipe(tmp_path):
    s = settings(tmp_path, [])
    R = race.reference(ROW, X, s, {})
    lines = runner.read_results(tmp_path)
    assert sorted(lines) == [f"reference/small k=10/seed={i}" for i in range(3)]
    assert all("100 iterations" in line["recipe"] for line in lines.values())
    runs = [cluster(X, 10, method=Lloyd(), init=PlusPlus(), stop=Stop(max_iter=100), seed=i) for i in range(3)]
    assert pytest.approx(np.mean([r.energy for r in runs]), rel=1e-6) == R
    assert race.reference(ROW, X, s, lines) == R
    assert len(runner.read_results(tmp_path)) == 3


# ---- a session ---------------------------------------------------------------------------------------------------


class Absent(Scripted):
    def require(self, p):
        raise Gap("absent is not installed")


class Broken(Scripted):
    def fit(self, p, iterations, enough=None):
        raise RuntimeError("d must be at least 32")


CONTESTANTS = {
    "k2means": RUNNERS["k2means"],
    "theirs": Sklearn("theirs", init="random"),
    "absent": Absent([1.0], name="absent"),
    "broken": Broken([1.0], name="broken"),
}


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    assert race.race_row(ROW, settings(folder, CONTESTANTS), CONTESTANTS) == 4
    return folder


def reps(folder):
    return [line for line in runner.read_results(folder).values() if "curve" in line]


def test_a_line_tells_all_that_the_report_needs(raced):
    for line in reps(raced):
        assert line["curve"]
        assert all(seconds > 0 and energy > 0 for _, seconds, energy in line["curve"])
        assert {"versions", "machine", "load", "foreign", "config", "reached", "R", "session"} <= line.keys()
        assert "dataset" not in line  # it is no run of the paper's tables
        for level, seconds in line["hits"].items():
            assert any(s == seconds and e <= float(level) * (1 + 1e-6) for _, s, e in line["curve"])


def test_repetitions_take_turns(raced):
    assert [(line["rep"], line["runner"]) for line in reps(raced)] == [
        (0, "k2means"), (0, "theirs"), (1, "k2means"), (1, "theirs"),
    ]  # fmt: skip


def test_what_is_done_is_not_run_again_and_a_lost_line_is(raced, tmp_path):
    path = next(raced.glob("*/race.jsonl"))
    assert race.race_row(ROW, settings(raced, ["k2means", "theirs"]), CONTESTANTS) == 0
    copy = tmp_path / path.parent.name / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes()[:-20])  # killed while it wrote
    before = copy.read_bytes()
    assert race.race_row(ROW, settings(tmp_path, ["k2means", "theirs"]), CONTESTANTS) == 1
    assert copy.read_bytes().startswith(before)
    assert {line["key"] for line in reps(tmp_path)} == {line["key"] for line in reps(raced)}


def test_another_session_times_again_but_explores_no_peer_again(raced, tmp_path):
    path = next(raced.glob("*/race.jsonl"))
    (tmp_path / path.parent.name).mkdir()
    (tmp_path / path.parent.name / path.name).write_bytes(path.read_bytes())
    s = settings(tmp_path, ["k2means", "theirs"], session="two", repeat=1)
    assert race.race_row(ROW, s, CONTESTANTS) == 2
    explored = [k for k in runner.read_results(tmp_path) if k.startswith("explored/two") and not k.endswith("gap")]
    assert explored == ["explored/two/small k=10/k2means"]


def test_a_missing_and_a_failing_peer_are_named_gaps(raced):
    gaps = {line["runner"]: line["gap"] for line in runner.read_results(raced).values() if "gap" in line}
    assert gaps == {"absent": "absent is not installed", "broken": "RuntimeError: d must be at least 32"}
    found = race_tables.results(runner.read_results(raced).values())
    assert found["small k=10"].gaps == gaps
    text = race_report.to_markdown(race_report.page(found))
    assert "absent is not installed" in text
    assert "d must be at least 32" in text


def test_a_package_that_is_not_there_is_a_gap():
    runner_ = race_runners.Super("nowhere")
    runner_.package = "no-such-package-at-all"
    with pytest.raises(Gap, match="no-such-package-at-all is not installed"):
        runner_.require(P)


def test_a_disturbed_repetition_is_made_again_and_the_quietest_kept(by_script, monkeypatch):
    scripted = Scripted([1.1, 0.99])
    found = by_script(scripted)
    shares = iter([0.9, 0.5, 0.05])
    monkeypatch.setattr(race.Load, "foreign", lambda self: next(shares))
    line = race.quiet_line("key", ROW, scripted, P, found, 100.0, settings(None, [], patience=3))
    assert (line["foreign"], line["tries"]) == (0.05, 3)


# ---- the report --------------------------------------------------------------------------------------------------


def line_of(row, name, hits, *, session="s", rep=0, at=0, reached=None, longest=10.0, ours=None, point=False, **more):
    """As a race would write it. `hits`: seconds by level."""
    curve = [[i, s, float(level)] for i, (level, s) in enumerate(hits.items(), start=1)] or [[1, longest, 1.5]]
    return {
        "key": f"race/{session}/{row}/{name}/rep={rep}", "row": row, "runner": name, "session": session, "rep": rep,
        "ours": name.startswith("k2means") if ours is None else ours, "point": point, "config": "none", "curve": curve,
        "hits": {f"{float(level):g}": s for level, s in hits.items()}, "longest": longest,
        "reached": reached or min(map(float, hits), default=1.5), "init": 0.5, "labels": 0.1, "n": 100, "d": 4,
        "k": int(row.split("=")[1]), "R": 1.0, "at": at, "versions": {"k2means": "0"}, "machine": "m", **more,
    }  # fmt: skip


def found_of(*lines):
    return race_tables.results(lines)


WON, LOST = "usps k=200", "mnist k=1000"


def test_a_time_is_the_best_of_its_repetitions():
    r = found_of(
        line_of(WON, "k2means", {1.01: 2.0}), line_of(WON, "k2means", {1.01: 1.0}, rep=1),
        line_of(WON, "faiss", {1.01: 6.0}), line_of(WON, "faiss", {1.01: 5.0}, rep=1),
    )[WON]  # fmt: skip
    assert r.ratio(1.01) == 5.0
    assert r.rival(1.01) == race_tables.Rival("faiss", 5.0, True)


def test_a_ratio_stays_within_a_session():
    lines = [
        line_of(WON, "k2means", {1.01: 2.0}, session="old", at=1),
        line_of(WON, "faiss", {1.01: 3.0}, session="old", at=1),
        line_of(WON, "k2means", {1.01: 1.0}, session="new", at=2),
        line_of(WON, "faiss", {1.01: 4.0}, session="new", at=2),
        line_of(WON, "k2means", {1.01: 0.1}, session="alone", at=3),
    ]
    r = found_of(*lines)[WON]
    assert (r.session, r.ratio(1.01)) == ("new", 4.0)


def test_a_peer_that_was_not_raced_again_still_counts_and_says_of_which_session():
    lines = [
        line_of(WON, "k2means", {1.01: 2.0}, session="old", at=1),
        line_of(WON, "faiss", {1.01: 9.0}, session="old", at=1),
        line_of(WON, "minibatch", {1.01: 3.0}, session="old", at=1),
        line_of(WON, "minibatch", {1.01: 1.0}, session="older", at=0),
        line_of(WON, "k2means", {1.01: 1.5}, session="new", at=2),
        line_of(WON, "faiss", {1.01: 6.0}, session="new", at=2),
        line_of(WON, "minibatch", {1.01: 0.1}, session="later, and alone", at=3),
    ]
    r = found_of(*lines)[WON]
    assert r.rival(1.01) == race_tables.Rival("minibatch (old)", 3.0, True)
    assert (r.session, r.ratio(1.01), r.bests["faiss"].shown) == ("new", 2.0, "faiss")
    assert r.ours is not None
    assert r.ours.shown == "k2means"


def test_a_peer_that_never_gets_there_counts_with_its_longest_run_and_is_marked():
    lines = [line_of(WON, "k2means", {1.01: 2.0, 1.0: 4.0}), line_of(WON, "faiss", {1.01: 5.0}, longest=40.0)]
    far = [line_of(WON, "superkmeans default", {}, longest=0.1, point=True, reached=1.001)]
    found = found_of(*lines, *far)  # a point cannot go on: it is no measure of how long it would take
    assert found[WON].rival(1.0) == race_tables.Rival("faiss", 40.0, False)
    assert race_report.against(found[WON], 1.0) == ["4.00", "faiss", "> 40.00", "> 10.0"]
    assert race_report.against(found[WON], 1.01) == ["2.00", "faiss", "5.00", "2.5"]
    assert race_report.runner_cells(found[WON].bests["faiss"])[:4] == ["> 40.00", "5.00", "> 40.00", "> 40.00"]


def test_where_ours_does_not_get_there_is_a_dash():
    found = found_of(line_of(WON, "k2means", {1.02: 2.0}), line_of(WON, "faiss", {1.02: 4.0, 1.0: 9.0}))
    assert race_report.against(found[WON], 1.0) == ["-", "faiss", "9.00", "-"]


@pytest.fixture
def synthetic():
    lines = [
        line_of(WON, "k2means", {1.02: 0.5, 1.01: 1.0, 1.005: 2.0, 1.0: 3.0}),
        line_of(WON, "faiss", {1.02: 4.0, 1.01: 5.0, 1.005: 6.0, 1.0: 7.0}),
        line_of(LOST, "k2means", {1.02: 3.0, 1.01: 9.0}),
        line_of(LOST, "faiss", {1.02: 4.0, 1.01: 6.0, 1.0: 7.0}),
        line_of(LOST, "superkmeans hierarchical", {1.02: 3.5}),
        line_of("mine k=7", "k2means", {1.01: 1.0}),
        line_of("mine k=7", "faiss", {1.01: 2.0}),
    ]
    memory = {"key": "memory", "row": WON, "runner": "k2means", "session": "s", "before": 10**6, "peak": 3 * 10**6}
    gap = {"key": "gap", "row": WON, "runner": "intelex", "session": "s", "gap": "not installed"}
    return [*lines, memory, gap]


def test_the_report_has_every_row_those_we_lose_included(synthetic, tmp_path):
    results, docs, readme = tmp_path / "results", tmp_path / "docs", tmp_path / "README.md"
    for line in synthetic:
        runner.append(results, "race", line)
    readme.write_text("# k\n<!-- race -->\nold\n<!-- /race -->\nrest\n", encoding="utf-8")
    report = ["race-report", "--results", str(results), "--docs", str(docs), "--readme", str(readme)]
    assert command.main(report) == 0
    text = (docs / "race.md").read_text(encoding="utf-8")
    for row in (*race_data.ROWS, "mine k=7"):
        assert text.count(f"| {race_report.plain(row)} |") >= 5, row
    assert "| mnist k=1000 | 100×4 | 9.00 | faiss | 6.00 | **0.67** |" in text
    assert {p.name for p in (docs / "figures").iterdir()} >= {"race-usps-k-200.svg", "race-mnist-k-1000.svg"}
    assert "<svg" in (docs / "race.html").read_text(encoding="utf-8")
    told = readme.read_text(encoding="utf-8")
    assert "old" not in told
    assert "| mnist k=1000 | 100×4 | 9.00 | faiss | 6.00 | **0.67** |" in told
    assert told.startswith("# k\n<!-- race -->\n")
    assert told.endswith("<!-- /race -->\nrest\n")
    assert command.main(report) == 0
    assert readme.read_text(encoding="utf-8") == told


def test_another_cpu_has_a_section_of_its_own_with_only_what_was_raced_there(synthetic):
    lines = [
        *({**line, "cpu": "wide"} for line in synthetic if "curve" in line),
        {**line_of(WON, "k2means", {1.01: 4.0}, session="t", at=99), "cpu": "narrow"},
        {**line_of(WON, "faiss", {1.01: 2.0}, session="t", at=99), "cpu": "narrow"},
        *(line_of(row, "k2means", {1.01: 0.1}, session="u", at=100) for row in race_data.ROWS),
    ]  # fmt: skip
    wide, narrow, untold = cpus = race_tables.by_cpu(lines)
    assert (wide, narrow, untold) == ("wide", "narrow", "")
    assert cpus["wide"][WON].ratio(1.01) == 5.0  # its own, though the other is later
    text = race_report.to_markdown(race_report.page(cpus["wide"], {cpu: cpus[cpu] for cpu in ("narrow", "")}))
    section = text.split("## On another CPU: narrow")[1].split("\n## ")[0]
    assert "| usps k=200 | 100×4 | 4.00 | faiss | 2.00 | **0.50** |" in section
    assert "not run" not in section
    assert "On another CPU: \n" not in text


def test_a_readme_without_a_place_for_the_table_is_left_alone():
    assert race_report.with_headline("no markers here", "table") is None
    assert (
        race_report.with_headline("<!-- race --><!-- /race -->", r"a \1 b") == "<!-- race -->\na \\1 b\n<!-- /race -->"
    )


def test_goals_are_reached_missed_or_not_run_by_the_numbers(synthetic):
    states = {g.text: g for g in race_tables.goals(found_of(*synthetic))}
    two_hundred = next(g for text, g in states.items() if "k = 200" in text)
    by_row = {row: ok for row, _, ok in two_hundred.values}
    assert (by_row[WON], by_row["yale k=200"]) == (True, None)
    thousand = next(g for text, g in states.items() if "k = 1000: at least" in text)
    assert thousand.state == "missed"
    hierarchical = next(g for text, g in states.items() if "seconds that superkmeans hierarchical" in text)
    assert (LOST, "0 of 1 points", False) in hierarchical.values  # 1.02 R both: not lower
    assert ("glove100 k=4096", "not run", None) in hierarchical.values


def test_a_point_is_won_by_the_defaults_alone():
    hurried = line_of(LOST, race_tables.HURRIED, {1.01: 3.4})
    lines = line_of(LOST, "k2means", {1.01: 9.0}), line_of(LOST, "superkmeans hierarchical", {1.02: 3.5}), hurried
    goal = race_tables.hierarchical_goal(found_of(*lines))
    assert (LOST, "0 of 1 points (1 with k2means max_time)", False) in goal.values


@pytest.mark.parametrize(
    ("theirs", "told", "reached"),
    [
        ({1.02: 3.5}, "1.0100 R, 1.0200 R", True),
        ({1.02: 3.5, 1.005: 8.0}, "1.0100 R, 1.0050 R", False),
        ({1.02: 11.0}, "1.0100 R, nothing yet", True),
        ({1.02: 3.5, 1.0: 8.0}, "1.0100 R, 1.0000 R and not run on", None),
    ],
)
def test_who_has_less_when_ours_has_used_its_seconds(theirs, told, reached):
    lines = line_of(LOST, "k2means", {1.01: 9.0}), line_of(LOST, "superkmeans hierarchical", theirs)
    assert (LOST, told, reached) in race_tables.end_goal(found_of(*lines)).values


def test_memory_is_what_came_on_top_and_gaps_stand_in_their_row(synthetic):
    r = found_of(*synthetic)[WON]
    assert r.bests["k2means"].memory == 2 * 10**6
    assert r.gaps == {"intelex": "not installed"}


def test_growth_is_the_slope_of_seconds_per_iteration():
    lines = []
    for k, seconds in ((1000, 1.0), (4096, 2.0), (16384, 4.0)):
        line = line_of(f"glove100 k={k}", "k2means", {})
        line["curve"] = [[t, 5 + t * seconds, 1.1] for t in range(1, 30)]
        lines.append(line)
    found = race_tables.growth(found_of(*lines), "k", "k2means")
    assert found.points == [(1000, 1.0), (4096, 2.0), (16384, 4.0)]
    assert found.slope == pytest.approx(0.5, abs=0.01)


def test_an_empty_race_still_gives_a_page():
    text = race_report.to_markdown(race_report.page({}))
    assert "not run" in text
    assert re.search(r"usps k=200.*not run", text)


# ---- rows and the command line -----------------------------------------------------------------------------------


def test_rows_are_chosen_by_name_by_data_and_by_group():
    assert [r.name for r in race_data.chosen(["mnist"])] == ["mnist k=200", "mnist k=1000"]
    assert [r.name for r in race_data.chosen(["glove100 k=4096"])] == ["glove100 k=4096"]
    assert {r.name for r in race_data.chosen(["scaling"])} == set(race_data.OVER_N)
    assert [r.name for r in race_data.chosen([])] == list(race_data.ROWS)
    with pytest.raises(ValueError, match="there is no row 'nothing'"):
        race_data.chosen(["nothing"])


def test_generated_rows_are_the_same_every_time():
    for make in (race_data.tree_mixture, race_data.noise, race_data.zipf):
        a, b = make("", n=2000), make("", n=2000)
        assert a.dtype == np.float32
        assert np.array_equal(a, b)
    share = np.bincount(np.unique(race_data.zipf("", n=2000, d=2).round(), axis=0, return_inverse=True)[1])
    assert share.max() > 5 * np.median(share)


def test_a_dry_run_runs_nothing_and_own_vectors_are_a_row(tmp_path, capsys):
    np.save(tmp_path / "mine.npy", X)
    options = ["--results", str(tmp_path / "results"), "--session", "now"]
    own = ["race", "--data", str(tmp_path / "mine.npy"), "--k", "7", *options]
    assert command.main([*own, "--dry-run"]) == 0
    assert re.search(r"session now\nmine k=7 +0/\d+ repetitions, reference 0/3 seeds", capsys.readouterr().out)
    assert not (tmp_path / "results").exists()
    assert command.main([*own, "--runners", "k2means", "--repeat", "1", "--patience", "0", "--memory"]) == 0
    lines = runner.read_results(tmp_path / "results")
    assert lines["race/now/mine k=7/k2means/seed=0/rep=0"]["n"] == 400
    assert lines["memory/now/mine k=7/k2means"]["peak"] >= lines["memory/now/mine k=7/k2means"]["before"] > 0


@pytest.mark.parametrize("wrong", [["--runners", "nobody"], ["--k", "3"], ["nothing"], ["--repeat", "0"]])
def test_a_wrong_request_is_told(wrong, capsys):
    with pytest.raises(SystemExit):
        command.main(["race", *wrong])
    assert "error" in capsys.readouterr().err


def test_a_row_is_as_everybody_gets_it():
    row = replace(ROW, vectors=lambda name: np.asfortranarray(X.astype(np.float64)))
    assert row.load().dtype == np.float32
    assert row.load().flags.c_contiguous
