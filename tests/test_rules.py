"""Who may touch what (docs/design.md), by grep."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = sorted(p for p in (ROOT / "core").glob("*.[ch]pp"))
PYTHON = sorted((ROOT / "src" / "k2means").glob("*.py"))
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))
BUILD = [ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", ROOT / "Makefile", *(ROOT / ".github").rglob("*.yml")]


def code(path):
    """The text without comments, so that a rule may be talked about."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".hpp", ".cpp"):
        return re.sub(r"//.*|/\*.*?\*/", "", text, flags=re.DOTALL if "/*" in text else 0)
    return re.sub(r"(?m)#.*$", "", text)


def places(pattern, paths):
    return {p.name for p in paths if re.search(pattern, code(p))}


def test_there_is_something_to_look_at():
    assert {"engine.hpp", "module.cpp", "parallel.hpp"} <= {p.name for p in CORE}
    assert {"loop.py", "cluster.py"} <= {p.name for p in PYTHON}


SIMD = {"distance.hpp", "wide_impl.hpp", "tiles_impl.hpp", "exact_impl.hpp"} | {
    p.name for p in CORE if re.match(r"(tiles|exact)_", p.name)
}


def name(value):
    """The same in every process, as pytest-xdist needs it; a set is not."""
    return value if isinstance(value, str) else " ".join(sorted(value))


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        (
            r"#include <(thread|mutex|condition_variable|future|atomic|shared_mutex|pthread\.h|omp\.h)>",
            {"parallel.hpp", "crew.hpp"},
        ),
        (r"std::(thread|jthread|mutex|async|atomic|condition_variable)\b|pthread_", {"parallel.hpp", "crew.hpp"}),
        (r"#\s*pragma\s+omp", set()),
        (r"vector_size|immintrin|arm_neon|_mm\d*_|__m\d{3}|__builtin_(ia32|convertvector|prefetch)", SIMD),
        (r"#\s*pragma\s+(?!once)", SIMD),
        (r"nanobind|Python\.h|\bPy[A-Z]\w+", {"module.cpp", "module.hpp", "module_data.cpp"}),
        (r"std::(cout|cerr|clog|printf|puts)|\bf?printf\(|#include <iostream>", set()),
        (r"\b(std::)?(mt19937|random_device|rand|srand)\b", set()),
    ],
    ids=name,
)
def test_in_the_core_only_the_named_files_have_it(pattern, allowed):
    assert places(pattern, CORE) <= allowed


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        (r"\.step\(", {"loop.py"}),
        (r"default_rng\(|check_random_state\(|SeedSequence\(", {"cluster.py", "estimator.py"}),
        (r"RandomState\(", {"cluster.py", "estimator.py", "initialize.py"}),
        (r"\bnp\.random\.(seed|normal|rand|randn|randint|choice|shuffle|permutation|uniform)\b", set()),
        (r"^\s*(import random|from random)\b", set()),
        (r"\bprint\(|sys\.stdout|sys\.stderr", {"cli.py", "commands.py", "demo.py", "progress.py"}),
        (r"os\.environ", {"cluster.py", "cli.py", "demo.py"}),
        (r"import (matplotlib|pandas|polars|scipy)|from (matplotlib|pandas|polars|scipy)", {"demo.py", "cli.py"}),
    ],
    ids=name,
)
def test_in_python_only_the_named_files_have_it(pattern, allowed):
    assert places(re.compile(pattern, re.MULTILINE), PYTHON) <= allowed


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        (r"\.step\(", set()),
        # of datasets.py: the projection that mnist50 is; of race_data.py: the generated rows
        (r"default_rng\(|PCG64\(", {"runner.py", "datasets.py", "race_data.py"}),
        (r"\bnp\.random\.(seed|normal|rand|randn|randint|choice|shuffle|permutation|uniform)\b", set()),
        (r"\bprint\(", {"__main__.py", "report.py"}),
        (r"open\(\"a\+", {"runner.py"}),  # results are appended to, by nobody else
        (r"from k2means\.|import k2means\.|_core", set()),  # public names only
    ],
    ids=name,
)
def test_in_the_experiments_only_the_named_files_have_it(pattern, allowed):
    assert places(re.compile(pattern, re.MULTILINE), EXPERIMENTS) <= allowed


@pytest.mark.parametrize("pattern", [r"\.writable\(", r"\bcenters\.drift\[\w+\]\s*=[^=]"])
def test_centers_are_written_only_where_they_move(pattern):
    assert places(pattern, [p for p in CORE if p.name != "types.hpp"]) <= {
        "move.hpp",
        "running_mean.hpp",
        "seeding.hpp",
    }


def test_labels_are_written_only_by_assignments_seeding_swaps_and_the_refill():
    allowed = {
        "own_search.hpp",
        "panels.hpp",
        "refill.hpp",
        "seeding.hpp",
        "sketch_search.hpp",
        "swaps.hpp",
        *(p.name for p in CORE if p.name.startswith("assign_")),
    }
    assert places(r"\blabels\[[^\]]*(\[[^\]]*\])?[^\]]*\]\s*=[^=]", CORE) <= allowed


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-funsafe-math", "-fopenmp", "-march=native"])
def test_no_flag_changes_the_arithmetic_of_the_process(flag):
    assert flag not in "".join(code(p) for p in [*BUILD, *CORE, *PYTHON] if p.exists())


def test_nothing_calls_blas_where_results_are_decided():
    # their sums depend on their threads; the core and the loop may not multiply, the page only draws
    assert places(r"np\.(dot|matmul|einsum|linalg)\b", PYTHON) <= {"page.py"}


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.name)
def test_a_file_of_the_core_is_one_idea_and_says_it(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 260
    if len(lines) > 2:  # the variants only include
        assert lines[0].startswith("// ")


@pytest.mark.parametrize("path", [*PYTHON, *EXPERIMENTS], ids=lambda p: p.name)
def test_a_module_says_what_it_is(path):
    assert path.read_text(encoding="utf-8").startswith('"""')


def test_the_variants_share_no_code():
    # An inline function shared with another object file could be the copy with instructions the CPU lacks. These
    # headers give C functions, intrinsics and types that exist at compile time only.
    harmless = r"#include <(?!cstring>|cstddef>|cstdint>|utility>|immintrin\.h>|arm_neon\.h>)"
    for path in CORE:
        if re.match(r"(tiles|exact|wide)_(impl|few)", path.name):
            assert places(harmless, [path]) == set()
            assert "namespace {" in code(path)
