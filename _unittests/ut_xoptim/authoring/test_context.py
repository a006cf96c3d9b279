"""Questions of a rewrite to its context, and refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xoptim import GraphBuilderPatternOptimization, RewriteContext
from xoptim.authoring.context import context_of
from xoptim.authoring.deduction import Refusal
from xoptim.testing import model_from_text

TEXT = """agraph (float[a, 2] X, T, bool c) => (float[a, 2] Y, float[a, 2] Z, float[2, a] W, o)
<float k = {2.0}> {
    n = Neg(X) m = Mul(n, k) Y = Abs(m)
    f = com.microsoft.FastGelu(X) o = Abs(f)
    u = Anything(T)
    i = Exp(X) j = Sin(i)
    Z = If(c) < then_branch = t () => (float[a, 2] T1) { T1 = Abs(j) },
                else_branch = e () => (float[a, 2] E1) { E1 = Abs(X) } >
    W = Transpose<perm = [1, 0]>(X)
    d = Add(i, i) }"""


@pytest.fixture
def g() -> RewriteContext:
    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    context = context_of(GraphBuilderPatternOptimization(builder, None, processor="CUDA"))
    context.visited = [builder.store.producers["Y"]]
    return context


def node(g: Any, name: str) -> Any:
    return g.store.proto(g.store.producers[name])


def refused(reason: str, call: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(Refusal) as e:
        call(*args, **kwargs)
    assert e.value.reason == reason


def test_one_for_each_optimizer(g: Any) -> None:
    optimizer = GraphBuilderPatternOptimization(g.builder, None)
    assert context_of(optimizer) is context_of(optimizer) is not g
    assert context_of(g) is g


def test_the_queries_of_the_optimizer(g: Any) -> None:
    assert g.main_opset == 18 and g.has_processor("CUDA") and g.get_type("X") == 1
    assert g.is_constant_scalar("k") and g.node_before("Y").op_type == "Abs"


def test_refusing(g: Any) -> None:
    refused("because", g.refuse, "because")
    refused("because", g.require, 0, "because")
    refused("because", g.known, None, "because")
    assert g.require(1, "because") is None and g.known(0, "because") == 0


def test_before(g: Any) -> None:
    mul = g.before(node(g, "Y"), "Add", "Mul")
    assert mul is node(g, "m") and g.before("m") is mul
    assert g.before(mul).op_type == "Neg" and g.before("n", "Neg").op_type == "Neg"
    assert g.before_or_none(mul, index=1) is None and g.before_or_none(mul, index=7) is None
    assert g.before_or_none("X") is None and g.before_or_none("unknown") is None
    assert g.before_or_none("m", "Add") is None
    refused("no Add nor Sub before", g.before, "m", "Add", "Sub")
    refused("no node before", g.before, mul, index=1)


def test_before_each(g: Any) -> None:
    mul = node(g, "m")
    assert g.inputs(mul) == ("n", "k")
    assert g.before_each(mul, "Neg", "Abs") == [node(g, "n"), None]
    assert g.before_each(node(g, "d")) == [node(g, "i")] * 2


def test_domains(g: Any) -> None:
    assert g.before("f", "com.microsoft::FastGelu").op_type == "FastGelu"
    assert g.before_or_none("f", "FastGelu") is None
    assert g.before_or_none("m", "com.microsoft::Mul") is None
    assert g.before("f").op_type == "FastGelu"


def test_after(g: Any) -> None:
    assert g.after(node(g, "n"), "Mul") is node(g, "m") is g.after("n")
    assert g.after("f", "Abs") is node(g, "o")
    refused("Add is not the only use", g.after, "n", "Add")
    refused("node is not the only use", g.after, "X")


@pytest.mark.parametrize(
    "name",
    ["Y", "X", "i", "j", "unknown"],
    ids=["output", "several", "twice", "captured", "unknown"],
)
def test_not_the_only_use(g: Any, name: str) -> None:
    assert g.after_or_none(name) is None


def test_a_node_of_another_graph(g: Any) -> None:
    other = g.make_node("Abs", ["m"], ["y"])
    for ask in (g.before, g.after, g.look_at, g.inputs):
        with pytest.raises(OptionError, match="is not a node of this graph"):
            ask(other)


def test_what_is_known(g: Any) -> None:
    assert (g.type_of("m"), g.shape_of("W"), g.rank_of("X")) == (1, (2, "a"), 2)
    refused("the type is not known", g.type_of, "u")
    refused("the shape is not known", g.shape_of, "u")
    refused("the rank is not known", g.rank_of, "u")
    refused("why", g.shape_of, "u", "why")
    refused("why", g.rank_of, "u", "why")
    assert g.constant_of("k") == 2
    refused("an operand is not constant", g.constant_of, "X")
    refused("why", g.constant_of, "", "why")
    refused("why", g.type_of, "u", "why")


def test_nodes_that_are_not_visited(g: Any) -> None:
    visited = list(g.visited)
    assert g.producer_of("m", "Mul") is node(g, "m") is g.producer_of("m")
    assert g.reader_of("n", "Mul") is node(g, "m") is g.reader_of("n")
    refused("no Add nor Sub before", g.producer_of, "m", "Add", "Sub")
    refused("Add is not the only use", g.reader_of, "n", "Add")
    refused("why", partial(g.producer_of, "X", reason="why"))
    refused("why", partial(g.reader_of, "X", reason="why"))
    assert g.visited == visited
    assert g.before("m", "Mul") is node(g, "m") and g.visited == [
        *visited,
        g.record(node(g, "m")),
    ]


def test_scalar(g: Any) -> None:
    value = g.scalar(3, like="X")
    assert value.dtype == np.float32 and value.shape == () and value == 3
    refused("the type is not known", g.scalar, 3, like="u")


def test_filled(g: Any) -> None:
    """A constant where the shape is small and static, computed otherwise."""
    found = g.filled(0.5, like="k")
    assert found.dtype == np.float32 and found.shape == () and found == 0.5
    for name in ("X", "f"):
        found = g.filled(1, like=name)
        assert (found.op_type, found.inputs[0]) == ("Expand", np.float32(1))
        assert (found.inputs[1].op_type, found.inputs[1].inputs) == ("Shape", (name,))
    refused("the type is not known", g.filled, 3, like="u")


def test_like(g: Any) -> None:
    new = g.like(node(g, "W"), "n")
    assert (new.op_type, new.inputs, list(new.attributes), new.outputs) == (
        *("Transpose", ("n",), ["perm"]),
        1,
    )
    assert g.like(node(g, "W"), "n", perm=[0, 1]).attributes == {"perm": [0, 1]}
    assert not g.like(node(g, "W"), "n", perm=None).attributes
    assert g.like(node(g, "f"), "n").domain == "com.microsoft"


def test_like_writes_axes_as_the_opset_wants(g: Any) -> None:
    reduce = g.make_node("ReduceMax", ["X", "axes"], ["r", ""], keepdims=1)
    new = g.like(reduce, "X", axes=[1], keepdims=0)
    assert new.attributes == {"keepdims": 0} and new.inputs[1].tolist() == [1]
    assert (new.outputs, list(new.missing)) == (2, [1])
    assert g.like(reduce, "X", axes=None).inputs == ("X",)


def test_rewired(g: Any) -> None:
    new = g.rewired(node(g, "d"), {"i": "X", "unknown": "Y"})
    assert (new.op_type, new.inputs) == ("Add", ("X", "X"))
    assert g.rewired(node(g, "m"), {"n": "X"}).inputs == ("X", "k")
