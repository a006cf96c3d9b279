"""The readers of a result whose facts improved are inferred again."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder
from xbuilder.facts.facts import ResultFacts
from xbuilder.inference.refresh import (
    note_constant_readers,
    refresh,
    refreshed,
    says_more,
)

CHAIN = """
agraph (float[n,m] x, float[12] z, bool k) => (float[P,Q] y, float[U,V] f)
{
    a = Mystery(x)
    b = Neg(a)
    s = Shape(b)
    y = Reshape(z, s)
    f = If (k) <
        then_branch = t () => (float[C,D] p) { p = Exp(b) },
        else_branch = e () => (float[E,F] q) { q = Exp(b) }
    >
}
"""


def chain():
    model = parse(CHAIN)
    model.graph.node[0].domain = "unknown"
    model.opset_import.add(domain="unknown", version=1)
    return GraphBuilder(model, infer_shapes_options=True)


def test_facts_go_downstream():
    builder = chain()
    assert builder.facts["s"].value is None
    builder.facts.refine("a", ResultFacts(TensorProto.FLOAT, (3, 4)), "a test")
    assert refresh(builder.graph, ["a"]) == 4
    assert builder.facts["b"] == ResultFacts(TensorProto.FLOAT, (3, 4))
    assert builder.facts["s"].value == (3, 4)
    assert builder.facts["y"].shape == (3, 4)
    assert builder.facts["f"].shape == (3, 4), "through the branches"


def test_nothing_goes_further_than_what_changes():
    builder = chain()
    builder.facts.refine("a", ResultFacts(TensorProto.FLOAT), "a test")
    assert refresh(builder.graph, ["a"]) == 3  # Neg, Shape and If: the type is all they learn
    assert refresh(builder.graph, ["a"]) == 1


def test_nothing_known_is_lost():
    """The operator is not known: what was said of its result stays."""
    builder = chain()
    builder.facts.refine("a", ResultFacts(TensorProto.FLOAT, (3, 4)), "a test")
    refresh(builder.graph, ["x"])
    assert builder.facts["a"] == ResultFacts(TensorProto.FLOAT, (3, 4))


def test_context():
    builder = chain()
    record = builder.store.producers["a"]
    with refreshed(builder.graph, record):
        builder.facts.refine("a", ResultFacts(TensorProto.FLOAT, ("n", 4)), "a test")
    assert builder.facts["s"].value == ("n", 4)


def facts(shape=None, value=None, **kwargs):
    return ResultFacts(kwargs.pop("type", 1), shape, kwargs.pop("rank", None), value, **kwargs)


@pytest.mark.parametrize(
    "new,old,expected",
    [
        (facts(), facts(), False),
        (facts(), facts(type=0), True),
        (facts(type=0), facts(), False),
        (facts(rank=2), facts(), True),
        (facts(("a", 2)), facts(rank=2), True),
        (facts((3, 2)), facts(("a", 2)), True),
        (facts(("a", 2)), facts(("b", 2)), True),
        (facts(("_g", 2)), facts(("b", 2)), False),
        (facts(("_g", 2)), facts(("_h", 2)), False),
        (facts(("a", 2)), facts(("_h", 2)), True),
        (facts((2,), ("a", 3)), facts((2,)), True),
        (facts((2,)), facts((2,), ("a", 3)), False),
        (facts((2,), ("a", 3)), facts((2,), ("_g", 3)), True),
        (facts((), 4), facts((), "a"), True),
        (facts((), 4), facts((), 4), False),
        (ResultFacts(sequence=facts()), ResultFacts(), True),
        (ResultFacts(optional=facts()), ResultFacts(), True),
    ],
)
def test_says_more(new, old, expected):
    assert says_more(new, old, lambda d: d.startswith("_")) is expected


def test_a_result_that_is_gone_is_not_known_again():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("batch", 3))
    builder.make_node("TopK", ["x", builder.make_initializer("k", [2])], ["v", "i"])
    builder.op.Neg("v", outputs=["y"])
    builder.make_tensor_output("y")
    record = builder.store.producers["v"]
    with refreshed(builder.graph, record):
        builder.facts.restart(record.outputs)
        builder.store.replace([record], [oh.make_node("Abs", ["x"], ["v"])], record)
    assert not builder.facts.is_local("i")


def test_what_reads_constants_is_constant():
    """A node whose last input became constant, and what reads it; not what reads something else."""
    builder = GraphBuilder(
        parse(
            "agraph (float[n] x) => (float[n] y, float[2] c, float[2] d)"
            " <float[2] w = {1, 2}, float[2] v = {1, 2}>"
            "{ a = Identity(w) b = Neg(a) c = Add(b, v) e = Exp(a) d = Div(e, v) y = Mul(x, a) }"
        ),
        infer_shapes_options=True,
    )
    constants = builder.graph.constants
    everything = {"a", "b", "c", "d", "e"}
    assert set(constants.computed) == everything
    for name in everything - {"a"}:
        del constants.computed[name]
    note_constant_readers(builder.graph, [builder.store.producers["a"]])
    assert set(constants.computed) == everything
