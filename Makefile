# `make demo` and `make test` need python3 (3.11+) and a C++ compiler; the rest comes from PyPI into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
CMAKE := $(BIN)/cmake
CORE_BUILD = $(CMAKE) -S . -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" -DK2_CORE_TESTS=ON
CTEST := $(BIN)/ctest --output-on-failure --test-dir

CXX_SOURCES := $(wildcard core/*.cpp core/*.hpp)
CXX_FILES := $(CXX_SOURCES) $(wildcard core/tests/*.cpp core/tests/*.hpp)
PY_SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name py.typed)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test core-test asan tsan arm arm-tools lint format hooks wheel bench experiments reproduce race clean FORCE

help: ## This list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

demo: $(VENV)/.package ## Cluster two datasets beside scikit-learn; prints a table, writes a picture
	$(BIN)/k2means demo

test: core-test $(VENV)/.package $(VENV)/.test ## All tests: the core's in C++, then pytest (ARGS="-k name")
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

core-test: $(VENV)/.test ## The core's tests, with its invariants checked
	$(CORE_BUILD) -B build/core-test -DK2_CHECK=ON
	$(CMAKE) --build build/core-test
	$(CTEST) build/core-test

asan: $(VENV)/.test ## The core's tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(CORE_BUILD) -B build/asan -DK2_CHECK=ON -DK2_SANITIZE=address,undefined
	$(CMAKE) --build build/asan
	$(CTEST) build/asan

tsan: $(VENV)/.test ## The core's tests under ThreadSanitizer
	$(CORE_BUILD) -B build/tsan -DK2_SANITIZE=thread
	$(CMAKE) --build build/tsan
	$(CTEST) build/tsan

arm: arm-tools $(VENV)/.test ## The core's tests cross-compiled for 64-bit ARM, under qemu
	$(CORE_BUILD) -B build/arm -DK2_CHECK=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64
	$(CMAKE) --build build/arm
	$(CTEST) build/arm

arm-tools:
	@if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -qq --no-install-recommends g++-aarch64-linux-gnu qemu-user; \
	  else \
	    echo "make arm needs aarch64-linux-gnu-g++ and qemu-aarch64" \
	      "(Debian: sudo apt-get install g++-aarch64-linux-gnu qemu-user)" >&2; exit 1; \
	  fi; \
	fi

lint: $(VENV)/.dev $(VENV)/.package ## ruff, mypy, clang-format: check only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(VENV)/.dev ## Let ruff and clang-format rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

hooks: $(VENV)/.dev $(VENV)/.package ## Install the pre-commit hooks
	$(BIN)/pre-commit install

# The wheel is built from the sdist, so both are tried; then installed where nothing else is.
wheel: $(VENV)/.dev ## Build sdist and wheel, install the wheel into a clean environment, fit
	rm -rf dist build/wheel-venv
	$(BIN)/python -m build --outdir dist .
	@if $(BIN)/python -m zipfile -l dist/*.whl | grep -E '^(core|tests|experiments|benchmarks)/'; then \
	  echo "error: the wheel contains more than the package" >&2; exit 1; fi
	$(BIN)/python -m venv build/wheel-venv
	build/wheel-venv/bin/python -m pip --disable-pip-version-check install --quiet dist/*.whl
	cd build && wheel-venv/bin/python -c "import numpy as np; from k2means import K2Means; \
	  X = np.random.default_rng(0).normal(size=(200, 5)); m = K2Means(n_clusters=7, random_state=0).fit(X); \
	  assert m.cluster_centers_.shape == (7, 5) and np.isfinite(m.inertia_); print('the wheel fits:', m.inertia_)"

bench: $(VENV)/.package ## The figures of the README (ARGS=… are passed on)
	$(BIN)/python benchmarks/figures.py $(ARGS)

experiments: $(VENV)/.package $(VENV)/.experiments ## Run the paper's experiments: hours, resumable (ARGS="--dry-run")
	$(BIN)/python -m experiments run all $(ARGS)

reproduce: $(VENV)/.package $(VENV)/.experiments ## Write docs/reproduction.{md,html} from the stored results
	$(BIN)/python -m experiments report

race: $(VENV)/.package $(VENV)/.experiments $(VENV)/.race ## Race ours against its peers: hours, resumable (ARGS="usps --session NAME")
	$(BIN)/python -m experiments race $(ARGS)
	$(BIN)/python -m experiments race-report

clean: ## Remove everything that make made
	rm -rf build dist $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- the environment -------------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "k2means needs Python 3.11 or newer; say which: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Debian: apt-get install python3-venv" >&2; exit 1; }

# A new or a deleted file is a change too.
build/sources.txt: FORCE
	@mkdir -p build
	@echo $(sort $(CXX_SOURCES) $(PY_SOURCES)) | cmp -s - $@ || echo $(sort $(CXX_SOURCES) $(PY_SOURCES)) > $@

# FAST=1 keeps the build tools and the object files between installs, for people who edit the core.
ifdef FAST
PACKAGE_OPTIONS := --no-build-isolation --config-settings=build-dir=build/package
$(VENV)/.package: | $(VENV)/.build $(VENV)/.test
endif
$(VENV)/.package: pyproject.toml CMakeLists.txt build/sources.txt $(CXX_SOURCES) $(PY_SOURCES) | $(BIN)/python
	$(PIP) $(PACKAGE_OPTIONS) '.[cli,plot]'
	@touch $@

# The requirements of an extra, without building the package again; `.build` are those of the build itself.
$(VENV)/.test $(VENV)/.dev $(VENV)/.experiments $(VENV)/.race $(VENV)/.build: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -c "import tomllib; t = tomllib.load(open('pyproject.toml', 'rb')); \
	  print(*(t['project']['optional-dependencies'] | {'build': t['build-system']['requires']})['$*'], sep='\n')" > $(VENV)/$*.txt
	$(PIP) -r $(VENV)/$*.txt
	@touch $@
