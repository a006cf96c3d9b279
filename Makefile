# Every target works on a fresh machine with Python >= 3.10, pip and make.
# Variables to override on the command line: PYTHON, VENV, TORCH (make test TORCH=torch==2.14.0),
# JOBS (test processes), PYTEST_ARGS.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || command -v python)
VENV ?= .venv
TORCH ?= torch==2.13.0
JOBS ?= 2
PYTEST_ARGS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check

# one thread per process: tests run in parallel and latencies are compared on equal terms
export OMP_NUM_THREADS := 1

.PHONY: help demo test lint format doc bench bench-large models wheel clean

help:
	@echo "make demo    converts a torch model, optimizes it, compares the two models"
	@echo "make test    checks style, format and types, runs the tests"
	@echo "make lint    style, format and types only"
	@echo "make format  formats the code"
	@echo "make doc     builds the documentation in _doc/_build/html"
	@echo "make bench   benchmarks: cost against the number of nodes, other optimizers, shapes"
	@echo "make bench-large  optimizes a model of 2.6 GB, measures memory (8 GB of disk)"
	@echo "make models  optimizes real models taken from PyPI packages"
	@echo "make wheel   builds the pure-Python wheel in dist"
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
	$(PIP) -e ".[torch,plot]"
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.torch
	@echo "== pip installs this project, its tests and its documentation in $(VENV)"
	$(PIP) -e ".[torch,test,doc]"
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
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=15 $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

doc: $(VENV)/.doc
	$(BIN)/python -m sphinx -W --keep-going -q -b html _doc _doc/_build/html

bench: $(VENV)/.bench
	$(BIN)/python _doc/examples/bench_scaling.py --output bench_output
	$(BIN)/python _doc/examples/bench_peers.py --output bench_output
	$(BIN)/python _doc/examples/bench_shapes.py --output bench_output
	$(BIN)/python _doc/examples/bench_corpus.py --output bench_output

# 8 GB of disk
bench-large: $(VENV)/.bench
	$(BIN)/python _doc/examples/bench_large_model.py

# only the model files of these packages are used: their dependencies are not installed
.models/.fetched: | $(BIN)/python
	$(PIP) --no-deps --target .models rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3
	@touch $@

models: $(VENV)/.demo .models/.fetched
	$(BIN)/python _doc/examples/optimize_real_models.py --models .models --output models_output

wheel: | $(BIN)/python
	$(PIP) build
	$(BIN)/python -m build --wheel

clean:
	rm -rf build dist *.egg-info .models demo_output bench_output models_output _doc/_build
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis $(VENV) $(VENV)-boot
