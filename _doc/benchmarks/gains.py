"""Measures the latency that each pattern gains: in the model of its tests, and in the models it was applied to."""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "extensions")]

from pattern_models import collect_examples  # noqa: I001
from xbuilder.errors import XoptimError
from xoptim.authoring.outlining import INTERMEDIATE
from xoptim.trust.inputs.draws import accepted_inputs
from xoptim.trust.inputs.random_inputs import open_dimensions
from xoptim.trust.latency import compare_sessions, fast_session
from xoptim.trust.tuning import Tuning, tune

#: size of the dimensions that the model of a test leaves open, if it accepts this size
SIZE = 32
#: number of models each pattern is measured on, those where it saves the most nodes come first
MODELS = 2


def measured_examples(wanted: Container[str] = ()) -> Iterator[dict[str, Any]]:
    """Measures the models that the catalogue draws, before and after one application.

    :param wanted: the patterns to measure, all of them if empty
    :return: rows; one that was not measured tells why
    """
    for name, (before, after) in sorted(collect_examples().items()):
        if wanted and name not in wanted:
            continue
        row = {"pattern": name, "model": "", "rewrites": 1, "microseconds": "", "ratio": ""}
        row |= {"low": "", "high": "", "why": ""}
        try:
            first, second = (fast_session(m.SerializeToString(), 1) for m in (before, after))
        except Exception:  # the errors of onnxruntime have no common class
            yield row | {"why": _reason(after)}
            continue
        try:
            found = compare_sessions(first, second, _feeds(before), 9, 0.02)
        except XoptimError:
            yield row | {"why": _reason(after)}
            continue
        yield row | {
            "microseconds": round(found.before * 1e6, 1),
            "ratio": round(found.ratio, 3),
            "low": round(found.low, 3),
            "high": round(found.high, 3),
        }


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    """Inputs of a model, large if it accepts large ones."""
    try:
        return accepted_inputs(model, sizes=dict.fromkeys(open_dimensions(model), SIZE))[0]
    except XoptimError:
        return accepted_inputs(model)[0]


def _reason(after: onnx.ModelProto) -> str:
    """Why onnxruntime does not run the models of a pattern."""
    if any(node.domain == INTERMEDIATE for node in after.graph.node):
        return "another pattern replaces the operator it writes"
    return "onnxruntime has no kernel for it on the CPU"


def measured_models(
    folder: Path, patterns: str, wanted: Container[str] = ()
) -> Iterator[dict[str, Any]]:
    """Measures the models of a corpus, optimized with and without each pattern applied to them.

    :param folder: `<group>/<name>/model.onnx`
    :param patterns: the selection that optimizes the models
    :param wanted: the patterns to measure, all of them if empty
    :return: rows
    """
    for model, applied in sorted(_chosen(folder).items()):
        names = [name for name in applied if not wanted or name in wanted]
        if not names:
            continue
        how = Tuning(",".join(names), patterns, threads=(1,), blocks=7, seconds=0.03, inputs=_given)
        try:
            measures = tune([folder / model / "model.onnx"], how)
        except XoptimError as e:
            print(f"{model}: {e}", file=sys.stderr)
            continue
        for one in measures:
            if one.ok:
                yield {
                    "pattern": one.pattern,
                    "model": model,
                    "rewrites": one.rewrites,
                    "microseconds": round(one.microseconds, 1),
                    "ratio": round(one.ratio, 3),
                    "low": "",
                    "high": "",
                    "why": "",
                }
        print(f"{model}: {len(measures)} patterns", flush=True)


def _given(path: Path) -> list[dict[str, Any]] | None:
    """The inputs that a corpus has beside a model, None if it has none."""
    stored = path.with_name("in0.npz")
    return [dict(np.load(stored))] if stored.exists() else None


def _chosen(folder: Path) -> dict[str, list[str]]:
    """The patterns to measure on each model: each pattern is measured on few models."""
    applied = defaultdict(list)
    with (HERE / "data" / "fired.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if (folder / row["model"] / "model.onnx").exists():
                applied[row["pattern"]].append((-int(row["nodes"]), row["model"]))
    found = defaultdict(list)
    for name, models in sorted(applied.items()):
        for _, model in sorted(models)[:MODELS]:
            found[model].append(name)
    return found
