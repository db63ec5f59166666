"""The report: what a cell is, what is compared with what, and that the page says so."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from experiments import render, report, runner, tables
from experiments.datasets import DATASETS
from experiments.plans import LEVELS, SCOPES, Cell, Spec, cells, parameters
from experiments.tables import ABSENT, COLUMNS, FAILED, K2, K2_ALL, K2_AUTO, NOT_RUN, REACHED, Entry, Value

CELL = Cell("speedup", "usps", 50, (0, 1, 2), 3)
GDI_OPS = {"distances": 40.0, "products": 40.0, "additions": 40.0, "sorts": 10.0}
LEVEL = 0.01


def spec_of(title, seed, parameter=None, cell=CELL):
    c = COLUMNS[title]
    return Spec(cell.dataset, cell.k, c.method, c.parameter or parameter, c.init, seed, c.stop_of(cell))


def line_of(spec, ops, ended="reached", levels=LEVELS, energy=1.0):
    """A run that reaches `levels` with `ops`, or none of them if `ops` is None."""
    plusplus = {"distances": 100.0, "products": 0.0, "additions": 0.0, "sorts": 0.0}
    init_ops = {"gdi": GDI_OPS, "k-means++": plusplus}.get(spec.init, dict.fromkeys(GDI_OPS, 0.0))
    n, d = runner.shape_of(spec.dataset)
    return {
        "key": spec.key,
        **spec.as_dict(),
        "n": n,
        "d": d,
        "energy": energy,
        "init_ops": init_ops,
        "ended": ended,
        "hits": {} if ops is None else {str(level): [3, float(ops)] for level in levels},
        "trace": [[1, 1.5 * energy, 5.0], [2, energy, 10.0]],
        "seconds": 0.5,
        "versions": {"k2means": "0", "numpy": "0", "python": "0"},
        "machine": "none",
    }


def results_with(*lines):
    return tables.results_of({line["key"]: line for line in lines})


def lloyd_lines(ops=900, cell=CELL):
    """Lloyd++ needs 100 for k-means++ and so many for iterations."""
    return [line_of(spec_of("Lloyd++", seed, cell=cell), ops, "converged") for seed in cell.seeds]


def searched(title, ops_by_parameter, cell=CELL):
    """Runs with every parameter; those that are not named fail with the first seed."""
    lines = []
    for parameter in parameters(cell.k):
        for seed, ops in zip(cell.seeds, ops_by_parameter.get(parameter, [None]), strict=False):
            lines.append(line_of(spec_of(title, seed, parameter, cell), ops, "converged" if ops is None else "reached"))
    return lines


def value(title, *lines, level=LEVEL):
    return tables.speedup(results_with(*lines), CELL, COLUMNS[title], level)


# What a cell is.


def test_a_cell_is_the_mean_over_seeds_of_the_ratios_with_initialisations():
    elkan = [line_of(spec_of("Elkan++", seed), ops) for seed, ops in enumerate((100, 300, 900))]
    assert value("Elkan++", *lloyd_lines(), *elkan).number == pytest.approx((1000 / 200 + 1000 / 400 + 1000 / 1000) / 3)


def test_lloyd_plus_plus_is_its_own_measure():
    assert value("Lloyd++", *lloyd_lines()) == Value(1.0, REACHED)


def test_a_seed_that_does_not_reach_the_level_fails_the_cell():
    lloyd = [line_of(spec_of("Lloyd", seed), ops, "converged") for seed, ops in enumerate((500, None, 500))]
    assert value("Lloyd", *lloyd_lines(), *lloyd).state == FAILED


def test_the_level_decides():
    lloyd = [line_of(spec_of("Lloyd", seed), 500, levels=(0.01, 0.02)) for seed in CELL.seeds]
    assert value("Lloyd", *lloyd_lines(), *lloyd, level=0.02).number == 2.0
    assert value("Lloyd", *lloyd_lines(), *lloyd, level=0.0).state == FAILED


@pytest.mark.parametrize("missing", range(3))
def test_a_missing_run_leaves_the_cell_not_run(missing):
    lloyd = [line_of(spec_of("Lloyd", seed), 500) for seed in CELL.seeds]
    assert value("Lloyd", *lloyd_lines(), *(x for x in lloyd if x["seed"] != missing)).state == NOT_RUN
    assert value("Lloyd", *(x for x in lloyd_lines() if x["seed"] != missing), *lloyd).state == NOT_RUN


def test_runs_left_out_after_a_seed_failed_at_every_level_are_a_failure():
    assert value("AKM", *lloyd_lines(), *searched("AKM", {})).state == FAILED


def test_a_parameter_not_tried_yet_leaves_the_cell_not_run():
    lines = searched("AKM", {30: (500, 500, 500)})
    assert value("AKM", *lloyd_lines(), *lines).number == 2.0
    assert value("AKM", *lloyd_lines(), *(x for x in lines if x["parameter"] != 3)).state == NOT_RUN


def test_the_parameter_is_chosen_on_the_mean_over_seeds():
    lines = searched("AKM", {30: (100, 100, 1000), 20: (300, 300, 300), 50: (50, 50, None)})
    chosen = value("AKM", *lloyd_lines(), *lines)
    assert chosen.parameter == 20
    assert chosen.number == pytest.approx(1000 / 300)


def test_a_pruned_run_is_no_candidate_but_what_it_reached_before_counts():
    lines = searched("AKM", {30: (400, 400, 400), 20: (100, 100, 100)})
    late = next(x for x in lines if (x["parameter"], x["seed"]) == (20, 1))
    late |= {"ended": "pruned", "hits": {"0.02": [1, 100.0]}}
    assert value("AKM", *lloyd_lines(), *lines).parameter == 30
    assert value("AKM", *lloyd_lines(), *lines, level=0.02).parameter == 20


def test_gdi_has_two_counts_and_one_choice():
    lines = [*lloyd_lines(), *searched(K2, {30: (50, 50, 50), 20: (40, 40, 40)})]
    assert value(K2, *lines) == Value(pytest.approx(1000 / (50 + 40)), REACHED, 20)
    assert value(K2_ALL, *lines) == Value(pytest.approx(1000 / (130 + 40)), REACHED, 20)
    auto = [line_of(spec_of(K2_AUTO, seed), 50) for seed in CELL.seeds]
    assert value(K2_AUTO, *lines, *auto) == Value(pytest.approx(10.0), REACHED)


def test_minibatch_is_measured_over_its_own_seeds():
    mnist = Cell("speedup", "mnist", 50, (0, 1, 2), 1)
    one = line_of(spec_of("MiniBatch", 0, cell=mnist), 500)
    found = tables.speedup(results_with(*lloyd_lines(cell=mnist), one), mnist, COLUMNS["MiniBatch"], LEVEL)
    assert found.number == 2.0


# The paper's numbers, and averages.


# The last rows of Tables 5 and 6.
@pytest.mark.parametrize(
    ("level", "title", "average"),
    [
        (0.01, "AKM", 8.7),
        (0.01, "Elkan++", 3.6),
        (0.01, "Elkan", 4.7),
        (0.01, "Lloyd", 1.1),
        (0.01, K2, 33.0),
        (0.0, "AKM", 5.9),
        (0.0, "Elkan++", 17.9),
        (0.0, "Elkan", 25.0),
        (0.0, "Lloyd", 3.0),
        (0.0, K2, 104.1),
    ],
)
def test_averages_of_the_papers_cells_are_those_it_prints(level, title, average):
    rows = tables.speedup_rows(results_with(), level, tables.MAIN_KS, main=True)
    assert round(tables.own_average(r.entries[title] for r in rows).paper, 1) == average


def test_means_of_the_papers_table_7_are_its_table_4():
    by_k, means = tables.paper_rows("init_energy_by_k.csv"), tables.paper_rows("init_energy.csv")
    for (dataset, _), row in means.items():
        for column in row if dataset != "average" else ():
            numbers = [by_k[dataset, k][column].number for k in tables.INIT_KS]
            # Table 7 has two decimals, so the mean of three is off by at most 0.005, and Table 4 by 0.0005.
            assert sum(numbers) / 3 == pytest.approx(row[column].number, abs=0.0055 + 1e-9)


def entry(ours, paper):
    def of(x):
        return Value(x, REACHED) if isinstance(x, float) else Value(state=x)

    return Entry(of(ours), of(paper))


def test_averages_are_compared_over_the_same_cells():
    entries = [entry(10.0, 20.0), entry(30.0, 20.0), entry(FAILED, 500.0), entry(90.0, FAILED), entry(7.0, ABSENT)]
    same = tables.common_average(entries)
    assert (same.ours, same.paper, same.ratio, same.ours_cells) == (20.0, 20.0, 1.0, 2)
    own = tables.own_average(entries)
    assert (own.ours, own.ours_cells, own.paper, own.paper_cells) == (137.0 / 4, 4, 180.0, 3)


def test_every_cell_of_the_paper_is_counted_once():
    kinds = {50: entry(8.0, 10.0), 100: entry(10.0, 10.0), 200: entry(12.0, 10.0), 500: entry(FAILED, 10.0)}
    kinds |= {
        1000: entry(10.0, FAILED),
        1001: entry(FAILED, FAILED),
        1002: entry(NOT_RUN, 1.0),
        1003: entry(1.0, ABSENT),
    }
    tally = tables.tally([tables.Row("usps", k, 3, 3, {K2: e}) for k, e in kinds.items()], K2)
    assert (tally.below, tally.within, tally.above) == (
        ["usps k=50 (0.80)"],
        ["usps k=100 (1.00)"],
        ["usps k=200 (1.20)"],
    )
    assert (tally.paper_only, tally.ours_only) == (["usps k=500"], ["usps k=1000"])
    assert (tally.neither, tally.not_run) == (["usps k=1001"], ["usps k=1002"])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (entry(25.34, 24.6), "25.3 / 24.6 = 1.03"),
        (entry(FAILED, 24.6), "- / 24.6"),
        (entry(12.0, FAILED), "12.0 / -"),
        (entry(NOT_RUN, 24.6), "not run / 24.6"),
        (entry(12.0, ABSENT), "12.0"),
    ],
)
def test_a_cell_shows_ours_the_papers_and_the_ratio(given, text):
    assert report.entry_text(given) == text


# Initialisations and complexity.


def init_lines(seed, **energies):
    names = {"random": "random", "plusplus": "k-means++", "gdi": "gdi"}
    return [
        line_of(Spec("usps", 100, "lloyd", None, names[name], seed, "converged"), 1, energy=energy)
        for name, energy in energies.items()
    ]


def test_initialisations_are_relative_to_kmeans_plus_plus_over_complete_seeds():
    lines = [
        *init_lines(0, random=30.0, plusplus=20.0, gdi=16.0),
        *init_lines(1, random=50.0, plusplus=30.0, gdi=24.0),
        *init_lines(2, random=1.0, plusplus=1.0),
    ]
    row = next(r for r in tables.init_rows(results_with(*lines), by_k=True) if (r.dataset, r.k) == ("usps", 100))
    ours = {column: e.ours.number for column, e in row.entries.items()}
    assert row.seeds == (2, 2)
    assert (ours["avg_energy_random"], ours["avg_energy_gdi"]) == (1.6, 0.8)
    assert (ours["min_energy_random"], ours["min_energy_gdi"]) == (1.5, 0.8)
    assert (ours["ops_gdi"], ours["ops_gdi_all"]) == (0.5, 1.3)  # 40 + 10 and 130, by 100
    assert row.entries["avg_energy_gdi"].paper.number == 0.99


def test_the_mean_over_k_waits_for_every_k():
    lines = init_lines(0, random=30.0, plusplus=20.0, gdi=16.0)
    row = next(r for r in tables.init_rows(results_with(*lines), by_k=False) if r.dataset == "usps")
    assert row.entries["avg_energy_gdi"].ours.state == NOT_RUN


def points_where(count):
    base = tables.BASE
    shapes = [base, *(base | {a: base[a] * f} for a in base for f in (2, 4))]
    return [s | {"count": count(s)} for s in shapes]


def test_exponents_and_terms_are_recovered():
    power = tables.growth(points_where(lambda s: 3.0 * s["n"] * s["k"] ** 2))
    assert power.at_base == 3.0 * 20000 * 200**2
    assert power.exponents == pytest.approx({"n": 1.0, "k": 2.0, "parameter": 0.0}, abs=1e-9)
    made = points_where(lambda s: 0.5 * s["n"] * s["parameter"] + 2.0 * s["k"] * (s["k"] - 1) / 2)
    assert tables.fit_terms(made, ("n·k_n", "k(k−1)/2")).factors == pytest.approx((0.5, 2.0))


def test_a_batch_is_what_minibatch_is_counted_by():
    spec = Spec("mixture-20000", 200, "minibatch", None, "random", 0, "converged")
    line = line_of(spec, None) | {"distances": [20000 * 200] * 2}
    found = next(c for c in tables.complexities(results_with(line)) if c.method == "minibatch")
    assert found.first.at_base == 100 * 200


# The page.


class Seen(HTMLParser):
    """What a browser would fetch, and the text of each element."""

    def __init__(self):
        super().__init__()
        self.fetched, self.text = [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.fetched += [attrs[a] for a in ("src", "data", "xlink:href") if a in attrs]
        self.fetched += [attrs["href"]] if "href" in attrs and tag != "a" else []

    def handle_data(self, data):
        self.text.append(data)


def some_results():
    """Lines of a real dataset and of a stand-in, enough for every kind of section."""
    caltech = Cell("speedup", "cnncaltech*", 200, (0, 1, 2), 1)
    lines = [*init_lines(0, random=30.0, plusplus=20.0, gdi=16.0)]
    for cell in (CELL, caltech):
        lines += [*lloyd_lines(cell=cell), *searched(K2, {20: (20, 20, 20)}, cell), *searched("AKM", {}, cell)]
        for title in ("Elkan++", "Elkan", "Lloyd", K2_AUTO, "MiniBatch"):
            lines += [line_of(spec_of(title, s, cell=cell), 150) for s in COLUMNS[title].seeds(cell)]
    return results_with(*lines)


def write_page(results, folder, monkeypatch):
    monkeypatch.setattr(tables, "read", lambda _: results)
    report.write(folder / "results", folder)
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_same_results_give_the_same_bytes(tmp_path, monkeypatch):
    first = write_page(some_results(), tmp_path / "a", monkeypatch)
    second = write_page(some_results(), tmp_path / "b", monkeypatch)
    assert first == second
    assert len(first) >= 2


def test_the_html_fetches_nothing():
    seen = Seen()
    page = render.to_html(report.page(some_results()))
    seen.feed(page)
    assert [x for x in seen.fetched if not x.startswith("#")] == []
    assert not re.search(r"@import|url\((?!#)|<script|<link", page)


def test_ids_of_the_html_are_unique_between_figures():
    page = render.to_html(report.page(some_results()))
    owners = {}
    for svg, name in zip(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL), "abcd", strict=False):
        for found in re.findall(r'\bid="([^"]+)"', svg):
            assert owners.setdefault(found, name) == name
    assert owners


def test_every_table_and_figure_with_a_stand_in_says_what_it_is():
    starred = [name for name, data in DATASETS.items() if data.stand_in]
    for part in report.page(some_results()):
        if isinstance(part, render.Table) and part.header[0] == "dataset":
            for name in starred:
                if any(row[0] == render.plain(name) for row in part.rows):
                    note = next(n for n in part.notes if n.startswith(render.plain(name)))
                    assert DATASETS[name].paper in note
                    assert render.plain(DATASETS[name].note) in note
        if isinstance(part, render.Picture):
            assert all(render.plain(DATASETS[n].note) in part.caption for n in starred if n in part.svg)


def test_no_row_has_the_name_of_a_dataset_that_is_not_the_papers():
    unpublished = {data.paper for data in DATASETS.values() if data.stand_in}
    rows = [r for p in report.page(some_results()) if isinstance(p, render.Table) for r in p.rows]
    assert not [r for r in rows if r[0] in unpublished]


def table_titled(parts, start):
    return next(p for p in parts if isinstance(p, render.Table) and p.title.startswith(start))


def cell_text(table, dataset, k, column):
    row = next(r for r in table.rows if r[0] == render.plain(dataset) and r[2] == str(k))
    return row[table.header.index(column)]


def test_the_papers_numbers_stand_in_their_cells():
    parts = report.page(some_results())
    assert "**24.6**" in cell_text(table_titled(parts, "Table 5"), "mnist", 200, K2)
    assert "**442.4**" in cell_text(table_titled(parts, "Table 6"), "covtype", 200, K2)
    assert "1.4" in cell_text(table_titled(parts, "Table 11"), "mnist", 50, "MiniBatch")


def test_the_best_of_a_row_is_bold_and_the_parameter_shown():
    parts = report.page(some_results())
    text = cell_text(table_titled(parts, "Table 5"), "usps", 50, K2)
    assert text == "**14.3** / **11.8** = 1.21 <small>(k_n 20)</small>"  # 1000 / (50 + 20)
    assert cell_text(table_titled(parts, "Table 5"), "usps", 50, "AKM") == "- / 5.3"
    assert cell_text(table_titled(parts, "Table 5"), "mnist", 50, "AKM") == "not run / 7.3"


def test_the_summary_compares_and_judges():
    text = render.to_markdown(report.summary(some_results()))
    ours = (1000 / 70 + 1000 / 70) / 2
    assert f"{ours:.1f} / {(11.8 + 19.2) / 2:.1f} = {ours / 15.5:.2f}, on average over the 2 cells" in text
    assert "above 1.1 of the paper's (ratio) | usps k=50 (1.21)" in text
    assert "below 0.9 of the paper's (ratio) | cnncaltech\\* k=200 (0.74)" in text
    assert "Stand-ins (starred; notes above): cnncaltech\\*, tiny10k\\*, tinygist10k\\*" in text


def test_without_results_the_page_says_so(tmp_path, capsys):
    report.write(tmp_path / "none", tmp_path / "docs")
    text = (tmp_path / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "not run / 24.6" in text.replace("**", "")
    assert "Left out: not run." in text
    assert capsys.readouterr().out.count("\n") == 1


def test_remarks_are_taken_in(tmp_path, monkeypatch):
    remarks = tmp_path / "remarks.md"
    remarks.write_text(
        "Why **so** & `a<b`.\n\n- one\n  more\n- [two](https://example.org/x)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    monkeypatch.setattr(report, "REMARKS", remarks)
    parts = report.remarks(SimpleNamespace())
    page = render.to_html([render.Heading("x", 1), *parts])
    assert "<p>Why <b>so</b> &amp; <code>a&lt;b</code>.</p>" in page
    assert '<ul><li>one more</li><li><a href="https://example.org/x">two</a></li></ul>' in page
    assert re.search(r"<td[^>]*>1</td><td[^>]*>2</td>", page)
    assert remarks.read_text().strip() in render.to_markdown(parts)


@pytest.mark.parametrize("name", ["cnncaltech*", "a|b", "<b>", "x`y", "[a](b)", "\\"])
def test_names_come_out_as_they_are(name):
    seen = Seen()
    seen.feed(render.inline(render.plain(name)))
    assert "".join(seen.text) == name


# The smoke plan from end to end.


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smoke")
    for cell in cells("smoke"):
        for line in runner.run_cell(cell, runner.read_results(folder), n_threads=1):
            runner.append(folder, cell.plan, line)
    report.write(folder, folder / "docs")
    return folder


def test_the_smoke_plan_makes_a_page_with_its_rows_and_figures(smoke):
    results = tables.read(smoke)
    assert results.datasets == ("smoke",)
    rows = tables.speedup_rows(results, 0.02)
    assert [r.k for r in rows] == list(SCOPES["smoke"].ks)
    for row in rows:
        assert all(e.ours.state != NOT_RUN and e.paper.state == ABSENT for e in row.entries.values())
    text = (smoke / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "| smoke | 600×8 | 10 | 2, MiniBatch 1 |" in text
    for link in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert ET.fromstring((smoke / "docs" / link).read_text(encoding="utf-8")).tag.endswith("svg")
    assert len(list((smoke / "docs" / "figures").iterdir())) == 4


def test_a_real_dataset_takes_the_place_of_the_smoke_rows(smoke):
    lines = tables.read(smoke).lines
    both = tables.results_of(lines | {x["key"]: x for x in lloyd_lines()})
    assert "smoke" not in both.datasets
    assert "usps" in both.datasets


def test_a_result_cut_off_is_left_out(smoke, tmp_path):
    (tmp_path / "m").mkdir()
    whole = next(smoke.glob("*/speedup.jsonl")).read_text(encoding="utf-8")
    (tmp_path / "m" / "speedup.jsonl").write_text(whole[: len(whole) // 2], encoding="utf-8")
    report.write(tmp_path, tmp_path / "docs")
    assert "not run" in (tmp_path / "docs" / "reproduction.md").read_text(encoding="utf-8")


def test_results_are_only_read(smoke):
    before = {p: p.read_bytes() for p in smoke.glob("*/*.jsonl")}
    report.write(smoke, smoke / "again")
    assert {p: p.read_bytes() for p in smoke.glob("*/*.jsonl")} == before


def test_columns_of_the_paper_are_in_its_files():
    for level in LEVELS:
        columns = set(next(iter(tables.paper_speedups(level).values())))
        assert columns == {c.paper for c in COLUMNS.values() if c.paper}
    assert replace(COLUMNS[K2], title=K2_ALL, paper="", all_charged=True) == COLUMNS[K2_ALL]
