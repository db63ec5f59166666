"""The commands: fit, predict, inspect, convert, report, compare, demo. Data go to stdout, words to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from . import __version__
from .checkpoint import CheckpointError, Every, Keeper
from .cluster import resolve_threads
from .estimator import K2Means
from .files import check_new, check_not_input, replace_file
from .initialize import NAMED
from .interrupt import Interruption
from .measure import unit_rows
from .memory import free_memory
from .progress import Display, both
from .store import ModelError, about, check_target, is_model, load, save
from .vectors import FileError, VectorFile, open_vectors, write_vectors

# Documented in docs/command-line.md.
UNREADABLE, NO_MEMORY, UNWRITABLE, NO_CHECKPOINT, INTERRUPTED = 3, 4, 5, 6, 130

FILTERS = ("dataset", "rows", "columns", "normalize")  # the options of `open_vectors`

EXISTING = click.Path(exists=True, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT = click.Path(path_type=Path)


class Failure(click.ClickException):
    """An error told in one line, with its own exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def told() -> Iterator[None]:
    """What goes wrong with files and memory becomes a line and an exit code; all else is a defect and shows itself."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (FileError, ModelError, FileNotFoundError, IsADirectoryError) as error:
        raise Failure(str(error), UNREADABLE) from error
    except CheckpointError as error:
        raise Failure(str(error), NO_CHECKPOINT) from error
    except MemoryError as error:
        raise Failure(str(error) or "out of memory", NO_MEMORY) from error
    except OSError as error:
        raise Failure(str(error), UNWRITABLE) from error
    except (ValueError, ImportError) as error:
        raise Failure(str(error), UNREADABLE) from error


def run(argv: Sequence[str] | None) -> int:
    try:
        # click returns what a command returns, or the code of ctx.exit()
        code = k2means.main(list(argv) if argv is not None else None, prog_name="k2means", standalone_mode=False)
        return int(code or 0)
    except click.exceptions.Abort:  # what click makes of KeyboardInterrupt
        click.echo("interrupted; nothing more was written", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.code if isinstance(error, Failure) else error.exit_code


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="k2means", message="%(prog)s %(version)s")
def k2means() -> None:
    """k-means with many clusters.

    \b
    k2means fit vectors.npy -k 1000 -o model.npz
    k2means predict model.npz more.npy -o labels.npy
    k2means report model.npz

    Vectors come from .npy, .npz, .fvecs, .bvecs, .ivecs, .fbin, .u8bin, .i8bin, Parquet, Arrow, HDF5, CSV and TSV.
    """


# ---- options that several commands have --------------------------------------------------------------------------


def vector_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--normalize", is_flag=True, help="Divide every row by its Euclidean norm."),
        click.option("--columns", metavar="A:B|NAMES", help="Only these columns: positions 0:64, or names x,y,z."),
        click.option("--rows", metavar="A:B", help="Only these rows, as a Python slice."),
        click.option("--dataset", metavar="NAME", help="The array or column to take, in files that have several."),
    ):
        command = option(command)
    return command


def threads_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--threads", type=click.IntRange(1), metavar="N", help="Default: K2MEANS_NUM_THREADS, or all cores."
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on stdout.")(command)


def overwrite_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--overwrite", is_flag=True, help="Replace what is there.")(command)


class EveryType(click.ParamType[Every]):
    """`10`: iterations; `30s`: seconds."""

    name = "every"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Every:
        if isinstance(value, Every):
            return value
        number = value.removesuffix("s")
        if value.endswith("s") and number.replace(".", "", 1).isdecimal() and float(number) > 0:
            return Every(seconds=float(number))
        if value.isdecimal() and int(value) > 0:
            return Every(iterations=int(value))
        return self.fail(f"{value!r} is neither a number of iterations (10) nor of seconds (30s)", param, ctx)


# ---- fit ---------------------------------------------------------------------------------------------------------


@k2means.command()
@click.argument("vectors", type=FILE)
@click.option("-k", "--clusters", "k", type=click.IntRange(1), required=True, help="Number of clusters.")
@click.option(
    "-o", "--out", type=OUTPUT, help="The model: a .npz file, else a directory. Default: NAME.k2means.npz here."
)
@click.option(
    "--neighbors", default="auto", metavar="N|auto", help="Centers a row considers: more is slower and better."
)
@click.option(
    "--init", default="gdi", metavar="NAME|FILE", help="gdi, k-means++, random; or a model or centers to start from."
)
@click.option("--algorithm", type=click.Choice(["auto", "k2", "lloyd", "elkan"]), default="auto", show_default=True)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    default="euclidean",
    show_default=True,
    help="cosine: rows are scaled to length 1, and so are the centers.",
)
@click.option(
    "--polish",
    type=click.Choice(["exact", "certify", "none"]),
    default="exact",
    show_default=True,
    help="At the end: labels by all centers; or told which are proven; or neither.",
)
@click.option(
    "--max-cluster-size", type=click.IntRange(1), metavar="ROWS", help="No cluster is larger. Default: no limit."
)
@click.option("--max-iter", type=click.IntRange(1), default=100, show_default=True)
@click.option(
    "--max-time", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Start no iteration after it."
)
@click.option("--tol", type=click.FloatRange(0), default=1e-4, show_default=True, help="As in scikit-learn.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option(
    "--checkpoint", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Save the state here."
)
@click.option("--every", type=EveryType(), default="60s", show_default=True, metavar="N|SECONDSs", help="How often.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint; the result has the same bits.")
@click.option("--report", is_flag=True, help="Also write a page about the clusters, OUT.html.")
@click.option("--names", type=FILE, help="For the report: a text for each row, one a line.")
@click.option("--images", type=EXISTING, help="For the report: a directory of pictures, in order of their names.")
@click.option("--force", is_flag=True, help="Try also if the memory seems too small.")
@click.option("--quiet", is_flag=True, help="No progress, no words.")
@vector_options
@threads_option
@overwrite_option
@json_option
def fit(vectors: Path, k: int, out: Path | None, overwrite: bool, as_json: bool, **options: Any) -> int:
    """Group VECTORS into K clusters and write the model.

    Ctrl-C ends after the iteration at hand and writes what was reached; a second one stops at once.
    """
    out = Path(f"{vectors.name.split('.')[0]}.k2means.npz") if out is None else out
    usual = {"metric": "euclidean", "polish": "exact", "max_cluster_size": None}
    if options["algorithm"] != "auto" and any(options[name] != value for name, value in usual.items()):
        raise click.UsageError(
            f"--metric, --polish and --max-cluster-size are for --algorithm auto, not {options['algorithm']}"
        )
    with told():
        page = out.with_name(f"{out.name}.html") if options["report"] else None
        check_outputs(out, page, vectors, options, overwrite)
        source = open_vectors(vectors, **{name: options[name] for name in FILTERS})
        model = K2Means(
            k,
            n_neighbors=neighbors_of(options["neighbors"]),
            init=init_of(options["init"]),
            max_iter=options["max_iter"],
            tol=options["tol"],
            algorithm=options["algorithm"],
            metric=options["metric"],
            polish=None if options["polish"] == "none" else options["polish"],
            max_time=options["max_time"],
            max_cluster_size=options["max_cluster_size"],
            random_state=options["seed"],
            n_threads=options["threads"],
        )
        display = Display(quiet=options["quiet"])
        check_size(display, source, model, force=options["force"])
        if page is not None:
            options |= examples(options["names"], options["images"], source.shape[0])
        summary = fit_and_save(model, source, out, page, display, {**options, "overwrite": overwrite})
    if as_json:
        click.echo(json.dumps(summary))
    else:
        click.echo(out)
    return INTERRUPTED if summary["interrupted"] else 0


def fit_and_save(
    model: K2Means,
    source: VectorFile,
    out: Path,
    page: Path | None,
    display: Display,
    options: dict[str, Any],
) -> dict[str, Any]:
    begin = time.perf_counter()
    hint = "--resume --overwrite goes on" if options["checkpoint"] else f"--init {out} starts from the result"
    stopping = Interruption(lambda: display.say(f"ending after this iteration, {hint}; Ctrl-C again stops at once"))
    keeper = keeper_of(options["checkpoint"], options["every"], options["resume"], lambda: stopping.asked)
    with display, stopping, warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: display.say(f"warning: {message}", always=True)
        display.phase("read", source.shape[0])
        x = source.read(force=options["force"], told=display.count)
        display.phase("look", 1)
        model._fit(
            x,
            None,
            on_step=both(display.on_record, stopping),
            keeper=keeper,
            phase=lambda name: display.phase(name, model.max_iter if name == "iterate" else 1),
            ending=lambda: stopping.asked,
            force=options["force"],
        )
        display.phase("write", 1)
        written = {"vectors": str(source.path), **{name: options[name] for name in FILTERS}}
        save(model, out, overwrite=options["overwrite"], about=written)
        if keeper is not None and model._converged:
            keeper.remove()
        elif keeper is not None:
            display.say(
                f"not converged; {keeper.path} is kept: {hint}, with more --max-iter or --max-time if these ended it"
            )
        if page is not None:
            write_report(x, model, page, options)
    cut_short = stopping.asked and not model._converged and model.n_iter_ < model.max_iter
    summary = {
        "model": str(out),
        "n": len(x),
        "d": int(x.shape[1]),
        "k": model.n_clusters,
        "energy": model.inertia_,
        "n_iter": model.n_iter_,
        "certified": None if math.isnan(model.certified_) else model.certified_,
        "seconds": round(time.perf_counter() - begin, 3),
        "phases": display.seconds,
        "checkpoint_seconds": None if keeper is None else round(keeper.seconds, 3),
        "converged": model._converged,
        "interrupted": cut_short,
    }
    display.say(
        f"energy {model.inertia_:.9g} after {model.n_iter_} iterations, {summary['seconds']:.3g} s: {out}"
        + (f", {page}" if page else "")
    )
    return summary


def neighbors_of(text: str) -> Any:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"{text!r} is neither 'auto' nor an integer of at least 1", param_hint="--neighbors")
    return int(text)


def init_of(text: str) -> Any:
    """A name, or the centers of a model or of a file of vectors."""
    if text in NAMED:
        return text
    path = Path(text)
    if not path.exists():
        raise click.BadParameter(f"{text!r} is neither one of {', '.join(NAMED)} nor a file", param_hint="--init")
    return load(path).cluster_centers_ if path.is_dir() or is_model(path) else np.array(open_vectors(path).read())


def keeper_of(directory: Path | None, every: Every, resume: bool, ending: Callable[[], bool]) -> Keeper | None:
    if directory is None:
        if resume:
            raise click.UsageError("--resume needs --checkpoint DIR")
        return None
    if resume and not directory.is_dir():
        raise CheckpointError(f"there is no directory {str(directory)!r} to resume from")
    directory.mkdir(parents=True, exist_ok=True)
    keeper = Keeper(directory, every, resume=resume, ending=ending)
    if keeper.path.exists() and not resume:
        raise FileExistsError(f"{keeper.path} is there; --resume goes on from it, or remove it to begin anew")
    return keeper


def check_outputs(out: Path, page: Path | None, vectors: Path, options: dict[str, Any], overwrite: bool) -> None:
    """All that could keep the result from being written, before the work."""
    check_target(out, overwrite=overwrite)
    init = Path(options["init"]) if options["init"] not in NAMED and Path(options["init"]).exists() else None
    check_not_input(out, vectors, options["names"])
    if init is not None and not is_model(init):
        check_not_input(out, init)
    if page is not None:
        check_new(page, overwrite=overwrite)
    if options["checkpoint"] is not None and options["checkpoint"].resolve() == out.resolve():
        raise FileExistsError(f"{out} cannot be the model and the directory of the checkpoint")


def check_size(display: Display, source: VectorFile, model: K2Means, *, force: bool) -> None:
    """Say what it needs of the memory there is, and refuse what cannot fit."""
    (n, d), has = source.shape, free_memory()
    copies = 2 if model.metric == "cosine" else 1
    kept = max(model._method().memory(n, d, model.n_clusters), model._later_memory(n, d))
    needed = copies * n * d * np.dtype(source.dtype).itemsize + kept
    room = "" if has is None else f" of {size_text(has)} free"
    size = f"{source.path}: {n} rows of {d}, {source.stored_dtype}; needs {size_text(needed)}{room} memory"
    if has is not None and needed > has and not force:
        raise MemoryError(f"{size}. Take fewer rows (--rows) or columns (--columns), or insist with --force")
    display.say(size)


def size_text(count: float) -> str:
    power = min(4, int(math.log(max(count, 1), 1024)))
    return f"{count / 1024**power:.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


# ---- the other commands ------------------------------------------------------------------------------------------


@k2means.command()
@click.argument("model", type=EXISTING)
@click.argument("vectors", type=FILE)
@click.option("-o", "--out", type=OUTPUT, help="Write the labels as .npy; default: one a line on stdout.")
@vector_options
@threads_option
@overwrite_option
def predict(model: Path, vectors: Path, out: Path | None, overwrite: bool, threads: int | None, **options: Any) -> None:
    """The nearest center of MODEL for each row of VECTORS."""
    with told():
        if out is not None:
            check_new(out, overwrite=overwrite)
            check_not_input(out, model, vectors)
        fitted, written = load(model).set_params(n_threads=threads), about(model).get("about", {})
        for name in ("columns", "normalize"):  # as it was fitted, unless said otherwise
            options[name] = options[name] or written.get(name)
        source = open_vectors(vectors, **{**options, "normalize": bool(options["normalize"])})
        if source.shape[1] != fitted.n_features_in_:
            raise FileError(f"{vectors} has {source.shape[1]} columns, {model} was fitted on {fitted.n_features_in_}")
        labels = (fitted.predict(block) for block in source.blocks())
        if out is not None:
            with replace_file(out) as file:
                np.save(file, np.concatenate([*labels]))
            return
        try:
            for part in labels:
                click.echo("\n".join(map(str, part.tolist())))
        except BrokenPipeError:  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@k2means.command()
@click.argument("path", type=EXISTING)
@vector_options
@json_option
def inspect(path: Path, as_json: bool, **options: Any) -> None:
    """What is in a MODEL or a file of VECTORS."""
    with told():
        found = inspect_model(path) if path.is_dir() or is_model(path) else inspect_vectors(path, options)
    if as_json:
        click.echo(json.dumps(found))
    else:
        for name, value in found.items():
            click.echo(f"{name:<12} {value}")


def inspect_model(path: Path) -> dict[str, Any]:
    described, model = about(path), load(path)
    sizes = np.bincount(model.labels_, minlength=len(model.cluster_centers_))
    return {
        "kind": "model",
        "format": described["format"],
        "n": len(model.labels_),
        "d": model.n_features_in_,
        "k": len(sizes),
        "dtype": str(model.cluster_centers_.dtype),
        "energy": model.inertia_,
        "n_iter": model.n_iter_,
        "sizes": {q: int(v) for q, v in zip(("least", "median", "most"), np.quantile(sizes, (0, 0.5, 1)), strict=True)},
        "empty": int((sizes == 0).sum()),
        "parameters": described["parameters"],
        "versions": described["versions"],
        "about": described.get("about", {}),
    }


def inspect_vectors(path: Path, options: dict[str, Any]) -> dict[str, Any]:
    source = open_vectors(path, **options)
    n, d = source.shape
    return {
        "kind": "vectors",
        "format": source.format,
        "n": n,
        "d": d,
        "stored": str(source.stored_dtype),
        "used": str(np.dtype(source.dtype)),
        "memory": size_text(n * d * np.dtype(source.dtype).itemsize),
    }


@k2means.command()
@click.argument("source", type=FILE)
@click.argument("target", type=OUTPUT)
@vector_options
@overwrite_option
def convert(source: Path, target: Path, overwrite: bool, **options: Any) -> None:
    """Write the vectors of SOURCE to TARGET, whose suffix names the format."""
    with told():
        check_new(target, overwrite=overwrite)
        write_vectors(target, open_vectors(source, **options), overwrite=overwrite)


@k2means.command()
@click.argument("model", type=EXISTING)
@click.option("--vectors", type=FILE, help="The rows it was fitted on; default: the file it names.")
@click.option("-o", "--out", type=OUTPUT, help="The page; default: MODEL.html.")
@click.option("--names", type=FILE, help="A text for each row, one a line.")
@click.option("--images", type=EXISTING, help="A directory of pictures, in order of their names.")
@overwrite_option
def report(model: Path, vectors: Path | None, out: Path | None, overwrite: bool, **options: Any) -> None:
    """Write a page about the clusters of MODEL: one file, to be looked at offline."""
    with told():
        out = model.with_name(f"{model.name}.html") if out is None else out
        check_new(out, overwrite=overwrite)
        written = about(model).get("about", {})
        source = vectors or Path(written.get("vectors", ""))
        if not source.is_file():
            raise FileNotFoundError(f"the vectors of {model} are not at {str(source)!r}: name them with --vectors")
        file = open_vectors(source, **{name: written[name] for name in FILTERS if written.get(name)})
        options |= examples(options["names"], options["images"], file.shape[0])
        write_report(file.read(), load(model), out, {**options, "overwrite": overwrite})
    click.echo(out)


def examples(texts: Path | None, pictures: Path | None, n: int) -> dict[str, Any]:
    """The names and pictures of the rows, one for each; None where there are none."""
    try:
        names = texts.read_text(encoding="utf-8").splitlines() if texts else None
    except UnicodeDecodeError as error:
        raise FileError(f"{texts} is not text in UTF-8: byte {error.start} is not") from error
    images = sorted(p for p in pictures.iterdir() if p.is_file()) if pictures else None
    for what, given in (("--names", names), ("--images", images)):
        if given is not None and len(given) != n:
            raise FileError(f"{what} has {len(given)} entries, there are {n} rows: one for each is needed")
    return {"names": names, "images": images}


def write_report(x: Any, model: K2Means, path: Path, options: dict[str, Any]) -> None:
    from .page import summarize, write_page

    x = unit_rows(x) if model.metric == "cosine" else x
    summary = summarize(x, model.cluster_centers_, model.labels_, model.trace_)
    parameters = {name: str(value) for name, value in model.get_params().items() if np.ndim(value) == 0}
    about_it = {"energy": f"{model.inertia_:.9g}", "iterations": str(model.n_iter_), "k2means": __version__}
    summary = replace(
        summary,
        title=path.name.removesuffix(".html"),
        parameters={**summary.parameters, **about_it, **parameters},
        names=options["names"],
        images=options["images"],
    )
    write_page(path, summary, overwrite=options["overwrite"])


@k2means.command()
@click.argument("vectors", type=FILE)
@click.option("-k", "--clusters", "k", type=click.IntRange(1), required=True)
@vector_options
@threads_option
def compare(vectors: Path, k: int, threads: int | None, **options: Any) -> None:
    """Fit VECTORS with K2Means and with the peers that are installed: seconds and energy side by side."""
    from . import demo

    with told():
        x = np.ascontiguousarray(open_vectors(vectors, **options).read(), dtype=np.float32)
        outcomes = show(demo.compare_peers(demo.Case(vectors.name, x, k), resolve_threads(threads)))
    for peer in outcomes[1:]:
        click.echo(f"K2Means beside {peer.method}: {demo.versus(outcomes[0], peer)}")


def show(outcomes: Iterable[Any]) -> list[Any]:
    """A table, a row as soon as it is there."""
    from . import demo

    click.echo(demo.HEADER)
    shown = []
    for outcome in outcomes:
        shown.append(outcome)
        click.echo(demo.line(outcome))
    return shown


@k2means.command("demo")
@click.option(
    "--out", "picture", type=OUTPUT, default=Path("k2means-demo.png"), show_default=True, help="The picture, a PNG."
)
@click.option("--quick", is_flag=True, help="A smaller data set.")
def run_demo(picture: Path, quick: bool) -> None:
    """Cluster two data sets beside scikit-learn: a table and a picture.

    A number is added to the name of a picture that exists.
    """
    from . import demo  # brings KMeans and the data sets

    if not picture.parent.is_dir():
        raise click.BadParameter(f"there is no directory {str(picture.parent)!r}", param_hint="--out")
    with told():
        threads = resolve_threads(None)
    click.echo(f"K2Means and scikit-learn's KMeans, {threads} thread{'s' if threads > 1 else ''}, float32\n")
    outcomes = show(demo.compare(demo.cases(quick), threads))
    click.echo(f"\n{demo.conclusion(outcomes)}")
    picture = demo.unused(picture)
    try:
        demo.draw(outcomes, picture)
    except ImportError:
        click.echo("No picture: it needs matplotlib (pip install 'k2means[plot]').", err=True)
    else:
        click.echo(f"Picture: {picture}")


@k2means.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL: eval "$(k2means completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(k2means, {}, "k2means", "_K2MEANS_COMPLETE").source())
