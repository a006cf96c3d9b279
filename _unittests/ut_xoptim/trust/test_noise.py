"""The results of a model with other roundings."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from xbuilder.files.model_container import ModelContainer
from xoptim.trust.noise import double_results, optimized_results


def parse(body: str, inputs: str = "float[n] x", outputs: str = "float[n] y") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({outputs}) {{ {body} }}'
    )


def doubles(body: str, x, **kwargs):
    return double_results(ModelContainer(parse(body, **kwargs)), {"x": x}, ["y"])["y"]


def test_what_floats_lose_is_kept_with_doubles() -> None:
    x = np.array([1e-9, 3.0], np.float32)
    body = "one = Constant<value: tensor = float[1] {1.}>() a = Add(x, one) y = Sub(a, one)"
    assert doubles(body, x)[0] == pytest.approx(1e-9, rel=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "c = Cast<to: int = 1>(x) y = Neg(c)",
        "c = Cast<to: int = 11>(x) d = Cast<to: int = 1>(c) y = Neg(d)",
        "a = HardSigmoid(x) y = Neg(a)",  # no kernel for doubles
        "a = Neg(x) b = HardSigmoid(a) y = Neg(b)",
        "s = Shape(x) o = ConstantOfShape<value: tensor = float[1] {2.}>(s) y = Mul(x, o)",
    ],
)
def test_types_agree_whatever_has_a_kernel(body) -> None:
    x = np.array([0.5, -2.0], np.float32)
    expected = ReferenceEvaluator(parse(body)).run(None, {"x": x})[0]
    np.testing.assert_allclose(doubles(body, x), expected, rtol=1e-6)


def test_bodies_run_with_floats() -> None:
    body = """
        a = Neg(x)
        c = Constant<value: tensor = bool {1}>()
        y = If (c) <then_branch = t () => (float[n] u) { u = Abs(a) },
                    else_branch = e () => (float[n] v) { v = Identity(a) }>
    """
    assert doubles(body, np.array([2.0], np.float32)).tolist() == [2.0]


def test_a_result_as_onnxruntime_optimizes_the_model() -> None:
    container = ModelContainer(parse("a = Neg(x) y = Abs(a)"))
    x = np.ones(2, np.float32)
    assert optimized_results(container, {"x": x}, "a")[0].tolist() == [-1, -1]
    assert optimized_results(container, {"x": x}, "y")[0].tolist() == [1, 1]
    assert optimized_results(container, {"x": x.astype(np.int64)}, "y") == []
    assert [o.name for o in container.proto.graph.output] == ["y"]
