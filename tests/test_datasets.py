"""The loaders of the paper's datasets, on small files made here and a server in a thread; GIST."""

import gzip
import hashlib
import io
import os
import re
import socket
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import datasets, gist
from experiments.datasets import DATASETS, SOURCES, DatasetError, load


def rng(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def pixels(*shape):
    return rng().integers(0, 256, shape, dtype=np.uint8)


# The published formats, written.


def idx(x):
    return gzip.compress(np.array([0x803, len(x), 2, x.shape[1] // 2], ">u4").tobytes() + x.tobytes())


def cifar_tar(x):
    parts = {f"data_batch_{i + 1}.bin": part for i, part in enumerate(np.split(x, 5))}
    parts["test_batch.bin"] = x[:1] ^ 1
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in sorted(parts, reverse=True):  # the real one is not in order either
            data = np.insert(parts[name], 0, 7, axis=1).tobytes()
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def covtype_gz(x):
    return gzip.compress("".join(",".join(map(str, [*row, 5])) + "\n" for row in x.tolist()).encode())


def usps_gz(x):
    return gzip.compress("".join("6.0000 " + " ".join(f"{v:.4f}" for v in row) + " \n" for row in x).encode())


def yale_zip(x):
    names = [f"yaleB{i + 11}/yaleB{i + 11}_P00A{a}.pgm" for i in range(len(x) // 2) for a in ("+000E+00", "-005E+10")]
    head = b"P5\n# a comment\n4 3\n255\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, row in reversed(list(zip(names, x, strict=True))):
            file.writestr(f"CroppedYale/{name}", head + row.tobytes())
        file.writestr("CroppedYale/yaleB11/yaleB11_P00_Ambient.pgm", head + bytes(12))
        file.writestr("CroppedYale/yaleB11/yaleB11_P00A+050E-40.pgm.bad", head + bytes(12))
        file.writestr("CroppedYale/yaleB11/yaleB11_P00.info", b"text")
    return out.getvalue()


FORMATS = {
    "mnist": (idx, pixels(6, 4)),
    "cifar": (cifar_tar, pixels(10, 3072)),
    "covtype": (covtype_gz, rng().integers(-200, 8000, (9, 54)).astype(np.int16)),
    "usps": (usps_gz, np.round(rng().uniform(-1, 1, (5, 256)), 3).astype(np.float32)),
    "yale": (yale_zip, pixels(6, 12)),
}


@cache  # gzip notes the time, so the bytes differ from call to call
def published(stem):
    write, x = FORMATS[stem]
    return write(x)


def pack(x):
    """The packing of the data folder: differences, colours minus green; all modulo 256."""
    x = x.copy()
    if x.ndim == 4:
        x[:, [0, 2]] -= x[:, [1]]
    x = np.diff(x, axis=-2, prepend=np.uint8(0))
    return np.diff(x, axis=-1, prepend=np.uint8(0))


class Server(ThreadingHTTPServer):
    """Serves ``files``; ``ranges``: yes, no or wrong; every answer's body is cut at ``cut`` bytes.

    If it is to ``hang``, the connection then stays open until ``done``.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.ranges, self.cut, self.asked = {}, "yes", None, []
        self.hang, self.done = False, threading.Event()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        data = server.files.get(self.path[1:])
        if data is None:
            return self.send_error(404)
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and server.ranges != "no" else 0
        if start and start >= len(data):
            return self.send_error(416)
        start = max(0, start - (server.ranges == "wrong"))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: server.cut])
        if server.hang:
            self.wfile.flush()
            server.done.wait(5)
        return None

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.done.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Folders of our own, small sources without addresses, and nothing of the real ones."""
    folders = SimpleNamespace(data=tmp_path / "data", shared=tmp_path / "shared", cache=tmp_path / "cache")
    for folder in vars(folders).values():
        folder.mkdir()
    monkeypatch.setenv("K2MEANS_DATA", str(folders.data))
    monkeypatch.setenv("K2MEANS_CACHE", str(folders.cache))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(datasets, "SHARED", folders.shared)
    for stem, (_, x) in FORMATS.items():
        digest = hashlib.sha256(x.tobytes()).hexdigest()[:16]
        monkeypatch.setitem(SOURCES, stem, replace(SOURCES[stem], shape=x.shape, digest=digest, urls=(), md5=""))
        monkeypatch.setitem(DATASETS, stem, replace(DATASETS[stem], n=len(x), d=x.shape[1]))
    return folders


@pytest.fixture
def publish(place, server, monkeypatch):
    """Puts a source on the server; ``with_`` changes the source."""

    def put(stem, data=None, **with_):
        server.files[SOURCES[stem].file] = published(stem) if data is None else data
        monkeypatch.setitem(
            SOURCES, stem, replace(SOURCES[stem], **({"urls": (server.url(SOURCES[stem].file),)} | with_))
        )
        return place.cache / f"{SOURCES[stem].file}.127.0.0.1.part"

    return put


def get(name):
    return load(name, progress=False)


def assert_is(found, x):
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, x.astype(np.float32))


# The table.


def test_the_nine_of_the_paper_are_there_each_by_itself_or_by_a_stand_in():
    papers = {"cifar", "cnnvoc", "covtype", "mnist", "mnist50", "tiny10k", "tinygist10k", "usps", "yale"}
    assert {data.paper for data in DATASETS.values()} - {""} == papers
    assert all(key == data.name for key, data in DATASETS.items())


@pytest.mark.parametrize("data", DATASETS.values(), ids=lambda d: d.name)
def test_stand_ins_have_a_star_and_a_note_and_the_others_do_not(data):
    assert data.stand_in == data.name.endswith("*")
    if data.stand_in:
        assert data.note
    elif data.name not in ("mnist50", "covtype01"):  # these say what they are
        assert not data.note
    assert data.stand_in or data.paper in (data.name, "")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DatasetError, match=r"'minst'.*cifar, .*mnist, .*yale"):
        get("minst")


@pytest.mark.parametrize("name", ["cnnvoc", "tiny10k", "tinygist10k"])
def test_the_unpublished_ones_say_why_and_name_the_stand_in(name, place, monkeypatch):
    stand_in = next(d.name for d in DATASETS.values() if d.stand_in and d.paper == name)
    with pytest.raises(DatasetError, match=rf"{name} cannot be had.*{name}\.npz.*K2MEANS_DATA") as error:
        get(name)
    assert repr(stand_in) in str(error.value)
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], n=3, d=2))
    x = np.arange(6.0).reshape(3, 2)
    np.savez(place.data / f"{name}.npz", X=x)
    assert_is(get(name), x)


def test_what_is_computed_and_not_published_says_so(place):
    with pytest.raises(DatasetError, match=r"cnncaltech is not published.*cnncaltech\.npz.*K2MEANS_DATA"):
        get("cnncaltech*")


def test_describe_names_files_and_addresses(place, publish):
    publish("usps")
    np.savez(place.data / "mnist.npz", X=FORMATS["mnist"][1])
    text = datasets.describe()
    assert str(place.data / "mnist.npz") in text
    assert SOURCES["usps"].urls[0] in text
    assert len(text.splitlines()) == len(DATASETS)


# Files.


@pytest.mark.parametrize("stem", FORMATS)
def test_a_published_file_in_the_data_folder_is_read(stem, place):
    (place.data / SOURCES[stem].file).write_bytes(published(stem))
    assert_is(get(stem), FORMATS[stem][1])


@pytest.mark.parametrize("shape", [(3, 5, 4), (2, 3, 32, 32)])
def test_unpacking_is_the_inverse_of_packing(shape):
    x = pixels(*shape)
    np.testing.assert_array_equal(datasets.unpack(pack(x)), x.reshape(len(x), -1))


@pytest.mark.parametrize(("stem", "shape"), [("cifar", (-1, 3, 32, 32)), ("yale", (-1, 3, 4))])
def test_a_packed_file_is_read(stem, shape, place):
    x = FORMATS[stem][1]
    np.savez_compressed(place.shared / f"{stem}_packed.npz", D=pack(x.reshape(shape)), y=np.zeros(len(x)))
    assert_is(get(stem), x)


def test_folders_are_searched_in_their_order(place, tmp_path, monkeypatch):
    second = tmp_path / "second"
    second.mkdir()
    monkeypatch.setenv("K2MEANS_DATA", f"{place.data}{os.pathsep}{second}")
    order = [place.data, second, place.shared, place.cache]
    for folder in order:
        np.savez(folder / "mnist.npz", X=FORMATS["mnist"][1])
    for folder in order:
        assert datasets.find("mnist") == folder / "mnist.npz"
        assert_is(get("mnist"), FORMATS["mnist"][1])
        (folder / "mnist.npz").unlink()
    assert datasets.find("mnist") is None


def test_a_data_folder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("K2MEANS_DATA", "/no/such/folder")
    with pytest.raises(DatasetError, match=r"K2MEANS_DATA names /no/such/folder"):
        get("usps")


def test_the_cache_is_where_the_variables_say(monkeypatch, tmp_path):
    monkeypatch.delenv("K2MEANS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache() == tmp_path / "k2means"
    monkeypatch.setenv("K2MEANS_CACHE", str(tmp_path / "mine"))
    assert datasets.cache() == tmp_path / "mine"


def test_covtype_and_tiny10k_are_first_rows_and_cnncaltech_is_scaled(place, monkeypatch):
    for stem in ("covtype", "cifar"):
        np.save(place.data / f"{stem}.npy", FORMATS[stem][1])
    monkeypatch.setitem(DATASETS, "covtype", replace(DATASETS["covtype"], n=4))
    monkeypatch.setitem(DATASETS, "tiny10k*", replace(DATASETS["tiny10k*"], n=3))
    assert_is(get("covtype"), FORMATS["covtype"][1][:4])
    monkeypatch.setitem(DATASETS, "covtype01", replace(DATASETS["covtype01"], n=4))
    scaled = get("covtype01")  # of the four rows alone
    assert (scaled.min(axis=0) == 0).all()
    assert (scaled.max(axis=0) == 1).all()
    np.testing.assert_array_equal(np.argsort(scaled, axis=0), np.argsort(FORMATS["covtype"][1][:4], axis=0))
    assert_is(get("tiny10k*"), FORMATS["cifar"][1][:3])
    x = pixels(3, 5)
    np.savez(place.data / "cnncaltech.npz", X=x, scale=np.float32(0.25))
    digest = hashlib.sha256(x.tobytes()).hexdigest()[:16]
    monkeypatch.setitem(SOURCES, "cnncaltech", replace(SOURCES["cnncaltech"], shape=x.shape, digest=digest))
    monkeypatch.setitem(DATASETS, "cnncaltech*", replace(DATASETS["cnncaltech*"], n=3, d=5))
    assert_is(get("cnncaltech*"), x / np.float32(4))


def test_other_numbers_another_shape_and_another_type_are_refused_by_name(place):
    path, x = place.data / "mnist.npy", FORMATS["mnist"][1]
    np.save(path, x ^ 1)
    found = hashlib.sha256((x ^ 1).tobytes()).hexdigest()[:16]
    with pytest.raises(DatasetError, match=f"{re.escape(str(path))}.*{SOURCES['mnist'].digest}.*{found}"):
        get("mnist")
    for wrong in (x[:-1], x.astype(np.float32)):
        np.save(path, wrong)
        with pytest.raises(DatasetError, match=rf"{re.escape(str(path))}: expected uint8 \(6, 4\), found"):
            get("mnist")


@pytest.mark.parametrize("stem", FORMATS)
def test_a_truncated_file_is_refused_by_name(stem, place):
    path = place.data / SOURCES[stem].file
    data = published(stem)
    for broken in (data[: len(data) // 2], b"", b"<html>gone</html>"):
        path.write_bytes(broken)
        with pytest.raises(DatasetError, match=re.escape(str(path))):
            get(stem)


def test_truncated_arrays_are_refused_by_name(place):
    for suffix, write in ((".npy", np.save), (".npz", np.savez_compressed)):
        path = place.data / f"mnist{suffix}"
        write(path, FORMATS["mnist"][1])
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DatasetError, match=re.escape(str(path))):
            get("mnist")
        path.unlink()


def test_no_file_may_bring_code(place):
    np.save(place.data / "tiny10k.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DatasetError, match=r"tiny10k\.npy cannot be read"):
        get("tiny10k")


# The net.


@pytest.mark.parametrize("stem", FORMATS)
def test_a_dataset_is_fetched_once_and_kept_as_an_array(stem, place, publish, server):
    publish(stem)
    assert_is(get(stem), FORMATS[stem][1])
    assert [p.name for p in place.cache.iterdir()] == [f"{stem}.npy"]
    assert_is(get(stem), FORMATS[stem][1])
    assert server.asked == [None]


@pytest.mark.parametrize("ranges", ["yes", "no", "wrong"])
def test_a_download_goes_on_from_a_part_or_starts_anew(ranges, place, publish, server):
    part = publish("cifar")
    part.write_bytes(published("cifar")[:1000])
    server.ranges = ranges
    assert_is(get("cifar"), FORMATS["cifar"][1])
    assert server.asked == ["bytes=1000-", None][: 2 if ranges == "wrong" else 1]
    assert not part.exists()


def test_a_part_longer_than_the_file_is_thrown_away(publish, server):
    part = publish("usps")
    part.write_bytes(published("usps") + b"more")
    assert_is(get("usps"), FORMATS["usps"][1])
    assert len(server.asked) == 2


def test_a_connection_that_breaks_is_taken_up_again(publish, server):
    data = published("cifar")
    publish("cifar")
    server.cut = len(data) // 3 + 1
    assert_is(get("cifar"), FORMATS["cifar"][1])
    assert server.asked == [None, f"bytes={server.cut}-", f"bytes={2 * server.cut}-"]


def test_what_was_got_is_kept_for_the_next_call(place, publish, server):
    data = published("cifar")
    part = publish("cifar")
    server.cut = len(data) // 7
    with pytest.raises(DatasetError, match="broke off"):
        get("cifar")
    assert part.read_bytes() == data[: datasets.TRIES * server.cut]
    assert [p.name for p in place.cache.iterdir()] == [part.name]
    server.cut = None
    assert_is(get("cifar"), FORMATS["cifar"][1])


def test_a_server_that_hangs_is_given_up(place, publish, server, monkeypatch):
    monkeypatch.setattr(datasets, "TIMEOUT", 0.1)
    part = publish("cifar")
    server.cut, server.hang = 100, True
    with pytest.raises(DatasetError, match="broke off"):
        get("cifar")
    assert part.read_bytes() == published("cifar")[: datasets.TRIES * 100]


def test_wrong_bytes_are_refused_and_not_kept(place, publish):
    write, x = FORMATS["mnist"]
    for data, md5 in ((write(x ^ 1), ""), (published("mnist")[:-9], ""), (published("mnist"), "0" * 32)):
        publish("mnist", data, md5=md5)
        with pytest.raises(DatasetError, match=rf"{re.escape(SOURCES['mnist'].urls[0])}: .*{SOURCES['mnist'].file}"):
            get("mnist")
        assert list(place.cache.iterdir()) == []


def test_the_published_md5_is_accepted(publish):
    publish("mnist", md5=hashlib.md5(published("mnist")).hexdigest())
    assert_is(get("mnist"), FORMATS["mnist"][1])


def test_the_second_address_is_tried(publish, server):
    publish("mnist", urls=(server.url("gone"), server.url(SOURCES["mnist"].file)))
    assert_is(get("mnist"), FORMATS["mnist"][1])


@pytest.mark.parametrize("kind", ["refused", "404"])
def test_what_cannot_be_fetched_says_what_to_do(kind, place, publish, server):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        url = server.url("none") if kind == "404" else f"http://127.0.0.1:{unused.getsockname()[1]}/usps"
        publish("usps", urls=(url,))
        with pytest.raises(DatasetError) as error:
            get("usps")
    for word in ("usps", url, "zip.train.gz", "K2MEANS_DATA", str(place.shared), kind):
        assert word in str(error.value)
    assert list(place.cache.iterdir()) == []


# What is computed.


def test_mnist50_is_exact_and_keeps_mean_squared_distances():
    x = np.where(rng().random((300, 784)) < 0.2, pixels(300, 784), 0).astype(np.uint8)
    y = datasets.project(x)
    assert y.shape == (300, 50)
    np.testing.assert_array_equal(y, datasets.project(x))
    np.testing.assert_array_equal(y[17:19], datasets.project(x[17:19]))
    matrix = rng(datasets.MNIST50_SEED).standard_normal((784, 50)) / np.sqrt(50)
    whole = np.round(matrix * 2**32).astype(np.int64)
    np.testing.assert_array_equal(y, ((x.astype(np.int64) @ whole) / 2**32).astype(np.float32))
    assert y.var(axis=0, dtype=float).sum() == pytest.approx(x.var(axis=0).sum(), rel=0.03)


def test_mnist50_has_the_matrix_it_always_had():
    matrix = datasets.project(np.eye(784, dtype=np.uint8))
    np.testing.assert_allclose(matrix[[0, 1, 783], [0, 1, 49]], [0.068784721, 0.11597048, 0.37101516], rtol=1e-6)


def test_mnist50_is_loaded_from_mnist(place, monkeypatch):
    np.save(place.data / "mnist.npy", FORMATS["mnist"][1])
    monkeypatch.setitem(DATASETS, "mnist50", replace(DATASETS["mnist50"], n=6, d=3))
    assert_is(get("mnist50"), datasets.project(FORMATS["mnist"][1]))


def test_tinygist_is_computed_once_for_each_version(place, monkeypatch):
    np.save(place.data / "cifar.npy", FORMATS["cifar"][1])
    monkeypatch.setitem(DATASETS, "tinygist10k*", replace(DATASETS["tinygist10k*"], n=4))
    expected = gist.gist(FORMATS["cifar"][1][:4])
    assert_is(get("tinygist10k*"), expected)
    (place.data / "cifar.npy").unlink()
    assert_is(get("tinygist10k*"), expected)
    monkeypatch.setattr(gist, "VERSION", gist.VERSION + 1)
    with pytest.raises(DatasetError, match="cifar is not published"):
        get("tinygist10k*")


def channels(images):
    return gist.gist(images).reshape(-1, 3, 8, 4, 4)


def gratings(period, transpose):
    wave = np.round(127 + 100 * np.sin(2 * np.pi * np.arange(32) / period)).astype(np.uint8)
    image = np.broadcast_to(wave[:, None] if transpose else wave, (32, 32))
    return np.repeat(image[None, :, :, None], 3, axis=3)


def test_gist_has_384_finite_numbers_whatever_the_layout_and_the_batches():
    images = pixels(gist.BATCH + 3, 32, 32, 3)
    g = gist.gist(images)
    assert g.shape == (len(images), 384)
    assert g.dtype == np.float32
    assert np.isfinite(g).all()
    assert (g >= 0).all()
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(gist.gist(planes), g)
    np.testing.assert_array_equal(gist.gist(planes.reshape(len(images), -1)), g)
    np.testing.assert_allclose(gist.gist(images[5:6]), g[5:6], rtol=1e-6)


def test_gist_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"got \(2, 28, 28\)"):
        gist.gist(np.zeros((2, 28, 28), np.uint8))


def test_gist_of_one_brightness_is_zero():
    assert np.abs(gist.gist(np.full((1, 32, 32, 3), 200, np.uint8))).max() < 1e-6


def test_gist_changes_little_with_brightness_and_contrast():
    images = pixels(5, 32, 32, 3) // 4
    g = gist.gist(images)
    np.testing.assert_allclose(gist.gist(images + np.uint8(60)), g, atol=1e-5)
    np.testing.assert_allclose(gist.gist(images * np.uint8(3)), g, atol=1e-5)


@pytest.mark.parametrize(("period", "scale"), [(3.4, 0), (6.2, 1), (11.4, 2)])
def test_gist_knows_directions_and_scales(period, scale):
    vertical = channels(gratings(period, False))[0].mean(axis=(2, 3))
    horizontal = channels(gratings(period, True))[0].mean(axis=(2, 3))
    assert np.unravel_index(vertical.argmax(), vertical.shape) == (scale, 0)
    assert np.unravel_index(horizontal.argmax(), horizontal.shape) == (scale, 4)
    assert vertical[scale, 4] < 0.1 * vertical[scale, 0]


def test_gist_knows_places():
    image = np.full((1, 32, 32, 3), 100, np.uint8)
    image[0, 3:5, 27:29] = 255
    energy = channels(image)[0, 0].sum(axis=0)
    assert np.unravel_index(energy.argmax(), energy.shape) == (0, 3)


def test_a_turn_by_90_degrees_turns_blocks_and_directions():
    images = pixels(4, 32, 32, 3)
    turned = np.roll(np.rot90(channels(images), axes=(3, 4)), 4, axis=2)
    np.testing.assert_allclose(channels(np.rot90(images, axes=(1, 2))), turned, atol=1e-5)
