"""The page of a clustering: its numbers, its bytes, and what it does in a browser."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from k2means import Ops, page
from k2means.loop import Record
from k2means.page import Summary, centers_map, curve, neighbors, render, summarize, write_page

LIMIT = 5_000_000
HOSTILE = [
    "</script><script>document.title='broken'</script>",
    "<!-- <script>",
    "\"quoted\" 'single' `back` ${x} \\u003c \\",
    "<img src=x onerror=document.title='broken'>",
    "日本語 naïve 👩‍🔬 \u202eright to left\u202c",
    "line\nbreak\ttab\u2028\u2029\x00\x7f",
    "lone \ud800 surrogate",
    "{{data}} {{title}}",
    "]]> --> &lt;/script&gt; &amp;",
]


def random_summary(k, d=8, seed=0, depth=3):
    """Centers and numbers as a fit might leave them; row r is an example of cluster r // depth."""
    rng = np.random.default_rng(seed)
    sizes = np.maximum(depth, rng.lognormal(3, 1, k)).astype(np.int64)
    sizes[k // 2] = 0
    energies = rng.gamma(3, 1.0, k) * sizes
    trace = [(0.1 * i, 1e5 / i, 1000 // i) for i in range(1, 16)]
    examples = [[(depth * j + i, 0.1 + i) for i in range(min(depth, sizes[j]))] for j in range(k)]
    return Summary("a title", rng.normal(size=(k, d)), sizes, energies, trace, {"method": "k2"}, examples)


def with_names(summary, make=lambda row: f"name {row}"):
    return replace(summary, names=[make(row) for row in range(int(summary.sizes.sum()))])


@pytest.fixture(scope="module")
def many():
    """10 000 clusters; rows named after the cluster they are examples of."""
    return with_names(random_summary(10_000), lambda row: f"word{row // 3} of row {row}")


@pytest.fixture(scope="module")
def many_page(many, tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "page.html"
    write_page(path, many)
    return path


@pytest.fixture
def few():
    return with_names(random_summary(10), lambda row: f"word{row // 3} of row {row}")


@pytest.fixture
def pictures(tmp_path):
    """A function that makes `n` files with noise in them, which no format makes much smaller."""
    image = pytest.importorskip("PIL.Image")

    def build(n, side=32, distinct=20):
        rng = np.random.default_rng(0)
        paths = []
        for i in range(min(n, distinct)):
            noise = rng.integers(0, 256, size=(side, side * 3 // 2, 3), dtype=np.uint8)
            paths.append(tmp_path / f"{i}.png")
            image.fromarray(noise).save(paths[-1])
        return [paths[i % len(paths)] for i in range(n)]

    return build


class Reader(HTMLParser):
    """What a browser makes of the tags: elements, and the text of the scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data

    @property
    def payload(self):
        return json.loads(self.scripts[0])


# ---- from the data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_the_summary_is_what_numpy_says(dtype, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 70)  # ten rows
    rng = np.random.default_rng(1)
    x = (rng.random((203, 7)) * 100).astype(dtype)
    centers, labels = rng.random((9, 7)).astype(np.float32) * 100, rng.integers(0, 8, 203)  # nobody in the last one
    summary = summarize(x, centers, labels, n_examples=4)
    squares = ((x.astype(np.float64) - centers[labels]) ** 2).sum(axis=1)
    for j in range(9):
        members = np.flatnonzero(labels == j)
        assert summary.sizes[j] == len(members)
        assert summary.energies[j] == pytest.approx(squares[members].sum(), rel=1e-12)
        nearest = sorted((squares[i], i) for i in members)[:4]
        assert [row for row, _ in summary.examples[j]] == [i for _, i in nearest]
        assert [d for _, d in summary.examples[j]] == pytest.approx([s**0.5 for s, _ in nearest], rel=1e-12)
    assert summary.sizes.dtype == np.int64
    assert summary.energies.dtype == np.float64
    assert summary.parameters["rows"] == "203"


def test_of_rows_at_the_same_distance_the_first_are_the_examples():
    summary = summarize(np.ones((6, 2)), np.zeros((1, 2)), np.zeros(6, dtype=int), n_examples=3)
    assert [row for row, _ in summary.examples[0]] == [0, 1, 2]


def test_a_file_of_rows_is_read_in_blocks_and_never_copied_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 1 << 15)
    x = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(20_000, 100))
    x[:] = 1.0
    tracemalloc.start()
    try:
        summary = summarize(x, np.zeros((5, 100), dtype=np.float32), np.arange(20_000) % 5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert summary.energies.tolist() == [400_000.0] * 5
    assert peak < x.nbytes / 4


@pytest.mark.parametrize("labels", [np.zeros(3, dtype=int), np.full(4, 2), np.array([0, 0, 0, -1])])
def test_labels_that_do_not_fit_are_refused(labels):
    with pytest.raises(ValueError, match="labels"):
        summarize(np.zeros((4, 2)), np.zeros((2, 2)), labels)


def test_the_curve_adds_up_the_seconds_of_the_iterations():
    trace = [Record(i, 10.0 / i, Ops(), 5 - i, 0.0, 0.25) for i in (1, 2, 3)]
    assert curve(trace) == [(0.25, 10.0, 4), (0.5, 5.0, 3), (0.75, 10.0 / 3, 2)]
    assert curve([]) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sizes": np.ones(9, dtype=np.int64)}, "sizes"),
        ({"energies": np.ones(11)}, "energies"),
        ({"names": ["one"]}, "names"),
        ({"images": []}, "images"),
        ({"examples": [[]]}, "examples"),
        ({"examples": [[(10**6, 0.0)]] * 10}, "row 1000000"),
        ({"centers": np.zeros(10)}, "centers"),
    ],
)
def test_a_summary_whose_parts_do_not_fit_is_refused(few, change, word):
    with pytest.raises(ValueError, match=word):
        replace(few, **change)


# ---- the map ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d"), [(40, 3), (30, 200), (500, 40), (5, 1), (2, 9), (17, 2)])
def test_the_map_is_the_first_two_principal_coordinates(k, d, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 1000)
    rng = np.random.default_rng(k)
    centers = rng.normal(size=(k, d)) * 0.5 ** np.arange(d) + 100
    points, share = centers_map(centers)
    middle = centers - centers.mean(axis=0)
    u, s, _ = np.linalg.svd(middle, full_matrices=False)
    wanted = np.zeros((k, 2))
    wanted[:, : len(s)] = (u * s)[:, :2]
    scale = np.abs(wanted).max() / np.abs(points).max()
    for axis in (0, 1):
        sign = np.sign((points[:, axis] * wanted[:, axis]).sum()) or 1.0
        # the passes end when they gain 1e-7 of the variance: an axis is then right to its root
        assert points[:, axis] * scale * sign == pytest.approx(wanted[:, axis], abs=3e-3 * np.abs(wanted).max())
    assert share == pytest.approx((s[:2] ** 2).sum() / (s**2).sum(), rel=1e-5)


def test_where_no_axis_stands_out_the_map_still_shows_almost_as_much_as_it_can():
    centers = np.random.default_rng(0).normal(size=(1000, 100))
    s = np.linalg.svd(centers - centers.mean(axis=0), compute_uv=False) ** 2
    assert centers_map(centers)[1] >= 0.97 * s[:2].sum() / s.sum()


@pytest.mark.parametrize("centers", [np.zeros((5, 3)), np.full((1, 4), 7.0), np.full((3, 2), 1e300)], ids=str)
def test_centers_in_one_place_are_one_point(centers):
    assert not centers_map(centers)[0].any()


@pytest.mark.parametrize("unit", [1e300, 1e-300, -1.0])
def test_the_map_does_not_depend_on_the_unit(unit):
    centers = np.random.default_rng(0).normal(size=(30, 5))
    (a, share), (b, same) = centers_map(centers), centers_map(centers * unit)
    assert same == pytest.approx(share)
    scale = np.abs(a).max() / np.abs(b).max()
    assert np.abs(b) * scale == pytest.approx(np.abs(a), abs=1e-3)


def test_centers_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="finite"):
        centers_map(np.array([[0.0], [np.nan]]))


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("k", [1, 2, 4, 300])
def test_neighbors_are_the_nearest_centers(k, shift, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 100)
    centers = np.random.default_rng(0).normal(size=(k, 6)) + shift
    near, gaps = neighbors(centers)
    distances = np.sqrt(((centers[:, None] - centers[None]) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    wanted = np.argsort(distances, axis=1, kind="stable")[:, : min(3, k - 1)]
    assert near.tolist() == wanted.tolist()
    assert gaps == pytest.approx(np.take_along_axis(distances, wanted, axis=1))


def test_twins_are_each_others_neighbors_at_distance_zero():
    near, gaps = neighbors(np.repeat(np.arange(6.0), 2)[:, None])
    assert near[:, 0].tolist() == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10]
    assert not gaps[:, 0].any()


@pytest.mark.parametrize("limit", [{"MAX_GRAPH": 9}, {"GRAPH_WORK": 100.0}])
def test_too_large_a_graph_is_left_out_and_the_page_says_so(few, limit, monkeypatch):
    for name, value in limit.items():
        monkeypatch.setattr(page, name, value)
    text = render(few)
    assert "neighbour graph is left out" in text
    assert "near" not in Reader(text).payload


# ---- the file --------------------------------------------------------------------------------------------------------


def test_the_page_loads_nothing_and_evaluates_nothing(few):
    text = render(few)
    assert not re.search(r"https?://", text)
    assert not re.search(
        r"\beval\b|\bFunction\s*\(|innerHTML|insertAdjacentHTML|document\.write|\bfetch\b|import\s*\(", text
    )
    reader = Reader(text)
    sources = [value for name, value in reader.attributes if name in ("src", "href", "action", "data", "srcset")]
    assert sources == ["data:,"]
    policy = next(value for name, value in reader.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_hostile_texts_stay_texts(few):
    names = [HOSTILE[row % len(HOSTILE)] for row in range(int(few.sizes.sum()))]
    hostile = replace(few, names=names, title=HOSTILE[0], parameters={h: h for h in HOSTILE})
    text = render(hostile)
    text.encode("utf-8")
    reader = Reader(text)
    assert reader.tags.count("script") == Reader(render(few)).tags.count("script") == 2
    assert "img" not in reader.tags
    shown = [hostile.names[row].replace("\ud800", "\ufffd") for nearest in few.examples for row, _ in nearest]
    assert reader.payload["names"] == shown
    assert reader.scripts[1] == Reader(render(few)).scripts[1]


def test_the_same_summary_gives_the_same_bytes(few, pictures):
    few = replace(few, images=pictures(len(few.names)))
    assert render(few) == render(few)


def test_with_many_clusters_the_page_is_under_5_mb(many_page):
    assert many_page.stat().st_size < LIMIT
    assert len(Reader(many_page.read_text(encoding="utf-8")).payload["sizes"]) == 10_000


def test_long_names_and_noisy_pictures_get_only_what_the_numbers_leave(pictures, monkeypatch):
    monkeypatch.setattr(page, "PAGE_BYTES", 1_500_000)  # a smaller page of fewer clusters, to be quick
    monkeypatch.setattr(page, "QUALITIES", page.QUALITIES[-1:])  # noise fits with no better one
    summary = with_names(random_summary(2000, depth=8), lambda row: f"<{row}> " + "a long name with 日本語 " * 20)
    text = render(replace(summary, images=pictures(len(summary.names))))
    assert len(text.encode("utf-8")) < 1_500_000
    payload = Reader(text).payload
    assert "Names are cut" in text
    assert len(payload["names"]) == len(payload["rows"])
    assert "pictures are shown" in text
    cells = np.array(payload["pictures"]["cells"])
    assert (cells < 0).any()
    first = np.cumsum([0, *payload["counts"][:-1]])[np.array(payload["counts"]) > 0]
    assert (cells[first] >= 0).all(), "every cluster has the picture of its nearest row before any has two"


def test_with_100_000_clusters_the_page_is_under_5_mb():
    assert len(render(random_summary(100_000, d=2, depth=1)).encode("utf-8")) < LIMIT


def test_with_few_clusters_the_page_is_small(few, pictures):
    text = render(replace(few, images=pictures(len(few.names), side=200)))
    assert len(text.encode("utf-8")) < 1_000_000
    assert Reader(text).payload["pictures"]["side"] == page.MAX_SIDE


def test_numbers_without_a_finite_value_are_left_blank(few):
    energies = few.energies.copy()
    energies[:2] = np.inf, np.nan
    text = render(replace(few, energies=energies, trace=[(0.1, float("inf"), 3)]))
    payload = Reader(text).payload
    assert "<dt>energy</dt><dd>–</dd>" in text
    assert payload["energies"][:2] == [None, None]
    assert payload["trace"]["energies"] == [None]


def test_a_long_trace_is_thinned_but_keeps_its_ends(few):
    trace = [(float(i), 1e6 - i, i) for i in range(1, 100_001)]
    payload = Reader(render(replace(few, trace=trace))).payload["trace"]
    assert len(payload["seconds"]) == page.MAX_POINTS
    assert (payload["iterations"][0], payload["iterations"][-1]) == (1, 100_000)


def test_a_picture_that_cannot_be_read_is_named_and_the_others_are_shown(few, pictures, tmp_path):
    images = pictures(len(few.names))
    images[0] = tmp_path / "no picture.png"
    images[0].write_bytes(b"no picture")
    text = render(replace(few, images=images))
    cells = Reader(text).payload["pictures"]["cells"]
    assert cells[0] == -1
    assert sorted(cells)[1:] == list(range(len(cells) - 1))
    assert "no picture.png" in text


def test_without_pillow_small_pictures_are_taken_as_they_are(few, pictures, monkeypatch):
    images = pictures(len(few.names), side=16)
    monkeypatch.setitem(sys.modules, "PIL", None)
    text = render(replace(few, images=images))
    assert text.count("data:image/png;base64,") == sum(map(len, few.examples))


def test_without_pillow_large_pictures_are_left_out_with_a_warning(few, pictures, monkeypatch):
    images = pictures(len(few.names), side=200)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.warns(RuntimeWarning, match=r"Pillow.*k2means\[plot\]"):
        text = render(replace(few, images=images))
    assert "data:image/png" not in text
    assert "0 pictures are shown" in text


def test_an_existing_file_is_written_over_only_if_asked(few, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"page\.html"):
        write_page(path, few)
    assert path.read_text() == "mine"
    write_page(path, few, overwrite=True)
    assert path.read_text(encoding="utf-8") == render(few)
    assert os.listdir(tmp_path) == ["page.html"]


def test_what_appears_while_the_page_is_made_is_not_written_over(few, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    monkeypatch.setattr(page, "render", lambda _: path.write_text("mine") and "text")
    with pytest.raises(FileExistsError):
        write_page(path, few)
    assert path.read_text() == "mine"


# ---- in a browser ----------------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HIGH = 10  # above the two descriptors the browser talks through
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """Chromium without a window, spoken to over two pipes (the DevTools protocol, messages end with a zero byte)."""

    def __init__(self, profile):
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        given = [fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH) for fd in (theirs_in, theirs_out)]
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"]
        command = [sys.executable, "-c", LAUNCH, *map(str, given), CHROMIUM, *flags, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            command, pass_fds=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        for fd in (theirs_in, theirs_out, *given):
            os.close(fd)
        self.input, self.output = ours_in, ours_out
        self.buffer, self.sent, self.events = b"", 0, []

    def call(self, method, session=None, **parameters):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        os.write(self.output, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def receive(self, seconds=60):
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], seconds)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise ConnectionError("the browser has ended")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        os.close(self.input)
        os.close(self.output)


class Tab:
    """A loaded page, and all it complained about and asked for."""

    def __init__(self, browser, path, scheme="light", size=(1280, 900)):
        self.browser, self.heard = browser, len(browser.events)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False
        )
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 60
        while self.run("document.readyState") != "complete" or self.run("location.protocol") != "file:":
            assert time.monotonic() < deadline, "the page does not load"
        self.settle()

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def settle(self):
        """Until two frames are drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        x, y = self.run(
            f"(() => {{const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})()"
        )
        self.click_at(x, y)

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)
        self.settle()

    def type(self, text):
        self.run("document.getElementById('search').value = ''; document.getElementById('search').focus()")
        self.call("Input.insertText", text=text)
        self.settle()

    def center(self, j):
        """Where a center is in the window, with the map scrolled into it."""
        self.run("document.getElementById('map').scrollIntoView({block: 'center'})")
        self.settle()
        script = "(([x, y], b, edge) => [b.x + edge + x, b.y + edge + y])"
        return self.run(f"{script}(map.place({j}), map.canvas.getBoundingClientRect(), map.canvas.clientLeft)")

    def table(self):
        """The clusters in the table, from above."""
        return self.run("[...document.querySelectorAll('#rows tr')].map(row => Number(row.dataset.cluster))")

    def complaints(self):
        self.settle()
        bad = []
        for event in self.browser.events[self.heard :]:
            method, told = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                bad.append(told)
            if method == "Network.requestWillBeSent" and told["request"]["url"].split(":")[0] not in ("file", "data"):
                bad.append(told["request"]["url"])
        return bad

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
        return path

    def close(self):
        self.call("Page.close")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome in the path")
    profile = tempfile.mkdtemp(prefix="k2means-browser-")
    started = Browser(profile)
    yield started
    started.close()
    shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture
def open_page(browser, tmp_path, many, request):
    """A function that opens the page of a summary; at the end it must have had nothing to complain about."""
    tabs = []

    def build(summary, **options):
        path = tmp_path / "page.html"
        if summary is many:
            path = request.getfixturevalue("many_page")
        else:
            write_page(path, summary)
        tabs.append(Tab(browser, path, **options))
        return tabs[-1]

    yield build
    for tab in tabs:
        complaints = tab.complaints()
        tab.close()
        assert complaints == []


@pytest.fixture(params=[10, 10_000])
def sized(request, few, many):
    return few if request.param == 10 else many


def test_a_page_that_complains_or_asks_the_net_is_noticed(browser, tmp_path):
    for bad in ("<script>console.error(1)</script>", "<script>x.y</script>", "<img src='http://127.0.0.1:9/x.png'>"):
        (tmp_path / "bad.html").write_text(bad)
        tab = Tab(browser, tmp_path / "bad.html")
        assert tab.complaints()
        tab.close()


def test_the_table_has_the_clusters_and_turns_its_pages(sized, open_page):
    tab, k = open_page(sized), len(sized.sizes)
    assert tab.table() == list(range(min(k, 50)))
    cells = tab.run("[...document.querySelectorAll('#rows tr:nth-child(2) td')].map(cell => cell.innerText)")
    assert cells[:2] == ["#1", f"{sized.sizes[1]:,}"]
    assert "word1 of row 3" in cells[-1]
    if k == 10:
        assert tab.run("document.getElementById('next').disabled")
        return
    tab.click("#next")
    assert tab.table() == list(range(50, 100))
    tab.click("#last")
    assert tab.table() == list(range(9950, 10_000))
    tab.run("document.getElementById('page').value = 3; document.getElementById('page').onchange()")
    assert tab.table() == list(range(100, 150))
    tab.click("#previous")
    assert tab.table() == list(range(50, 100))


def test_the_table_is_sorted_by_a_click_and_the_other_way_by_another(sized, open_page):
    tab = open_page(sized)
    largest = sorted(range(len(sized.sizes)), key=lambda j: (-sized.sizes[j], j))
    smallest = sorted(range(len(sized.sizes)), key=lambda j: (sized.sizes[j], j))
    tab.click("th[data-key=size] button")
    assert tab.table() == largest[:50]
    assert tab.run("document.querySelector('th[data-key=size]').ariaSort") == "descending"
    tab.click("th[data-key=size] button")
    assert tab.table() == smallest[:50]
    tab.click("th[data-key=mean] button")
    with np.errstate(invalid="ignore"):
        means = sized.energies / sized.sizes
    assert tab.table()[0] == np.nanargmax(means)
    if len(sized.sizes) == 10:
        assert tab.table()[-1] == len(means) // 2, "the empty cluster has no mean and comes last"


def test_typing_in_the_search_filters(sized, open_page):
    tab, k = open_page(sized), len(sized.sizes)
    tab.type("word7 ")
    assert tab.table() == [j for j in range(k) if str(j).startswith("7") and sized.sizes[j]][:50]
    tab.type('"WORD3 OF"')
    assert tab.table() == [3]
    tab.type("#8")
    assert tab.table() == [8]
    tab.type("size < 10")
    wanted = np.flatnonzero(sized.sizes < 10).tolist()
    assert tab.table() == wanted[:50]
    assert tab.run("document.getElementById('found').innerText").startswith(f"{len(wanted):,} of {k:,}")
    tab.type("size>=10 size<=20")
    assert tab.table() == np.flatnonzero((sized.sizes >= 10) & (sized.sizes <= 20)).tolist()[:50]
    tab.type("size<")
    assert len(tab.table()) == min(k, 50)
    assert "needs a number" in tab.run("document.getElementById('found').innerText")
    tab.type("nothing has this name")
    assert tab.table() == []
    tab.click("#clear")
    assert len(tab.table()) == min(k, 50)


def test_hovering_over_a_center_shows_its_numbers_and_a_click_its_row(sized, open_page):
    tab, k = open_page(sized), len(sized.sizes)
    far = np.abs(sized.centers).sum(axis=1)
    far[k // 2] = 0  # the empty one
    j = int(far.argmax())
    x, y = tab.center(j)
    j = tab.run(f"map.under(...map.place({j}))")  # or who is on top of it
    tab.mouse("mouseMoved", x, y)
    tab.settle()
    told = tab.run("document.getElementById('tip').innerText")
    near = neighbors(sized.centers)[0][j]
    assert tab.run("document.getElementById('tip').hidden") is False
    assert f"Cluster {j}\n" in told
    assert re.search(rf"members\s+{sized.sizes[j]:,}\n", told)
    mean = float(re.search(r"mean energy\s+([\d.,e-]+)", told)[1].replace(",", ""))
    assert mean == pytest.approx(sized.energies[j] / sized.sizes[j], rel=1e-3)
    assert ", ".join(f"#{other}" for other in near) in told
    tab.type("size=0")
    x, y = tab.center(j)
    tab.click_at(x, y)
    assert tab.run("document.querySelector('#rows tr[aria-current=true]').dataset.cluster") == str(j)
    assert tab.run("document.querySelector('#detail h3').innerText") == f"Cluster {j}"
    tab.mouse("mouseMoved", 2, 2)
    tab.settle()
    assert tab.run("document.getElementById('tip').hidden") is True


def test_the_map_zooms_about_the_pointer_and_pans(few, open_page):
    tab = open_page(few)
    x, y = tab.center(3)
    tab.click_at(x, y)
    tab.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
    tab.settle()
    assert tab.run("map.zoom") > 1.5
    assert tab.center(3) == pytest.approx([x, y], abs=2)  # the mouse is at whole pixels
    for kind, dx in (("mousePressed", 0), ("mouseMoved", 20), ("mouseMoved", 40), ("mouseReleased", 40)):
        tab.mouse(kind, x + dx, y, button="left", buttons=1, clickCount=1)
    tab.settle()
    assert tab.center(3) == pytest.approx([x + 40, y], abs=2)
    tab.run("document.getElementById('map').focus()")
    tab.press("0")
    assert tab.run("map.zoom") == 1


def test_the_curve_tells_energy_seconds_and_moved_rows(few, open_page):
    tab = open_page(few)
    tab.run("document.querySelector('#energy svg').focus()")
    tab.press("End", 35)
    told = tab.run("document.getElementById('tip').innerText")
    assert re.sub(r"\s+", " ", told) == "Iteration 15 energy 6,666.7 seconds so far 1.5 rows moved 66"
    for choice in ("input[value=iterations]", "input[name=log]"):
        tab.click(choice)
        assert tab.run("document.querySelectorAll('#energy circle.point').length") == 15
        box = "document.querySelector('#energy polyline').getBBox()"
        assert tab.run(f"{box}.width") > 300
        assert tab.run(f"{box}.height") > 100


def test_the_bars_count_all_clusters_with_members_and_list_them(sized, open_page):
    tab = open_page(sized)
    bins = tab.run("histogram.bins")
    for bin_ in bins:
        assert bin_["count"] == int(((sized.sizes >= bin_["low"]) & (sized.sizes <= bin_["high"])).sum())
    assert sum(bin_["count"] for bin_ in bins) == int((sized.sizes > 0).sum())
    tab.click("#histogram .column")
    wanted = np.flatnonzero((sized.sizes >= bins[0]["low"]) & (sized.sizes <= bins[0]["high"]))
    assert tab.table() == wanted.tolist()[:50]
    extremes = tab.run("document.getElementById('extremes').innerText")
    assert f"#{sized.sizes.argmax()} {sized.sizes.max():,}" in extremes
    least = min(np.flatnonzero(sized.sizes > 0), key=lambda j: (sized.sizes[j], j))
    assert re.search(rf"Smallest\s+#{least} {sized.sizes[least]}\b", extremes)
    assert f"#{len(sized.sizes) // 2}" in extremes.split("Empty")[1]


def test_hostile_texts_do_nothing_in_a_browser(few, open_page):
    names = [HOSTILE[row % len(HOSTILE)] for row in range(int(few.sizes.sum()))]
    tab = open_page(replace(few, names=names, title=HOSTILE[0], parameters={h: h for h in HOSTILE}))
    assert tab.run("document.title") == HOSTILE[0]
    assert tab.table() == list(range(10))
    tab.type("onerror=document")
    wanted = [j for j, nearest in enumerate(few.examples) if any(names[row] == HOSTILE[3] for row, _ in nearest)]
    assert tab.table() == wanted
    assert tab.run("document.querySelectorAll('img').length") == 0


def test_pictures_are_where_they_belong(few, tmp_path, open_page):
    image = pytest.importorskip("PIL.Image")
    images = [tmp_path / f"{row}.png" for row in range(len(few.names))]
    for row, path in enumerate(images):
        image.new("RGB", (8, 8), (row % 30 * 8, 0, 255)).save(path)
    tab = open_page(replace(few, images=images))
    tab.run("document.querySelector('#rows').scrollIntoView()")
    tab.settle()
    boxes = tab.run(
        "[...document.querySelectorAll('#rows tr')].slice(0, 4).map(row => {const b = row.querySelector('.thumb')"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})"
    )
    pixels = image.open(tab.screenshot(tmp_path / "shot.png")).convert("RGB")
    for j, (x, y) in enumerate(boxes):
        assert pixels.getpixel((round(x), round(y))) == (few.examples[j][0][0] % 30 * 8, 0, 255)


@pytest.mark.parametrize(
    "change",
    [
        {"trace": [], "examples": None, "names": None, "parameters": {}},
        {"trace": [(0.0, 5.0, 1)]},
        {"trace": [(0.1, 0.0, 1), (0.2, 0.0, 0)]},
        {"energies": np.full(10, np.inf)},
        {"centers": np.zeros((10, 1))},
    ],
    ids=["bare", "one iteration", "no energy", "no finite energy", "one place"],
)
def test_a_page_with_little_to_show_still_loads(few, open_page, change):
    assert open_page(replace(few, **change), scheme="dark").table() == list(range(10))


@pytest.mark.parametrize("size", [0, 1])
def test_a_page_of_one_cluster_loads_in_a_narrow_window(open_page, size):
    lone = Summary("lone", np.ones((1, 2)), np.array([size]), np.zeros(1), [], {})
    assert open_page(lone, size=(400, 700)).table() == [0]


def test_it_can_be_used_without_a_mouse(many, open_page):
    tab = open_page(many)
    tab.run("document.querySelector('#rows tr:nth-child(3) button').focus()")
    tab.press("Enter", 13)
    assert tab.run("document.querySelector('#detail h3').innerText") == "Cluster 2"
    assert tab.run("document.activeElement.innerText") == "#2"
    tab.run("document.querySelector('#histogram svg').focus()")
    tab.press("ArrowRight", 39)
    assert "clusters" in tab.run("document.getElementById('tip').innerText")
    tab.press("Enter", 13)
    assert tab.run("document.getElementById('search').value").startswith("size")
    unnamed = (
        "[...document.querySelectorAll('button, input, canvas[tabindex], svg[tabindex]')].filter(e => !(e.innerText"
    )
    assert tab.run(f"{unnamed} || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)") == []
