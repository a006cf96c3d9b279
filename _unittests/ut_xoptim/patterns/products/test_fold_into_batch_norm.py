"""Products and sums by constants around a BatchNormalization."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from hypothesis import strategies as st
from onnx import TensorProto
from ut_xoptim.patterns.products.folding_chains import chain_tests

from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

H = "g (float[a, 2, b] x) => (float[a, 2, b] y)"
#: deviations 2 and 4
NORM = "float[2] s = {4, -4}, float[2] o = {1, 0.5}, float[2] m = {1, 2}, float[2] v = {4, 16}"
BN = "BatchNormalization<epsilon = 0.0>"
K = "float[2, 1] k = {2, 4}"


def _norm(scale: str, bias: str) -> str:
    return (
        f"{H} <float[2] s = {{{scale}}}, float[2] o = {{{bias}}}, float[2] m = {{1, 2}},"
        f" float[2] v = {{4, 16}}> {{ y = {BN}(x, s, o, m, v) }}"
    )


MODELS = {
    "BatchNormalizationAffine": {
        "multiplied and added": (
            f"{H} <{NORM}, {K}, float t = {{1}}>"
            f"{{ c1 = {BN}(x, s, o, m, v) c2 = Mul(c1, k) y = Add(t, c2) }}",
            _norm("8, -16", "3, 3"),
        ),
        "until something is not constant": (
            f"g (float[a, 2, b] x, float[a, 2, b] z) => (float[a, 2, b] y) <{NORM}, {K}>"
            f"{{ c1 = {BN}(x, s, o, m, v) c2 = Mul(c1, k) c3 = Add(c2, k)"
            " c4 = Mul(c3, z) y = Add(c4, k) }",
            "g (float[a, 2, b] x, float[a, 2, b] z) => (float[a, 2, b] y)"
            " <float[2] s = {8, -16}, float[2] o = {4, 6}, float[2] m = {1, 2},"
            f" float[2] v = {{4, 16}}, {K}>"
            f"{{ c1 = {BN}(x, s, o, m, v) c2 = Mul(c1, z) y = Add(c2, k) }}",
        ),
        "until a result is an output": (
            f"g (float[a, 2, b] x) => (float[a, 2, b] c2, float[a, 2, b] y) <{NORM}, {K}>"
            f"{{ c1 = {BN}(x, s, o, m, v) c2 = Mul(c1, k) y = Add(c2, k) }}",
            "g (float[a, 2, b] x) => (float[a, 2, b] c2, float[a, 2, b] y)"
            " <float[2] s = {8, -16}, float[2] o = {2, 2}, float[2] m = {1, 2},"
            f" float[2] v = {{4, 16}}, {K}>"
            f"{{ c2 = {BN}(x, s, o, m, v) y = Add(c2, k) }}",
        ),
        "subtracted and divided": (
            f"{H} <{NORM}, {K}, float t = {{1}}>"
            f"{{ c1 = {BN}(x, s, o, m, v) c2 = Sub(c1, t) y = Div(c2, k) }}",
            _norm("2, -1", "0, -0.125"),
        ),
        "twice": (
            f"{H} <{NORM}> {{ c1 = {BN}(x, s, o, m, v) y = {BN}(c1, s, o, m, v) }}",
            _norm("8, 4", "1, 2"),
        ),
        "any mean and variance": (
            "g (float[a, 2, b] x, float[2] m, float[2] v) => (float[a, 2, b] y)"
            " <float[2] s = {4, -4}, float[2] o = {1, 0.5}, float k = {2}>"
            "{ w = Abs(v) c1 = BatchNormalization(x, s, o, m, w) y = Mul(k, c1) }",
            "g (float[a, 2, b] x, float[2] m, float[2] v) => (float[a, 2, b] y)"
            " <float[2] s = {8, -8}, float[2] o = {2, 1}>"
            "{ w = Abs(v) y = BatchNormalization(x, s, o, m, w) }",
        ),
    },
    "AffineBatchNormalization": {
        "added": (
            f"{H} <{NORM}, {K}> {{ c1 = Add(x, k) y = {BN}(c1, s, o, m, v) }}",
            _norm("4, -4", "5, -3.5"),
        ),
        "multiplied": (
            f"{H} <{NORM}, {K}> {{ c1 = Mul(k, x) y = {BN}(c1, s, o, m, v) }}",
            _norm("8, -16", "3, -5.5"),
        ),
        "subtracted from a constant": (
            f"{H} <{NORM}, float k = {{3}}> {{ c1 = Sub(k, x) y = {BN}(c1, s, o, m, v) }}",
            _norm("-4, 4", "3, 1.5"),
        ),
    },
}

NEAR_MISSES = {
    "BatchNormalizationAffine": {
        "used elsewhere": (
            f"g (float[a, 2, b] x) => (float[a, 2, b] y, float[a, 2, b] c1) <{NORM}, {K}>"
            f"{{ c1 = {BN}(x, s, o, m, v) y = Mul(c1, k) }}",
            "the result of the normalization is used elsewhere",
        ),
        "not constant": (
            f"g (float[a, 2, b] x, float[2, 1] k) => (float[a, 2, b] y) <{NORM}>"
            f"{{ c1 = {BN}(x, s, o, m, v) y = Mul(c1, k) }}",
            "the other operand is not constant",
        ),
        "a scale that is not constant": (
            f"g (float[a, 2, b] x, float[2] z) => (float[a, 2, b] y) <{NORM}, {K}>"
            f"{{ c1 = {BN}(x, z, o, m, v) y = Mul(c1, k) }}",
            "a parameter of BatchNormalization is not constant",
        ),
        "another axis": (
            f"g (float[a, 2, 2] x) => (float[a, 2, 2] y) <{NORM}, float[2] k = {{1, 2}}>"
            f"{{ c1 = {BN}(x, s, o, m, v) y = Mul(c1, k) }}",
            "does not have one value for each channel",
        ),
        "training": (
            f"{H} <{NORM}, {K}> {{ c1, p, q = BatchNormalization<training_mode=1>(x, s, o, m, v)"
            "  y = Mul(c1, k) }",
            "BatchNormalization is training",
        ),
        "an unknown rank": (
            f"g (float[] x) => (float[] y) <{NORM}, {K}>"
            f"{{ c1 = {BN}(x, s, o, m, v) y = Mul(c1, k) }}",
            "the rank is not known",
        ),
        "overflow": (
            f"{H} <{NORM}, float k = {{3e38}}> {{ c1 = {BN}(x, s, o, m, v) y = Mul(c1, k) }}",
            "the new bias is not finite",
        ),
    },
    "AffineBatchNormalization": {
        "the half of a Gelu": (
            f"{H} <{NORM}, float one = {{1}}, float half = {{0.5}}> {{ e = Erf(x) u = Add(e, one)"
            f" n = Mul(x, u) c1 = Mul(n, half) y = {BN}(c1, s, o, m, v) }}",
            "it is a part of a Gelu",
        ),
        "nothing before": (f"{H} <{NORM}> {{ y = {BN}(x, s, o, m, v) }}", "no .* before"),
        "used elsewhere": (
            f"g (float[a, 2, b] x) => (float[a, 2, b] y, float[a, 2, b] c1) <{NORM}, {K}>"
            f"{{ c1 = Mul(x, k) y = {BN}(c1, s, o, m, v) }}",
            "what BatchNormalization reads is used elsewhere",
        ),
        "a constant that broadcasts": (
            f"g (float[a, 1, b] x) => (float[a, 2, b] y) <{NORM}, {K}>"
            f"{{ c1 = Mul(x, k) y = {BN}(c1, s, o, m, v) }}",
            "the number of channels of the operand is not known",
        ),
        "a constant that adds dimensions": (
            f"g (float[2, b] x) => (float[1, 2, b] y) <{NORM}, float[1, 1, 1] k = {{2}}>"
            f"{{ c1 = Mul(x, k) y = {BN}(c1, s, o, m, v) }}",
            "the rank of the operand",
        ),
        "a mean that is not constant": (
            f"g (float[a, 2, b] x, float[2] z) => (float[a, 2, b] y) <{NORM}, {K}>"
            f"{{ c1 = Mul(x, k) y = {BN}(c1, s, o, z, v) }}",
            "a parameter of BatchNormalization is not constant",
        ),
        "training": (
            f"{H} <{NORM}, {K}> {{ c1 = Mul(x, k)"
            "  y, p, q = BatchNormalization<training_mode=1>(c1, s, o, m, v) }",
            "BatchNormalization is training",
        ),
        "a negative variance": (
            f"{H} <{NORM}, {K}> {{ c1 = Mul(x, k) n = Neg(v) y = {BN}(c1, s, o, m, n) }}",
            "a variance is not positive",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5)
test_refuses = refusal_tests(NEAR_MISSES)


def test_types_of_parameters_are_kept():
    """Since opset 14 parameters may have a wider type than the data."""
    two = 0x4000  # bits, the way the parser reads float16
    text = (
        "g (float16[a, 2, b] x) => (float16[a, 2, b] y)"
        " <float[2] s = {1, 3}, float[2] o = {1, 2}, "
        f"float16[1] k = {{{two}}}>"
        f"{{ c1 = {BN}(x, s, o, o, s) y = Mul(c1, k) }}"
    )
    got = optimize_with(model_from_text(text), ["BatchNormalizationAffine"])[0]
    (node,) = got.graph.node
    values = {i.name: onh.to_array(i) for i in got.graph.initializer}
    scale, bias = values[node.input[1]], values[node.input[2]]
    assert (scale.dtype, bias.dtype) == (np.float32, np.float32)
    assert (scale.tolist(), bias.tolist()) == ([2, 6], [2, 4])


@pytest.mark.parametrize("pattern", sorted(MODELS))
def test_old_broadcasting(pattern: str):
    """Before opset 7 an attribute says how operands are broadcast."""
    text = (
        f"{H} <{NORM}, float k = {{2}}> {{ c1 = Mul<broadcast=1>(x, k)"
        "  c2 = BatchNormalization<is_test=1, consumed_inputs=[0, 0, 0, 1, 1]>(c1, s, o, m, v)"
        "  y = Mul<broadcast=1>(c2, k) }"
    )
    got = optimize_with(model_from_text(text, 5), [pattern])[0]
    assert [n.op_type for n in got.graph.node] == ["Mul", "BatchNormalization", "Mul"]


@st.composite
def chains(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Normalizations, products and sums by constants, one after the other."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    size = draw(st.integers(0, 3))
    tensors: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []
    shapes = [(), (1,), (size, 1), (1, size, 1), (1, 1, 1), (2,), (1, 1, 1, 1)]
    for i in range(draw(st.integers(2, 6))):
        op = draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "BatchNormalization"]))
        inputs = [nodes[-1].output[0] if nodes else "x"]
        if op == "BatchNormalization":
            inputs.extend(f"k{i}_{j}" for j in range(4))
            tensors.update((n, rng.random(size) + 0.5) for n in inputs[1:])
        else:
            dims = draw(st.sampled_from(shapes))
            tensors[f"k{i}"] = (rng.random(dims) + 0.5) * rng.choice([-1, 1], dims)
            inputs.insert(draw(st.integers(0, 1)), f"k{i}")
        nodes.append(oh.make_node(op, inputs, [f"r{i}"]))
    outputs = {nodes[-1].output[0], draw(st.sampled_from(nodes)).output[0]}
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["a", size, "b"])],
        [oh.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in sorted(outputs)],
        [onh.from_array(np.asarray(v, dtype=np.float32), n) for n, v in tensors.items()],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    return model, {"x": rng.standard_normal((draw(st.integers(0, 2)), size, 2)).astype("f")}


test_any_chain, test_many_chains = chain_tests(chains(), sorted(MODELS))
