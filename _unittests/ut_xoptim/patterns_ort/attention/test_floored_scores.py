"""Softmax of scores a causal mask hides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.catalogue import speed_gated as gated
from xoptim.catalogue.speed_gates import SpeedGate
from xoptim.testing import check_no_match, check_pattern, model_from_text

pytestmark = pytest.mark.usefixtures("open_gates")
NAME = "CausalSoftmax"
LOW = float(np.finfo(np.float32).min)
#: positions of keys, not after those of queries; some keys are hidden from every query
BEFORE = """n0 = Shape<start = 2, end = 3>(x) n = Squeeze(n0, zero) r = Range(from, n, step)
    rows = Unsqueeze(r, rowAxes) columns = Unsqueeze(r, columnAxes)
    before = LessOrEqual(columns, rows) both = And(before, seen) """
ADDED = BEFORE + "c = Where(both, none, low) "
SOFTMAX = "y = Softmax<axis = -1>(z)"


def model(
    body: str,
    dims: str = "b, 4, s, s",
    low: float = LOW,
    kind: str = "float",
    seen: str = "bool[b, 1, 1, s] seen",
    more: str = "",
) -> Any:
    """Scores, their mask, a Softmax."""
    text = f"""g ({kind}[{dims}] x, {seen}{more}) => ({kind}[{dims}] y) <
    int64 from = {{0}}, int64 step = {{1}}, int64[1] zero = {{0}}, int64[3] rowAxes = {{0, 1, 3}},
    int64[3] columnAxes = {{0, 1, 2}}, {kind} none = {{0}}, {kind} low = {{0}}, {kind} k = {{4}},
    {kind} least = {{-80}}, int64[1] last = {{-1}}, {kind} minus = {{-4}}, {kind} tiny = {{0.000001}}
> {{ {body} }}"""
    proto = model_from_text(text)
    for tensor in proto.graph.initializer:
        if tensor.name == "low":
            (tensor.float_data if tensor.float_data else tensor.double_data)[0] = low
    return proto


FIRST = ADDED + "z = Add(x, c) "
#: what the documentation draws: name -> (before, after)
MODELS = {
    NAME: (
        model(FIRST + SOFTMAX),
        model(FIRST + "h = ReduceMax(z, last) d = Sub(z, h) f = Max(d, least) y = Softmax<axis = -1>(f)"),
    )
}  # fmt: skip
BIAS = ", float[1, 4, s, s] bias"
#: name -> model; the scores of masks of several forms
FORMS = {
    "two masks": model(ADDED + "o = Where(seen, x, low) z = Add(o, c) " + SOFTMAX),
    "a bias": model(ADDED + "o = Add(bias, x) z = Add(o, c) " + SOFTMAX, more=BIAS),
    "a bias after": model(ADDED + "o = Add(x, c) z = Add(o, bias) " + SOFTMAX, more=BIAS),
    "divided": model(ADDED + "o = Add(x, c) z = Div(o, k) " + SOFTMAX),
    "multiplied": model(ADDED + "o = Add(x, c) z = Mul(o, k) " + SOFTMAX),
    "filled": model(BEFORE + "z = Where(both, x, low) " + SOFTMAX),
    "filled twice": model(BEFORE + "o = Where(before, x, low) z = Where(seen, o, low) " + SOFTMAX),
    "a bias that is filled": model(
        BEFORE + "o = Where(both, bias, low) z = Add(x, o) " + SOFTMAX, more=BIAS
    ),
    "three dimensions": model(
        ADDED.replace("start = 2, end = 3", "start = 1, end = 2").replace("rowAxes", "last")
        .replace("columnAxes", "zero") + "z = Add(x, c) " + SOFTMAX,
        "b, s, s", seen="bool[b, 1, s] seen",
    ),
}  # fmt: skip


def feeds(proto: Any, batch: int, steps: int, scale: float) -> dict[str, np.ndarray]:
    """Random scores; the first keys of the first sequence are hidden: so is every key, from the
    first queries."""
    rng = np.random.default_rng(0)
    sizes = {"b": batch, "s": steps}
    found = {}
    for i in proto.graph.input:
        shape = [sizes.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
        found[i.name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    found["seen"] = found["seen"] > -scale
    found["seen"][:1, ..., :2] = False
    return found


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, scale: float) -> None:
    """Rows that are entirely hidden keep their result; empty batches and sequences."""
    proto = FORMS[name]
    sizes = [(2, 5), (1, 1), (3, 40), (0, 3), (2, 0)]
    given = [feeds(proto, *size, scale) for size in sizes]
    found = check_pattern(proto, None, NAME, feeds=given, atol=1e-6, rtol=1e-5)
    assert [n.op_type for n in found.graph.node].count("ReduceMax") == 1


@pytest.mark.parametrize("low", [LOW, -np.inf, -1e4])
def test_what_is_low(low: float) -> None:
    proto = model(FIRST + SOFTMAX, low=low)
    given = [feeds(proto, *size, 1.0) for size in [(2, 5), (3, 40)]]
    check_pattern(proto, None, NAME, feeds=given, atol=1e-6, rtol=1e-5)


def test_scores_that_are_not_finite() -> None:
    """NaN stay where they are, whether they are hidden or not."""
    for proto in (FORMS["filled"], MODELS[NAME][0]):
        given = feeds(proto, 2, 5, 1.0)
        given["x"][0, 0, 3, 0], given["x"][1, 1, 2, 4] = np.nan, np.nan
        given["x"][1, 2, 3, 2], given["x"][1, 3, 1, 1] = np.inf, -np.inf
        check_pattern(proto, None, NAME, feeds=[given], atol=1e-6, rtol=1e-5)


def test_nodes() -> None:
    check_pattern(*MODELS[NAME], NAME, atol=1e-6, rtol=1e-5)


HALF = "may not hide half"
#: name -> (model, reason)
REFUSED = {
    "no mask": (model("z = Abs(x) o = Not(seen) " + SOFTMAX), HALF),
    "padding": (model("c = Where(seen, none, low) z = Add(x, c) " + SOFTMAX), HALF),
    "keys before the queries": (
        model((FIRST + SOFTMAX).replace("LessOrEqual", "GreaterOrEqual")), HALF,
    ),
    "filled where it is seen": (model(BEFORE + "z = Where(both, low, x) " + SOFTMAX), HALF),
    "it hides little": (model(FIRST + SOFTMAX, low=-5.0), HALF),
    "it is divided until it hides little": (
        model(ADDED + "o = Add(x, c) z = Div(o, k) " + SOFTMAX, low=-2000.0), HALF,
    ),
    "it is multiplied until it hides little": (
        model(ADDED + "o = Add(x, c) z = Mul(o, tiny) " + SOFTMAX, low=-1e6), HALF,
    ),
    "it is filled with little": (
        model(BEFORE + "o = Where(before, x, low) z = Where(seen, o, none) " + SOFTMAX), HALF,
    ),
    "its sign changes": (model(ADDED + "o = Add(x, c) z = Mul(o, minus) " + SOFTMAX), HALF),
    "another axis": (model((FIRST + SOFTMAX).replace("axis = -1", "axis = 1")), "not the last one"),
    "double": (model(FIRST + SOFTMAX, kind="double"), "the type is not float"),
    "other keys": (
        model("c = Where(seen, none, low) z = Add(x, c) " + SOFTMAX, "b, 4, s, t",
              seen="bool[b, 1, 1, t] seen"),
        "there may be other keys",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    check_no_match(*[REFUSED[name][0], NAME, REFUSED[name][1]])


def test_refuses_cuda() -> None:
    options = OptimizationOptions(patterns="onnxruntime", processor="CUDA")
    builder = GraphBuilder(MODELS[NAME][0], infer_shapes_options=True, optimization_options=options)
    assert "ReduceMax" not in {n.op_type for n in builder.to_onnx().graph.node}


def test_set() -> None:
    """The set writes it for the processor CPU."""
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(FORMS["a bias"], infer_shapes_options=True, optimization_options=options)
    assert "ReduceMax" in {n.op_type for n in builder.to_onnx().graph.node}


def test_slower_where_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate of the processor decides, the parameter lifts it."""
    slower = SpeedGate("any", "CPU", "1.32.0", "any", 1.2)
    monkeypatch.setattr(gated, "find_speed_gate", lambda pattern, processor, target: slower)
    check_no_match(MODELS[NAME][0], NAME, "it is slower on CPU")
    check_pattern(*MODELS[NAME], f"{NAME}(measured=True)", atol=1e-6, rtol=1e-5)
