"""Softmax of scores a mask lowers by -100."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_no_match, check_pattern, model_from_text

PREPARED = "FunctionAttention,"
pytestmark = pytest.mark.usefixtures("open_gates")
ATTENTION, SOFTMAX = "TinyWeightsAttention", "TinyWeightsSoftmax"
#: four windows of six elements: two regions that do not see each other in the last two
REGIONS = np.array([[0] * 6, [0] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 1, 2, 2, 2]])
HEADS = """q = Reshape(Q, heads) k = Reshape(K, heads) v = Reshape(V, heads)
    kt = Transpose<perm = [0, 1, 3, 2]>(k) m = MatMul(q, kt) s = Mul(m, scale) """
VALUES = "w = Softmax<axis = -1>(z) y = MatMul(w, v)"
GUARDED = "w0 = Softmax<axis = -1>(z) i = IsNaN(w0) w = Where(i, none, w0) y = MatMul(w, v)"
#: a mask that is repeated for each image
REPEATED = """bs = Shape<start = 0, end = 1>(Q) times = Concat<axis = 0>(bs, ones)
    u = Unsqueeze(windows, zero) e = Expand(u, times) c = Reshape(e, each) """
#: the same, when regions are computed
FILLED = REPEATED.replace("windows", "p").replace("bs =", "p = Where(seen, none, low) bs =")
FLOOR = "h = ReduceMax(z, last) d = Sub(z, h) f = Max(d, least) "


def windows(low: float, kind: Any = np.float32) -> np.ndarray:
    """The mask of each window."""
    hidden = REGIONS[:, None, :, None] != REGIONS[:, None, None, :]
    return np.where(hidden, low, 0).astype(kind)


def model(body: str, result: str = "w, 2, 6, 4", low: float = -100.0, kind: str = "float") -> Any:
    """An attention in the four windows of each image, a bias for each head."""
    text = f"""agraph ({kind}[b, 192] Q, {kind}[b, 192] K, {kind}[b, 192] V, {kind}[n, 2, 6, 6] x,
        {kind}[1, 2, 6, 6] bias, bool[4, 1, 6, 6] seen) => ({kind}[{result}] y) <
    {kind} scale = {{0.5}}, {kind} none = {{0}}, {kind} low = {{-100}}, {kind} least = {{-80}},
    int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{-1}}, int64[4] ones = {{1, 1, 1, 1}},
    int64[4] each = {{-1, 1, 6, 6}}, int64[5] split = {{-1, 4, 2, 6, 6}},
    int64[4] joined = {{-1, 2, 6, 6}}, int64[4] heads = {{-1, 2, 6, 4}}
> {{ {body} }}"""
    proto = model_from_text(text)
    if "windows" in body:
        mask = windows(low, np.float32 if kind == "float" else np.float64)
        proto.graph.initializer.append(numpy_helper.from_array(mask, "windows"))
    return proto


def softmax(body: str, low: float = -100.0, kind: str = "float") -> Any:
    """Scores, their mask, a Softmax."""
    return model(body, "n, 2, 6, 6", low, kind)


MASKED = REPEATED + "z = Add(s, c) "
SCORES = (
    """v = Reshape(x, split) u = Unsqueeze(windows, zero) m = Add(v, u) z = Reshape(m, joined) """
)
#: what is seen in the first window
FILL = "few = Slice(seen, zero, one, zero) "
#: what the documentation draws: name -> (before, after)
MODELS = {
    ATTENTION: (
        model(HEADS + MASKED + VALUES), model(HEADS + MASKED + FLOOR + VALUES.replace("(z)", "(f)")),
    ),
    SOFTMAX: (
        softmax(SCORES + "y = Softmax<axis = -1>(z)"),
        softmax(SCORES + FLOOR + "y = Softmax<axis = -1>(f)"),
    ),
}  # fmt: skip
#: name -> model; masks of several forms
ATTENTIONS = {
    "repeated": MODELS[ATTENTION][0],
    "a bias": model(HEADS + REPEATED + "t = Add(bias, c) z = Add(s, t) " + VALUES),
    "filled": model(HEADS + FILLED + "z = Add(s, c) " + VALUES),
    "filled where it is hidden": model(
        HEADS + FILLED.replace("none, low", "low, none") + "z = Add(s, c) " + VALUES
    ),
    "NaN become zeros": model(HEADS + MASKED + GUARDED),
}
SOFTMAXES = {
    "windows": MODELS[SOFTMAX][0],
    "filled": softmax(FILL + "z = Where(few, x, low) y = Softmax<axis = 3>(z)"),
    "a bias": softmax(
        FILL + "c = Where(few, none, low) o = Add(x, c) z = Add(o, bias) y = Softmax(z)"
    ),
}


def feeds(proto: Any, images: int, scale: float) -> dict[str, np.ndarray]:
    """Random inputs; a query sees nothing."""
    rng = np.random.default_rng(0)
    sizes = {"n": 4 * images, "b": images}
    found = {}
    for i in proto.graph.input:
        shape = [sizes.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
        found[i.name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    found["seen"] = found["seen"] > 0
    found["seen"][:, :, 2] = False
    return found


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("name", [*ATTENTIONS, *(f"softmax, {name}" for name in SOFTMAXES)])
def test_forms(name: str, scale: float) -> None:
    """Scores may be large enough for what is hidden to weigh something; empty batches."""
    alone = name.startswith("softmax")
    proto = SOFTMAXES[name.split(", ")[1]] if alone else ATTENTIONS[name]
    found = check_pattern(
        proto, None, SOFTMAX if alone else PREPARED + ATTENTION,
        feeds=[feeds(proto, images, scale) for images in (2, 1, 0)], atol=1e-5 * scale, rtol=1e-5,
    )  # fmt: skip
    assert [n.op_type for n in found.graph.node].count("ReduceMax") == 1


@pytest.mark.parametrize("name", MODELS)
def test_nodes(name: str) -> None:
    given = [feeds(MODELS[name][0], 2, 1.0)]
    check_pattern(*MODELS[name], PREPARED + name, feeds=given, atol=1e-5, rtol=1e-5)


def test_scores_that_are_not_finite() -> None:
    """NaN stay where they are."""
    proto = MODELS[ATTENTION][0]
    given = feeds(proto, 2, 1.0)
    given["Q"][0, 5], given["Q"][1, 100] = np.nan, np.inf
    check_pattern(proto, None, PREPARED + ATTENTION, feeds=[given], atol=1e-5, rtol=1e-5)


NONE = "no weight is known to be too small"
#: name -> (model, reason)
REFUSED = {
    "no mask": (model(HEADS + "w = Softmax<axis = -1>(s) y = MatMul(w, v)"), NONE),
    "a mask that is given": (
        model(HEADS + "c = Cast<to = 1>(seen) z = Add(s, c) " + VALUES), NONE,
    ),
    "double": (model(HEADS + MASKED + VALUES, kind="double"), NONE),
    **{
        f"lowered by {low}": (model(HEADS + MASKED + VALUES, low=low), NONE)
        for low in (-50.0, -80.0, -110.0, -1e4, float(np.finfo(np.float32).min), 100.0)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    """The reason; the graph is put back."""
    proto, reason = REFUSED[name]
    reasons: list[str] = []
    pattern = get_pattern(ATTENTION)
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(proto, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [get_pattern("FunctionAttention"), pattern]).optimize()
    assert reason in reasons
    found = {n.op_type for n in builder.graph.nodes}
    assert "Softmax" in found and not {"ReduceMax", "LocalAttention"} & found


LAST = "y = Softmax<axis = -1>(z)"
#: name -> (model, reason)
REFUSED_SOFTMAX = {
    "no mask": (softmax("z = Abs(x) " + LAST), NONE),
    "lowered by less": (softmax(SCORES + LAST, low=-80.0), NONE),
    "another axis": (softmax(SCORES + "y = Softmax<axis = 1>(z)"), "not the last one"),
    "double": (softmax(SCORES + LAST, kind="double"), "the type is not float"),
    "a vector": (
        softmax("v = Constant<value_floats = [0., 0., 0., 0., 0., -100.]>() z = Add(x, v) " + LAST),
        NONE,
    ),
    "filled with less": (softmax(FILL + "z = Where(few, x, none) " + LAST), NONE),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_SOFTMAX)
def test_refuses_softmax(name: str) -> None:
    check_no_match(*[REFUSED_SOFTMAX[name][0], SOFTMAX, REFUSED_SOFTMAX[name][1]])


@pytest.mark.parametrize("hidden", [0, 1, 35, 36])
def test_part_of_the_mask(hidden: int) -> None:
    """One element out of 32 is enough, 36 of 1152."""
    proto = softmax("z = Add(x, low2) " + LAST)
    mask = np.zeros((1152 // 36, 1, 6, 6), np.float32)
    mask.ravel()[:hidden] = -100
    proto.graph.initializer.append(numpy_helper.from_array(mask, "low2"))
    if hidden < 36:
        check_no_match(proto, SOFTMAX, NONE)
    else:
        given = [feeds(proto, 8, 1.0)]
        found = check_pattern(proto, None, SOFTMAX, feeds=given, atol=1e-6, rtol=1e-5)
        assert "ReduceMax" in [n.op_type for n in found.graph.node]


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", MODELS)
def test_set(name: str, opset: int) -> None:
    """The set writes it before the operators, for the processor CPU."""
    found = {}
    for processor in ("CPU", "CUDA"):
        proto = MODELS[name][0]
        proto.opset_import[0].version = opset
        options = OptimizationOptions(patterns="default+onnxruntime", processor=processor)
        builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
        found[processor] = {n.op_type for n in builder.to_onnx().graph.node}
    assert "ReduceMax" in found["CPU"] and "ReduceMax" not in found["CUDA"]
