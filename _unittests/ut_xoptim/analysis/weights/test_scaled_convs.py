"""Convolutions that share a weight, each one followed by a product."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.constants import growth
from xoptim.analysis.weights import scaled_convs
from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    optimizer_of,
    run_onnxruntime,
)

#: channels of a weight of more bytes than the folds of a small model may add
MANY = 17000
#: channels of a weight the folds may add
FEW = 300


def shared(body: str, size: int = MANY, convs: int = 2) -> onnx.ModelProto:
    """A model where Conv(x, w, b0), Conv(x, w, b1)... give c0, c1...

    :param body: what reads them, and gives y0, y1...
    :param size: channels of w
    :param convs: number of convolutions
    """
    text = " ".join(f"c{i} = Conv(x, w, b{i})" for i in range(convs))
    model = model_from_text(f"g (float[a, 2, b, c] x) => () {{ {text} {body} }}")
    model.graph.output.extend(
        oh.make_tensor_value_info(o, TensorProto.FLOAT, None)
        for node in model.graph.node
        for o in node.output
        if o.startswith("y")
    )
    rng = np.random.default_rng(0)
    tensors = {f"b{i}": rng.standard_normal(size) for i in range(convs)}
    tensors["w"] = rng.standard_normal((size, 2, 1, 1))
    tensors.update((n, rng.random(size) + 0.5) for n in ("s", "v", "m", "o", "p", "q"))
    tensors.update((n, 1 + rng.random((size, 1, 1))) for n in ("k", "h"))
    tensors.update(two=np.array(2.0), three=np.array(3.0))
    inner = [a.g for n in model.graph.node for a in n.attribute if a.type == a.GRAPH]
    names = {n for g in (model.graph, *inner) for node in g.node for n in node.input}
    model.graph.initializer.extend(
        onh.from_array(v.astype(np.float32), n) for n, v in tensors.items() if n in names
    )
    return model


def operators(model: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in model.graph.node]


def reasons(model: onnx.ModelProto) -> list[str]:
    """Why the roots are refused."""
    optimizer = optimizer_of(model, ["ConvAffine"])
    (pattern,) = optimizer.patterns
    return [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]


ALIKE = {
    "Mul": "y0 = Mul(c0, k) y1 = Mul(k, c1)",
    "one number": "y0 = Mul(c0, two) y1 = Mul(two, c1)",
    "other means and biases": (
        "y0 = BatchNormalization(c0, s, o, m, v) y1 = BatchNormalization(c1, s, p, q, v)"
    ),
    "chains": (
        "d0 = BatchNormalization(c0, s, o, m, v) y0 = Mul(d0, k)"
        "d1 = BatchNormalization(c1, s, p, q, v) y1 = Mul(d1, k)"
    ),
    "a sum before": "y0 = Mul(c0, two) d1 = Add(c1, h) y1 = Mul(d1, two)",
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_new_weight_is_shared(name: str) -> None:
    model = check_pattern(shared(ALIKE[name]), None, "ConvAffine", atol=1e-4, rtol=1e-4)
    assert operators(model) == ["Conv", "Conv"]
    (name,) = {n.input[1] for n in model.graph.node}
    assert [i.name for i in model.graph.initializer if len(i.dims) == 4] == [name] == ["w"]


def test_one_after_the_other() -> None:
    """A convolution reads what another one of them gives."""
    rng = np.random.default_rng(0)
    model = model_from_text(
        """g (float[a, 200, b, c] x) => (float[a, 200, b, c] y) <float two = {2}>
        { c = Conv(x, w) d = Mul(c, two) e = Conv(d, w) f = Mul(e, two)
          r = Relu(f) i = Conv(r, w) y = Mul(i, two) }"""
    )
    weight = rng.standard_normal((200, 200, 1, 1)).astype(np.float32)
    model.graph.initializer.append(onh.from_array(weight / 20, "w"))
    got = check_pattern(model, None, "ConvAffine", atol=1e-4, rtol=1e-4)
    assert operators(got) == ["Conv", "Conv", "Relu", "Conv"]
    assert len(got.graph.initializer) == 1


BN = "BatchNormalization"
KEPT = {
    "another scale": ("y0 = Mul(c0, k) y1 = Mul(c1, h)", 2),
    "another number": ("y0 = Mul(c0, two) y1 = Mul(c1, three)", 2),
    "another variance": (f"y0 = {BN}(c0, s, o, m, v) y1 = {BN}(c1, s, o, m, q)", 2),
    "a sum": ("y0 = Mul(c0, k) y1 = Add(c1, k)", 1),
    "no product": ("y0 = Mul(c0, k) y1 = Relu(c1)", 1),
    "a product that is not constant": (
        "y0 = Mul(c0, k) y1 = Mul(c1, x)",
        1,
    ),
    "the result is used twice": (
        "y0 = Mul(c0, k) y1 = Mul(c1, k) y2 = Relu(c1)",
        1,
    ),
    "another reader": (
        "y0 = Mul(c0, k) y1 = Mul(c1, k) y2 = Abs(w)",
        1,
    ),
    "a bias and a weight": (
        "y0 = Mul(c0, k) y1 = Mul(c1, k) u = Reshape(w, r) y2 = Conv(x, u, b0)",
        1,
    ),
    "an output": ("y0 = Mul(c0, k) y1 = Mul(c1, k)", 1),
    "a subgraph": (
        "y0 = Mul(c0, k) y1 = Mul(c1, k) y2 = If(i) <then_branch = t () => (float[p, q, r, s] e)"
        " { e = Mul(w, two) }, else_branch = f () => (float[p, q, r, s] e) { e = Relu(w) }>",
        1,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_model_would_grow(name: str) -> None:
    body, count = KEPT[name]
    model = shared(body)
    if name == "an output":
        dims = [MANY, 2, 1, 1]
        model.graph.output.append(oh.make_tensor_value_info("w", TensorProto.FLOAT, dims))
    if name == "a subgraph":
        model.graph.input.append(oh.make_tensor_value_info("i", TensorProto.BOOL, []))
    if name == "a bias and a weight":
        model.graph.initializer.append(onh.from_array(np.array([MANY, 2, 1, 1]), "r"))
    found = reasons(model)
    assert sum("the weight is used elsewhere, the model would grow" in r for r in found) == count
    folded = optimize_with(model, ["ConvAffine"])[0]
    products = [op for op in operators(model) if op in ("Mul", BN)]
    assert [op for op in operators(folded) if op in ("Mul", BN)] == products


def test_the_first_one_folds_the_others() -> None:
    first, second = reasons(shared(ALIKE["Mul"]))
    assert first.startswith("MatchResult") and "folded with another convolution" in second


def test_growth() -> None:
    """Weights with other numbers are added as long as the folds of the model may add something."""
    products = [f"Mul(c{i}, {k})" for i, k in enumerate(["k", "h", "two", "k", "three"])]
    body = " ".join(f"y{i} = {p}" for i, p in enumerate(products))
    got = check_pattern(shared(body, FEW, 5), None, "ConvAffine", atol=1e-4, rtol=1e-4)
    assert operators(got) == ["Conv"] * 5
    assert len({n.input[1] for n in got.graph.node}) == 4, "two of them are alike"
    big = 4000  # 32,000 bytes: two more weights, not three
    options = OptimizationOptions(patterns="ConvAffine")
    builder = GraphBuilder(shared(body, big, 5), optimization_options=options)
    got = builder.to_onnx()
    spent = builder.graph.scope.totals.growth
    assert spent.spent <= (spent.total or 0) == growth.TIMES * 1024
    assert operators(got).count("Mul") == 2 and spent.spent == 2 * 32000


def test_parameters_are_stored_once() -> None:
    """A parameter of a torch model something else reads is not copied."""
    model = shared("y0 = Mul(c0, k) y1 = Relu(c1)", FEW)
    optimizer = optimizer_of(model, ["ConvAffine"])
    (pattern,) = optimizer.patterns
    (node,) = optimizer.iter_roots(pattern)
    assert optimizer.explain(pattern, node).startswith("MatchResult")
    optimizer.graph.constants.parameter_names.add("w")
    assert "used elsewhere, the model would grow" in optimizer.explain(pattern, node)


def test_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that many convolutions share is looked at once, whatever is folded."""
    count, calls = 60, []
    read = scaled_convs._scaled

    def counted(*args):
        calls.append(args)
        return read(*args)

    monkeypatch.setattr(scaled_convs, "_scaled", counted)
    body = " ".join(f"y{i} = Mul(c{i}, {'k' if i % 2 else 'h'})" for i in range(count))
    optimizer = optimizer_of(shared(body, convs=count), ["ConvAffine"])
    (pattern,) = optimizer.patterns
    for node in optimizer.iter_roots(pattern):
        optimizer.explain(pattern, node)
    assert len(calls) == count


FILLED = "w = ConstantOfShape <value = float[1] {3}> (n)"
H = "g (float[a, 2, b, c] x) => (float[a, 300, b, c] y)"


def test_a_weight_that_is_filled() -> None:
    """It is filled with another number: the file does not grow, whatever else reads it."""
    before = f"{H} <int64[4] n = {{300, 2, 1, 1}}, float two = {{2}}> {{ {FILLED} c1 = Conv(x, w) "
    after = (
        f"{H} <int64[4] n = {{300, 2, 1, 1}}>"
        "{ u = ConstantOfShape <value = float[1] {6}> (n) y = Conv(x, u) }"
    )
    check_pattern(before + "y = Mul(c1, two) }", after, "ConvAffine")


def test_any_reader_of_a_weight_that_is_filled() -> None:
    model = model_from_text(
        f"""{H[:-1]}, float[300, 2, 1, 1] z) <int64[4] n = {{300, 2, 1, 1}}, float two = {{2}}>
        {{ {FILLED} c1 = Conv(x, w) y = Div(c1, two) z = Neg(w) }}"""
    )
    got = optimize_with(model, ["ConvAffine"])[0]
    assert sorted(operators(got)) == ["ConstantOfShape"] * 2 + ["Conv", "Neg"]
    check_pattern(model, got, "ConvAffine")


def test_a_product_by_a_weight_that_is_filled() -> None:
    before = (
        "g (float[a, 30] x) => (float[a, 30] y) <int64[2] n = {30, 30}, float two = {2}>"
        "{ w = ConstantOfShape (n) c1 = MatMul(x, w) y = Mul(c1, two) }"
    )
    after = (
        "g (float[a, 30] x) => (float[a, 30] y) <int64[2] n = {30, 30}>"
        "{ u = ConstantOfShape <value = float[1] {0}> (n) y = MatMul(x, u) }"
    )
    check_pattern(before, after, "MatMulAffine")


@pytest.mark.parametrize(
    ("number", "factor", "reason"),
    [("3e38", "1e30", "not finite"), ("1e-30", "1e-30", "too small")],
)
def test_a_number_that_cannot_be_written(number: str, factor: str, reason: str) -> None:
    filled = FILLED.replace("{3}", f"{{{number}}}")
    text = (
        f"{H} <int64[4] n = {{300, 2, 1, 1}}, float two = {{{factor}}}>"
        f"{{ {filled} c1 = Conv(x, w) y = Mul(c1, two) }}"
    )
    (found,) = reasons(model_from_text(text))
    assert f"the new weight is {reason}" in found


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Convolutions of one weight, each followed by a few products and sums."""
    rows, convs = [], draw(st.integers(2, 4))
    for i in range(convs):
        last = f"c{i}"
        for j in range(draw(st.integers(0, 2))):
            op, name = draw(st.sampled_from(["Mul", "Add", "Div"])), f"d{i}_{j}"
            rows.append(f"{name} = {op}({last}, {draw(st.sampled_from(['k', 'h', 'two']))})")
            last = name
        rows.append(f"y{i} = Relu({last})")
    if draw(st.integers(0, 3)) == 0:
        rows.append("y9 = Abs(w)")
    return shared(" ".join(rows), draw(st.sampled_from([3, FEW, 9000, MANY])), convs)


def check_shared(model: onnx.ModelProto) -> None:
    """The same results with fewer nodes, and not more weights than the folds may add."""
    got = optimize_with(model, ["ConvAffine"])[0]
    assert len(got.graph.node) <= len(model.graph.node)
    weights = [i for i in got.graph.initializer if len(i.dims) == 4]
    before = [i for i in model.graph.initializer if len(i.dims) == 4]
    added = sum(len(i.raw_data) for i in weights) - sum(len(i.raw_data) for i in before)
    small = len(before[0].raw_data) <= 1024
    assert small or added <= growth.TIMES * 1024
    x = np.random.default_rng(0).standard_normal((1, 2, 2, 1)).astype(np.float32)
    pairs = zip(run_onnxruntime(model, {"x": x}), run_onnxruntime(got, {"x": x}), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(models())
def test_any(model: onnx.ModelProto) -> None:
    check_shared(model)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(models())
def test_many(model: onnx.ModelProto) -> None:
    check_shared(model)
