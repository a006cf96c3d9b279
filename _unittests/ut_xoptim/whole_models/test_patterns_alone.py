"""The node tests of the onnx package, with each pattern alone: what it does is right without the
others."""

from __future__ import annotations

import warnings
import zlib
from functools import lru_cache
from typing import Any

import onnx
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from ut_xbuilder.backend_cases import data_sets, node_cases, run
from ut_xoptim.patterns_cuda.cuda_ops import CUDA_OPS

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.domains import CUDA_DOMAIN
from xoptim.catalogue.registry import all_patterns
from xoptim.testing import assert_same_outputs, run_onnxruntime

#: operators whose results are random
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}
#: more than rounding: Gelu and the formula with Tanh, sums done in float16
APPROXIMATE = 5e-3
#: outputs in 16 bits
HALF = 2e-2


@lru_cache(maxsize=1)
def cases() -> dict[str, tuple[Any, frozenset[str]]]:
    """Each test whose results are not random, with its operators."""
    found = {}
    for name, case in sorted(node_cases().items()):
        types = frozenset(node.op_type for node in all_nodes(case.model.graph.node))
        if not types & RANDOM:
            found[name] = (case, types)
    return found


def cases_of(pattern: str) -> list[str]:
    """Tests which have a root of a pattern."""
    cls = all_patterns()[pattern]
    roots = {root.rpartition("::")[2] for root in cls.roots}
    starts = tuple(root[:-1] for root in roots if root.endswith("*"))
    return [
        name
        for name, (_, types) in cases().items()
        if roots & types or (starts and any(t.startswith(starts) for t in types))
    ]


@lru_cache(maxsize=64)
def expected_of(name: str) -> list[tuple[dict[str, Any], tuple[str, list[Any]] | None]]:
    """Inputs of a test, the runtime that runs it and what it gives."""
    case = cases()[name][0]
    return [(feeds, run(case.model, feeds)) for feeds, _ in data_sets(case)]


def _outputs(model: ModelProto, runtime: str, feeds: dict[str, Any]) -> list[Any]:
    if runtime == "onnxruntime" and all(n.domain != CUDA_DOMAIN for n in model.graph.node):
        return run_onnxruntime(model, feeds)
    return ReferenceEvaluator(model, new_ops=CUDA_OPS).run(None, feeds)


def _tolerance(pattern: str, outputs: list[Any]) -> float:
    """float16 is computed with other roundings when a constant is folded."""
    types = {str(getattr(v, "dtype", "")) for v in outputs}
    if types & {"float16", "bfloat16"}:
        return HALF
    return APPROXIMATE if "approximate" in all_patterns()[pattern].tags else 1e-5


def check_alone(pattern: str, name: str) -> bool:
    """Optimizes one test with one pattern, compares the results. Returns True if it changed."""
    case = cases()[name][0]
    options = OptimizationOptions(patterns=[pattern], verifies=True, processor="CPU,CUDA")
    builder = GraphBuilder(case.model, infer_shapes_options=True, optimization_options=options)
    rows = builder.optimize()
    if not any(r.get("instances") for r in rows if r["pattern"] == f"apply_{pattern}"):
        return False
    model = builder.to_onnx(optimize=False)
    if "onnxruntime" not in all_patterns()[pattern].tags:  # onnx does not know its operators
        onnx.checker.check_model(model)
    for feeds, done in expected_of(name):
        contrib = any(n.domain == "com.microsoft" for n in model.graph.node)
        if done is None or (contrib and done[0] == "reference"):
            continue  # no runtime runs both
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = _outputs(model, done[0], feeds)
        tolerance = _tolerance(pattern, done[1])
        assert_same_outputs(done[1], got, tolerance, tolerance, f"{pattern} on {name}")
    return True


#: one pair of a pattern and a test out of this number
STEP = 199


@pytest.mark.parametrize("part", range(2))
def test_some_patterns_on_some_nodes(part: int) -> None:
    pairs = [(p, name) for p in sorted(all_patterns()) for name in cases_of(p)]
    assert len(pairs) > 1000
    for pattern, name in pairs:  # the same ones whatever the other patterns are
        if zlib.crc32(f"{pattern} {name}".encode()) % STEP == part:
            check_alone(pattern, name)


@pytest.mark.long
@pytest.mark.parametrize("pattern", sorted(all_patterns()))
def test_every_node(pattern: str) -> None:
    for name in cases_of(pattern):
        check_alone(pattern, name)
