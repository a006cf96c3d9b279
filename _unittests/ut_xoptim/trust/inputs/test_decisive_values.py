"""The values a model decides upon."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest

from xoptim.trust.inputs.decisive_values import decisive_values
from xoptim.trust.inputs.draws import accepted_inputs


def found(body: str, inputs: str = "int64 k", outputs: str = "bool y"):
    return decisive_values(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({outputs}) '
            f"<int64 c = {{16000}}, int64 two = {{2}}, float[7, 3] table = {{{','.join(['0'] * 21)}}}> "
            f"{{ {body} }}"
        )
    )


@pytest.mark.parametrize(
    "body,values",
    [
        ("y = Equal(k, c)", {16000}),
        ("y = Equal(c, k)", {16000}),
        ("y = Greater(k, c)", {15999, 16000, 16001}),
        ("a = Cast<to: int = 7>(k) b = Identity(a) y = Equal(b, c)", {16000}),
        ("a = Add(k, two) y = Equal(a, c)", {15998}),
        ("a = Sub(two, k) y = Equal(a, c)", {-15998}),
        ("a = Mul(k, two) y = Equal(a, c)", {8000}),
        ("a = Div(k, two) y = Equal(a, c)", {32000}),
        ("a = Mod(k, two) y = Cast<to: int = 9>(a)", {1, 2, 3}),
        ("d = Constant<value_int: int = 5>() y = Less(k, d)", {4, 5, 6}),
        ("y = If (k) <then_branch = t () => (bool u) { u = Equal(k, c) }, else_branch = e () => (bool v) { v = Not(k) }>",
         {0, 1, 16000}),
        ("r = Range(two, k, two) s = Size(r) y = Equal(s, c)", {0, 1, 2, 3}),
        ("a = Mul(k, k) y = Equal(a, c)", set()),
    ],
)  # fmt: skip
def test_constants_that_reach_a_comparison(body, values) -> None:
    assert found(body).values.get("k", set()) == values


@pytest.mark.parametrize(
    "body", ["f = Cast<to: int = 1>(k)", "s = Shape(k) f = Cast<to: int = 1>(s)"]
)
def test_an_infinite_bound(body) -> None:
    """No integer and no size is infinite."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> g (int64[n] k) => (bool[m] y) {{
            {body} c = Constant<value = float {{1.0}}>() y = Less(f, c)
        }}"""
    )
    model.graph.node[-2].attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(np.float32(np.inf)))
    feeds = accepted_inputs(model)[0]
    assert feeds["k"].dtype == np.int64


def test_functions_that_call_each_other() -> None:
    """So many calls are not followed; a result goes on in the graph that calls."""
    functions = "".join(
        f"""<domain: "f", opset_import: ["" : 18, "f" : 1]> f{i} (a) => (c)
        {{ b = f.f{i + 1}(a) c = f.f{i + 1}(b) }}"""
        for i in range(20)
    )
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (int64 k, int64 l) => (bool y, bool z) <int64 c = {{16000}}> {{
            m = f.f20(l) z = Equal(m, c) n = f.f0(k) y = Equal(n, c)
        }} {functions}
        <domain: "f", opset_import: ["" : 18]> f20 (a) => (c) {{
            two = Constant<value_int: int = 2>() c = Mul(a, two)
        }}"""
    )
    assert decisive_values(model).values == {"l": {8000}}


def test_bounds_of_indices() -> None:
    assert found("y = Gather(table, k)", outputs="float[3] y").bounds == {"k": 7}
    one = found("y = Gather<axis: int = 1>(table, k)", outputs="float[7] y")
    assert one.bounds == {"k": 3}
    shifted = found("a = Add(k, two) y = Gather(table, a)", outputs="float[3] y")
    assert shifted.bounds == {"k": 5}


def test_divisors() -> None:
    """The values for which the divisor is 0."""
    assert found("y = Div(two, k)").poles == {"k": {0}}
    assert found("a = Sub(k, two) y = Mod(two, a)").poles == {"k": {2}}
    assert found("y = Div(k, two)").poles == {}


def test_sizes_of_dimensions() -> None:
    body = "s = Shape(x) i = Constant<value_int: int = 1>() d = Gather(s, i) y = Less(d, two)"
    sizes = found(body, inputs="float[batch, seq] x").sizes
    assert sizes == {"seq": {1, 2, 3}}
