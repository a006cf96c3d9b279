# Every target works on a fresh machine with Python >= 3.11, pip and make.
# Variables to override on the command line: PYTHON, VENV, TORCH (make test TORCH=torch==2.14.0),
# JOBS (test processes), PYTEST_ARGS, BASE (make test-fast BASE=HEAD), MOST (tests of test-fast).

PYTHON ?= $(shell command -v python3.11 || command -v python3 || command -v python)
VENV ?= .venv
TORCH ?= torch==2.13.0
JOBS ?= 2
PYTEST_ARGS ?=
BASE ?=
MOST ?= 1500
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

# one thread per process: tests run in parallel and latencies are compared on equal terms
export OMP_NUM_THREADS := 1

.PHONY: help demo test test-fast test-no-torch test-oldest run-tests coverage lint format doc
.PHONY: linkcheck screenshots site bench bench-large models wheel changes clean

help:
	@echo "make demo    converts a torch model, optimizes it, compares the two models"
	@echo "make test    checks style, format and types, runs the tests"
	@echo "make test-fast  style, tests near the change; torch is not needed"
	@echo "make test-no-torch  tests that need no torch, in an environment without it"
	@echo "make test-oldest  the same with the oldest dependencies that pyproject.toml accepts"
	@echo "make coverage  runs the tests, measures what they execute"
	@echo "make lint    style, format and types only"
	@echo "make format  formats the code"
	@echo "make doc     builds the documentation in _doc/_build/html"
	@echo "make linkcheck  checks its links to other sites, which needs a network"
	@echo "make screenshots  opens ten of its pages in chromium, writes _doc/_build/screenshots"
	@echo "make site SITE=../site  adds the documentation of this version to the folder of the site"
	@echo "make bench   benchmarks: cost against the number of nodes, other optimizers, shapes"
	@echo "make bench-large  optimizes a model of 2.2 GB, measures memory (7 GB of disk)"
	@echo "make models  optimizes real models taken from PyPI packages"
	@echo "make wheel   builds the pure-Python wheel and the sources in dist"
	@echo "make changes VERSION=1.2.3  moves the fragments of _doc/changes into CHANGELOGS.rst"
	@echo "make clean   removes what the other targets made"

# virtualenv replaces the venv module where the system's Python comes without it
$(BIN)/python:
	@echo "== makes a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV) $(VENV)-boot; \
	  $(PYTHON) -m pip install --quiet --target $(VENV)-boot virtualenv && \
	  PYTHONPATH=$(VENV)-boot $(PYTHON) -m virtualenv $(VENV); }

# torch comes first and alone: a package that depends on it would pull a build with CUDA
$(VENV)/.torch: | $(BIN)/python
	@echo "== pip installs $(TORCH) in $(VENV): hundreds of megabytes, several minutes"
	$(PIP) "$(TORCH)"
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.torch
	@echo "== pip installs this project and what it needs in $(VENV): about a minute"
	$(PIP) -e ".[torch,plot,report]"
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.torch
	@echo "== pip installs this project, its tests and its documentation in $(VENV)"
	$(PIP) -e ".[torch,test,doc]"
	@touch $@

# torch stays if it is there, it is not asked for
$(VENV)/.light: pyproject.toml | $(BIN)/python
	@echo "== pip installs this project and its tests in $(VENV), without torch"
	$(PIP) -e ".[test]"
	@touch $@

# uv is the installer that knows how to choose the oldest versions
$(VENV)/.oldest: pyproject.toml | $(BIN)/python
	@echo "== uv installs the oldest dependencies in $(VENV)"
	$(PIP) uv
	$(BIN)/uv pip install --upgrade --python $(BIN)/python --resolution lowest-direct -e ".[test]"
	@touch $@

# the catalogue shows models taken from the tests
$(VENV)/.doc: pyproject.toml $(VENV)/.torch
	$(PIP) -e ".[torch,test,doc]"
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.torch
	$(PIP) -e ".[torch,bench]"
	@touch $@

demo: $(VENV)/.demo
	@echo "== converts a torch model, optimizes it, compares the two models"
	$(BIN)/python _doc/examples/plot_demo_mlp.py --output demo_output

test: $(VENV)/.test .models/.fetched lint
	$(PYTEST) --durations=15 $(PYTEST_ARGS)

test-fast: $(VENV)/.light
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	near=$$($(BIN)/python _unittests/near_change.py $(BASE:%=--base %)) && \
	  $(PYTEST) -rs -m "not slow and not long" --at-most $(MOST) $(PYTEST_ARGS) $$near

test-no-torch:
	$(MAKE) run-tests VENV=$(VENV)-no-torch WITH=.light

test-oldest:
	$(MAKE) run-tests VENV=$(VENV)-oldest WITH=.oldest

run-tests: $(VENV)/$(WITH)
	$(PYTEST) $(PYTEST_ARGS)

coverage: $(VENV)/.test .models/.fetched
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.light
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

doc: $(VENV)/.doc
	$(BIN)/python -m sphinx -W --keep-going -q -b html _doc _doc/_build/html
	@echo "== the pages are in _doc/_build/html/index.html"

# make doc has checked the links inside of the site; the scripts of the galleries do not run again
linkcheck: doc
	$(BIN)/python -m sphinx -W --keep-going -q -b linkcheck -d _doc/_build/html/.doctrees _doc _doc/_build/linkcheck

screenshots: doc
	$(BIN)/python _doc/extensions/screenshots.py _doc/_build/html

# SITE is a checkout of the branch that the forge serves, or any folder
site: doc
	$(BIN)/python _doc/extensions/publish.py _doc/_build/html $(or $(SITE),$(error SITE=FOLDER, the site))

bench: $(VENV)/.bench
	$(BIN)/python _doc/examples/bench_scaling.py --output bench_output
	$(BIN)/python _doc/examples/bench_corners.py --output bench_output --sizes 1000 10000
	$(BIN)/python _doc/examples/bench_peers.py --output bench_output
	$(BIN)/python _doc/examples/bench_shapes.py --output bench_output
	$(BIN)/python _doc/examples/bench_corpus.py --output bench_output

# 7 GB of disk
bench-large: $(VENV)/.bench
	$(BIN)/python _doc/examples/bench_large_model.py

# only the model files of these packages are used: their dependencies are not installed
.models/.fetched: | $(BIN)/python
	$(PIP) --no-deps --target .models rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3
	@touch $@

models: $(VENV)/.demo .models/.fetched
	$(BIN)/python _doc/examples/optimize_real_models.py --models .models --output models_output

wheel: | $(BIN)/python
	$(PIP) build twine
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

changes: $(VENV)/.light
	$(BIN)/python -m towncrier build --yes --version "$(VERSION)"

clean:
	rm -rf build dist *.egg-info .models demo_output bench_output models_output _doc/_build _doc/auto_*
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage* coverage_output
	rm -rf $(VENV) $(VENV)-boot $(VENV)-no-torch* $(VENV)-oldest*
