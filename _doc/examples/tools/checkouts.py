"""
Processes of several checkouts
==============================

A process takes its packages from a checkout and answers a request a line, so that what two
checkouts do is measured in turns. ``bench_corpus.py`` and ``bench_graphs.py`` start them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

#: the checkout this script is in
HERE = Path(__file__).resolve().parents[3]


def packages_only(root: Path) -> str:
    """A ``PYTHONPATH`` giving the packages of *root* before any editable installation."""
    return os.pathsep.join([str(root.resolve()), str(Path(__file__).resolve().parents[1])])


class Worker:
    """A script that runs :func:`serve`, with the packages of a checkout. It starts with the first
    request, and again with the one that follows a crash.

    :param script: the script
    :param root: the checkout
    :param options: its command line
    :param seed: ``PYTHONHASHSEED``, which decides the order of the sets of names
    """

    def __init__(self, script: str, root: Path, options: list[str], seed: int = 0):
        self.command = [sys.executable, script, *options]
        self.root = root.resolve()
        self.environment = {
            **os.environ,
            "PYTHONPATH": packages_only(self.root),
            "PYTHONHASHSEED": str(seed),
            "OMP_NUM_THREADS": "1",
        }
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.communicate()

    def ask(self, *request: str) -> dict[str, Any]:
        """The answer of the process; key `error` if it failed."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, env=self.environment, cwd=self.root, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            row: dict[str, Any] = json.loads(line)
            return row
        code = self.process.wait()
        self.process = None
        return {"error": f"the process of {self.root} ended with code {code}"}


def serve(answer: Callable[..., dict[str, Any]]) -> None:
    """Answers every request of the standard input; nothing else is written on the output.

    :param answer: gives the answer of a request, an exception becomes its key `error`
    """
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            row = answer(*json.loads(line))
        except Exception as error:
            row = {"error": f"{type(error).__name__}: {error}"}
        channel.write(json.dumps(row) + "\n")
        channel.flush()


def optimized(model: onnx.ModelProto, patterns: str, **options: Any) -> onnx.ModelProto:
    """The optimized model, with what every checkout has; one that is given is never modified.

    :param model: a model
    :param patterns: a selection of patterns
    :param options: other options of the optimization
    """
    from xbuilder import GraphBuilder, OptimizationOptions

    chosen = OptimizationOptions(patterns=patterns, **options)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=chosen)
    made: onnx.ModelProto = builder.to_onnx()
    return made
