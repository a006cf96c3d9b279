"""Every pattern on the models of its tests, at each opset: where onnxruntime loads the model, it
loads the optimized one, has kernels for what the pattern writes, and gives the same results.

An operator that onnxruntime replaces by the function that defines it is right if no more nodes run
than before. ``python -m ut_xoptim.whole_models.opset_matrix`` judges every cell, in an hour, from the folder
``_unittests``, and prints the patterns whose models onnxruntime runs in no opset.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnxruntime
from onnx import ModelProto
from ut_xoptim.whole_models.near_misses import is_undefined, sources

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.operators.domains import main_domain
from xbuilder.operators.opsets import ir_version_for, newest_opset
from xoptim.catalogue.registry import all_patterns
from xoptim.linting.model_check import check_model
from xoptim.testing import assert_same_outputs, make_feeds, optimize_with

#: the number of a model, a pattern or a set, an opset
Key: TypeAlias = "tuple[int, str, int]"
#: sets that are judged
SETS = ("default", "default+onnxruntime")
#: opsets: onnxruntime accepts those before, operators rarely change
OPSETS = tuple(range(11, newest_opset() + 1))
#: tolerance of results in float16, of sets, of rewrites by precision
HALF, SET = 2e-2, 2e-3
TOLERANCES = {"exact": 1e-5, "rounding": 1e-3, "approximate": 5e-3}
#: the pattern does nothing; onnxruntime does not load the model, or not run it; both give the same
SAME_GRAPH, CANNOT_LOAD, CANNOT_RUN, SAME = "same graph", "cannot load", "cannot run", "same"
WRONG = "wrong"
#: options without which a pattern does nothing on the processor of the tests
OPTIONS = dict.fromkeys(
    ("EmbedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    "(on_cpu=True)",
)
_GPU = "onnxruntime has a kernel for what it writes on CUDA only"
_READ = "it goes where another pattern reads what it writes, which the models of its tests lack"
_MISSING = "its models do not load: its tests, and type_matrix.py, compare it with the reference"
#: the beginning of the name of a module, or the name of a pattern -> the reason why onnxruntime
#: compares the pattern in no opset
UNCOMPARED = {
    "xoptim.patterns_cuda.": "its operators are those of onnx-extended, on CUDA",
    "xoptim.patterns_ort.lowering.": _MISSING,
    "Attention3D": "it reads what FunctionAttention writes: its tests run both",
    "BiasSoftmax": _GPU,
    "BiasSplitGelu": _GPU,
    "BinaryInvestigation": "it observes and changes nothing",
    "ComplexMul": _GPU,
    "ContribGemmaRotaryEmbedding": _GPU,
    "DecoderAttention": _GPU,
    "FunctionCausalMask": _READ,
    "FunctionCausalMaskMulAdd": _READ,
    "FunctionCosSinCache": _READ,
    "GatedRelativePositionBias": _GPU,
    "GreedySearch": "its model calls a decoder that is no model of onnxruntime by itself",
    "RelativePositionBias": _GPU,
}
CELLS = (SAME, SAME_GRAPH, CANNOT_LOAD, CANNOT_RUN, WRONG)


class Cell(NamedTuple):
    """One cell of the matrix: the outcome, why it is wrong, the patterns that were applied."""

    kind: str
    reason: str = ""
    applied: frozenset[str] = frozenset()


class Loaded:
    """A model in a session without the optimizations of onnxruntime, and the operators it runs."""

    def __init__(self, model: ModelProto):
        options = onnxruntime.SessionOptions()
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def operators(self) -> list[tuple[str, str]]:
        """The operator of each node onnxruntime runs, those of bodies excepted."""
        groups = self.session.get_provider_graph_assignment_info()
        return [(n.domain, n.op_type) for group in groups for n in group.get_nodes()]


def at_opset(model: ModelProto, opset: int) -> ModelProto:
    """The same nodes in another opset; most of them are valid, or onnxruntime refuses the model."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for one in [*copy.opset_import, *(o for f in copy.functions for o in f.opset_import)]:
        if not main_domain(one.domain):
            one.version = opset
    copy.ir_version = ir_version_for(opset)
    return copy


def load(model: ModelProto) -> Loaded | None:
    """A model in a session, None if onnxruntime refuses it, or does not see that it is invalid."""
    try:
        GraphBuilder(model)
        return Loaded(model)
    except Exception:
        return None


def judge(pattern: str, model: ModelProto, opset: int) -> Cell:
    """Runs a pattern alone on a model in an opset, and compares."""
    moved = at_opset(model, opset)
    before = load(moved)
    if before is None:
        return Cell(CANNOT_LOAD)
    optimized, rows, _ = optimize_with(moved, [pattern + OPTIONS.get(pattern, "")])
    applied = applied_in(rows)
    if not applied:
        return Cell(SAME_GRAPH)
    cell = _judged(moved, before, optimized, TOLERANCES[all_patterns()[pattern].precision])
    return cell._replace(applied=applied)


def applied_in(rows: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The patterns that were applied, in the statistics of an optimization."""
    names = (row["pattern"] for row in rows if row.get("instances"))
    return frozenset(n.removeprefix("apply_") for n in names if n.startswith("apply_"))


def _judged(model: ModelProto, before: Loaded, optimized: ModelProto, atol: float) -> Cell:
    try:
        after = Loaded(optimized)
    except Exception as error:
        if any(f.code == "X008" for f in check_model(model).findings):
            return Cell(CANNOT_LOAD)  # onnxruntime infers too little of the model to refuse it
        return Cell(WRONG, f"does not load: {error}"[:300])
    run = after.operators()
    expanded = written(optimized) - written(model) - {*run, ("", "Constant")}
    if expanded and len(run) > len(before.operators()):
        return Cell(WRONG, f"no kernel for {sorted(expanded)}, more nodes run")
    return _compared(model, before, after, atol)


def written(model: ModelProto) -> set[tuple[str, str]]:
    """The operators of a graph, those of its bodies and local functions excepted."""
    functions = {(f.domain, f.name) for f in model.functions}
    found = {(main_domain(n.domain), n.op_type) for n in model.graph.node}
    return found - functions


def _compared(model: ModelProto, before: Loaded, after: Loaded, atol: float) -> Cell:
    names = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim}
    sizes = {name: 2 + i for i, name in enumerate(sorted(filter(None, names)))}
    try:
        feeds = make_feeds(model, sizes)
        expected = _run_or_none(before, feeds)
        if expected is None:  # positions may be out of bounds, 0 and 1 seldom are
            feeds = {n: v % 2 if v.dtype.kind in "iu" else v for n, v in feeds.items()}
            expected = _run_or_none(before, feeds)
    except Exception:
        expected = None
    if expected is None:
        return Cell(CANNOT_RUN)
    if any(getattr(v, "dtype", None) == np.float16 for v in expected):
        atol = HALF
    try:
        got = after.session.run(None, feeds)
        assert_same_outputs(expected, got, atol, atol, "after")
    except Exception as error:
        if is_undefined(model, feeds, expected):
            return Cell(CANNOT_RUN)
        return Cell(WRONG, f"{type(error).__name__}: {error}"[:300])
    return Cell(SAME)


def _run_or_none(loaded: Loaded, feeds: Mapping[str, Any]) -> list[Any] | None:
    try:
        results: list[Any] = loaded.session.run(None, dict(feeds))
    except Exception:
        return None
    return results


def judge_set(patterns: str, model: ModelProto, opset: int) -> Cell:
    """Runs a set on a model in an opset, and compares."""
    moved = at_opset(model, opset)
    before = load(moved)
    if before is None:
        return Cell(CANNOT_LOAD)
    options = OptimizationOptions(patterns=patterns)
    builder = GraphBuilder(moved, infer_shapes_options=True, optimization_options=options)
    applied = applied_in(builder.optimize())
    return _judged(moved, before, builder.to_onnx(optimize=False), SET)._replace(applied=applied)


def cells(opsets: Sequence[int], sets: Sequence[str] = SETS) -> Iterator[tuple[str, Key]]:
    """Enumerates the cells of the matrix, as a name and what :func:`judge_cell` judges: each
    pattern on its models, each set on all of them, in each opset.

    :param opsets: opsets
    :param sets: sets
    """
    seen: set[bytes] = set()
    for i, (pattern, model) in enumerate(sources()):
        content = model.SerializeToString(deterministic=True)
        selections = [pattern, *(sets if content not in seen else ())]
        seen.add(content)
        lowest = all_patterns()[pattern].min_opset
        for opset in opsets:
            for selection in selections:
                if selection in sets or opset >= lowest:
                    yield f"{selection} on model {i} of {pattern}", (i, selection, opset)


def judge_cell(key: Key) -> Cell:
    """The cell of a number among :func:`sources`, a pattern or a set, an opset."""
    i, selection, opset = key
    model = sources()[i][1]
    run = judge_set if selection in SETS else judge
    return run(selection, model, opset)


def reason_of(pattern: str) -> str:
    """The reason why a pattern is compared in no opset, empty if there is none."""
    module = all_patterns()[pattern].__module__ if pattern in all_patterns() else ""
    return next(
        (why for key, why in UNCOMPARED.items() if key in (pattern, module[: len(key)])), ""
    )


def main() -> None:
    """Judges all the cells, prints those that are wrong, the table by opset, and what did not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--opsets", type=int, nargs="+", default=OPSETS)
    parser.add_argument("--sets", nargs="*", default=SETS)
    arguments = parser.parse_args()
    counts: dict[int, Counter[str]] = {opset: Counter() for opset in arguments.opsets}
    kinds: dict[str, set[str]] = {}
    for name, key in cells(arguments.opsets, arguments.sets):
        cell, (_, selection, opset) = judge_cell(key), key
        counts[opset][cell.kind] += 1
        for one in {selection} | cell.applied:  # a pattern is compared in a set as well
            kinds.setdefault(one, set()).add(cell.kind)
        if cell.kind == WRONG:
            print(f"{name}, opset {opset}: {cell.reason}", flush=True)
    print("opset", *CELLS, sep=" | ")
    for opset, found in counts.items():
        print(opset, *(found[kind] for kind in CELLS), sep=" | ")
    for selection, seen in sorted(kinds.items()):
        if not seen & {SAME, WRONG}:
            reason = reason_of(selection) or ", ".join(sorted(seen))
            print(f"{selection} is compared in none of these opsets: {reason}")


if __name__ == "__main__":
    sys.exit(main())
