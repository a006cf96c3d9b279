"""Every node test of the onnx package goes through the builder: nothing it states is wrong, and what
it optimizes gives the same results."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from ut_xbuilder.backend_cases import (
    VARIANTS,
    contradictions,
    data_sets,
    node_cases,
    run,
    symbolic,
    with_every_result,
)

from xbuilder import GraphBuilder, OptimizationOptions, ResultFacts
from xoptim.testing import assert_same_outputs, run_onnxruntime, run_reference

onnxruntime.set_default_logger_severity(4)

#: neither onnxruntime nor the reference evaluator runs the original model
NOT_RUN: dict[str, str] = {}

_CONTRIB = "written with operators of onnxruntime, which does not run the original"
#: an optimized model that no runtime can compare with its original: patterns "default+onnxruntime"
NOT_COMPARED = {
    "test_causal_conv_with_state_decode_step_expanded": _CONTRIB,
    "test_causal_conv_with_state_silu_expanded": _CONTRIB,
    "test_causal_conv_with_state_silu_fp16_expanded": _CONTRIB,
    "test_causal_conv_with_state_silu_with_past_state_expanded": _CONTRIB,
    "test_causal_conv_with_state_swish_alias_expanded": _CONTRIB,
}

#: outputs are random
RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike")

CASES = sorted(node_cases())


def _builder(model: onnx.ModelProto, patterns: str | None) -> GraphBuilder:
    return GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=True),
    )


def _is_random(model: onnx.ModelProto) -> bool:
    return any(n.op_type in RANDOM for n in model.graph.node)


def _tolerance(values: list) -> float:
    """float16 is computed with other roundings when a constant is folded."""
    types = {str(getattr(v, "dtype", "")) for v in values}
    return 2e-2 if types & {"float16", "bfloat16"} else 1e-5


def _real_values(case: Any, feeds: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Values of every result a run gives, the expected ones of the outputs."""
    complete = with_every_result(case.model)
    if _is_random(case.model) or len(complete.graph.output) == len(case.model.graph.output):
        return expected
    done = run(complete, feeds)
    if done is None:
        return expected
    return {**dict(zip([o.name for o in complete.graph.output], done[1], strict=True)), **expected}


@pytest.mark.parametrize("name", CASES)
def test_nothing_stated_is_contradicted(name: str) -> None:
    """(a) no type, rank, dimension or content differs from the values of a real run, whether the
    dimensions of the inputs are known or are symbols."""
    case = node_cases()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder = _builder(case.model, None)
    for feeds, expected in data_sets(case):
        values = _real_values(case, feeds, expected)
        assert not contradictions(builder, values)
        for variant in VARIANTS:
            model, sizes = symbolic(case.model, feeds, variant)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                dynamic = _builder(model, None)
            assert not contradictions(dynamic, values, sizes), variant


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (("a", "b"), ""),
        (("b", "a"), "'b' is 3"),
        (("a", "a+2"), "'a+2' is 4"),
        (("a", 4), "4 is 4"),
        (("a",), "rank"),
        (("new", "new"), "is 2 in"),
        (("broadcast(a,b)", "b"), "cannot be broadcast"),
    ],
)
def test_a_wrong_fact_is_found(shape: tuple, reason: str) -> None:
    """The comparison finds what is wrong in terms of the sizes of the inputs."""
    builder = GraphBuilder(18)
    new = builder.new_dimension("new")
    shape = tuple(new if d == "new" else d for d in shape)
    builder.facts.refine("y", ResultFacts(1, shape))
    found = contradictions(builder, {"y": np.zeros((2, 3), np.float32)}, {"a": 2, "b": 3})
    assert reason in " ".join(found) if reason else not found


@pytest.mark.parametrize("patterns", ["default", "default+onnxruntime"])
@pytest.mark.parametrize("name", CASES)
def test_optimized_gives_the_same(name: str, patterns: str) -> None:
    """(b) the optimized model is valid and gives what the original gives."""
    case = node_cases()[name]
    before = case.model.SerializeToString(deterministic=True)
    optimized = _builder(case.model, patterns).to_onnx(optimize=True)
    assert case.model.SerializeToString(deterministic=True) == before
    onnx.checker.check_model(optimized)
    if _is_random(case.model):
        return
    for feeds, _ in data_sets(case):
        done = run(case.model, feeds)
        if done is None:
            assert name in NOT_RUN
            continue
        assert name not in NOT_RUN
        runtime, expected = done
        contrib = any(n.domain == "com.microsoft" for n in optimized.graph.node)
        if runtime == "reference" and contrib:  # the evaluator does not know these operators
            arrays = {
                k: np.asarray(v) if isinstance(v, np.generic) else v for k, v in feeds.items()
            }
            after = run(optimized, arrays)
            if after is None:
                assert name in NOT_COMPARED
                continue
            assert name not in NOT_COMPARED
            got = after[1]
        else:
            function = run_onnxruntime if runtime == "onnxruntime" else run_reference
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = function(optimized, feeds)
        tolerance = _tolerance(expected)
        assert_same_outputs(expected, got, tolerance, tolerance, name)
