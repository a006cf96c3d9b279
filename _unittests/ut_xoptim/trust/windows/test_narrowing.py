"""Narrow windows: a few rows of large weights, all of them when these rows do not agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper as onh
import pytest
from onnx import NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import rewrite
from xoptim.authoring import RewriteContext
from xoptim.testing import model_from_text
from xoptim.trust.windows.certificates import Certificate
from xoptim.trust.windows.narrowing import KEPT, narrow_window
from xoptim.trust.windows.validation import Validation, WrongRewriteError
from xoptim.trust.windows.window import Window


def conv_model(channels: int = 128, size: int | str = 40) -> onnx.ModelProto:
    """A convolution whose channels are scaled."""
    text = f"""g (float[batch, {channels}, {size}, {size}] x) => (float[a, b, c, d] y) {{
        t = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w) y = Mul(t, s) }}"""
    model = model_from_text(text)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(channels, channels, 3, 3)).astype(np.float32)
    scale = rng.uniform(1, 2, (channels, 1, 1)).astype(np.float32)
    model.graph.initializer.extend([onh.from_array(weight, "w"), onh.from_array(scale, "s")])
    return model


def validated(model: onnx.ModelProto, pattern: Any) -> list[Certificate]:
    """The certificates of the rewrites of a pattern."""
    validation = Validation()
    options = OptimizationOptions(patterns=[pattern], features=[validation])
    GraphBuilder(model, infer_shapes_options=True, optimization_options=options).optimize()
    return validation.summary.certificates


def scaled(factor: np.ndarray) -> Any:
    """A rewrite of Conv(x, w) * s into Conv(x, w * s), whose weight is multiplied by a factor."""

    @rewrite(root="Mul", precision="rounding", name="Scaled")
    def apply(g: RewriteContext, node: NodeProto) -> Any:
        conv = g.before(node, "Conv")
        weight, scale = (g.constant_of(n) for n in (conv.input[1], node.input[1]))
        attributes = {a.name: a for a in conv.attribute}
        return g.op.Conv(conv.input[0], weight * scale[:, None] * factor, **attributes)

    return apply()


def test_rows_are_sampled() -> None:
    one = np.float32(1)
    (certificate,) = validated(conv_model(), scaled(one))
    assert certificate.verdict == "right" and "rows" in certificate.methods
    assert [s["batch"] for s in certificate.sizes] == [2, 1, 0]
    (certificate,) = validated(conv_model(4), scaled(one))
    assert certificate.verdict == "right" and "rows" not in certificate.methods


def test_wrong_weights() -> None:
    """Rows that differ are run whole, and the message has the shapes of the model."""
    with pytest.raises(WrongRewriteError, match=r"x: float32\[2, 128, 40, 40\]"):
        validated(conv_model(), scaled(np.float32(1.5)))


def window(model: onnx.ModelProto, names: set[str], results: list[str]) -> Window:
    """A window whose sides are the nodes of a model."""
    graph = GraphBuilder(model, infer_shapes_options=True).graph
    nodes = list(model.graph.node)
    found = Window(graph, nodes, nodes, results=results)
    found.read_constants()
    assert set(found.constants) == names
    return found


def test_narrow_window() -> None:
    whole = window(conv_model(), {"w", "s"}, ["y"])
    narrow = narrow_window(whole)
    assert narrow is not None
    assert narrow.facts_of("x").shape == ("batch", KEPT, KEPT, KEPT)
    assert narrow.facts_of("y").shape is None and narrow.facts_of("y").rank == 4
    assert narrow.constants["w"].shape == (KEPT, KEPT, 3, 3)
    assert narrow.constants["s"].shape == (KEPT, 1, 1)
    first, last = whole.constants["s"][0], whole.constants["s"][-1]
    assert narrow.constants["s"][0] == first and narrow.constants["s"][-1] == last
    assert set(narrow.constants["s"].ravel()) < set(whole.constants["s"].ravel())
    assert whole.constants["w"].shape == (128, 128, 3, 3) and whole.facts_of("x").shape[1] == 128
    assert narrow_window(narrow) is None


def test_nothing_to_cut() -> None:
    model = model_from_text("g (float[300, 300] x) => (float[a, b] y) { y = Flatten(x) }")
    assert narrow_window(window(model, set(), ["y"])) is None


def test_other_weights_are_run_once() -> None:
    """Layers that differ by their weights alone: the first one has every size."""
    text = """g (float[batch, 4, 9] x) => (float[a, b, c] y) {
        t = Conv(x, w1) u = Mul(t, s1) v = Conv(u, w2) y = Mul(v, s2) }"""
    model = model_from_text(text)
    rng = np.random.default_rng(0)
    for name in ("w1", "w2"):
        value = rng.normal(size=(4, 4, 1)).astype(np.float32)
        model.graph.initializer.append(onh.from_array(value, name))
    for name in ("s1", "s2"):
        value = rng.uniform(1, 2, (4, 1)).astype(np.float32)
        model.graph.initializer.append(onh.from_array(value, name))
    first, second = validated(model, scaled(np.float32(1)))
    assert [first.verdict, second.verdict] == ["right", "right"]
    assert (first.draws, second.draws) == (5, 1) and not second.repeated
