"""Nothing is left of what went away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import check_stores, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xbuilder.facts.facts import DECLARED, ResultFacts
from xbuilder.graph.graph_check import check_graph

MODEL = """
agraph (float[N,4] x) => (float[N,4] y)
<float[4] w = {1, 2, 3, 4}, float[N,4] c>
{
    a = Neg(w)
    b = Exp(a)
    c = Add(x, b)
    d = Transpose<perm=[1,0]>(c)
    e = Transpose<perm=[1,0]>(d)
    f = Identity(e)
    y = Relu(f)
}
"""


def builder_of(text: str = MODEL, **options: object) -> GraphBuilder:
    return GraphBuilder(
        parse(text),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(**options),
    )


def names_of(builder: GraphBuilder) -> set[str]:
    """Every name a table of the builder holds."""
    table = builder.constants
    rows = (builder.facts, builder.facts.origins, table.computed, table.cached_names)
    others = (
        builder.facts.devices,
        builder.constants.sources,
        builder.store.pinned,
        builder.constants.parameter_names,
    )
    return {name for names in (*rows, *others) for name in names}


@pytest.mark.parametrize("patterns", [None, "default", "default+onnxruntime"])
def test_an_optimized_model(patterns: str | None) -> None:
    builder = builder_of(patterns=patterns, verifies=True)
    builder.set_device("d", -1)
    for name in "abcd":
        builder.get_constant(name, exc=False, computed_value=True)
        builder.constants.uniform_value(name)
    assert {"a", "b", "d", "f"} <= names_of(builder)
    builder.optimize()
    check_stores(builder)
    assert names_of(builder) <= {*builder.store.producers, *builder.initializers_dict, "x"}
    assert not names_of(builder) & {"a", "f"}


def test_a_function_is_inlined() -> None:
    text = """
    <ir_version: 8, opset_import: ["": 18, "local": 1]>
    agraph (float[N] x) => (float[N] y) { t = local.f(x)  y = Neg(t) }
    <opset_import: ["": 18], domain: "local">
    f (a) => (b) { c = Exp(a)  b = Abs(c) }
    """
    builder = builder_of(text, patterns=None)
    builder.to_onnx()
    check_stores(builder)
    assert names_of(builder) == {"x", *builder.store.producers}


def test_a_branch_is_inlined() -> None:
    text = """
    agraph (float[N] x) => (float[N] y) <bool c = {1}> {
        t = Exp(x)
        u = If(c) <then_branch = g1 () => (float[N] p) { p = Neg(t) },
                   else_branch = g2 () => (float[N] q) { q = Abs(t) }>
        y = Neg(u)
    }
    """
    builder = builder_of(text, patterns="default", verifies=True)
    builder.optimize()
    assert {r.op_type for r in builder.store.nodes} >= {"Exp"}
    check_stores(builder)


def test_a_sparse_initializer_goes() -> None:
    model = parse("agraph (float[2] x) => (float[2] y) { y = Neg(x) }")
    values = oh.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = oh.make_tensor("i", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(oh.make_sparse_tensor(values, indices, [2]))
    builder = GraphBuilder(model)
    assert "s" in builder.facts
    assert builder.remove_unused() == 1
    check_graph(builder.graph)
    assert "s" not in builder.facts


def test_an_initializer_takes_its_entries_away() -> None:
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", TensorProto.FLOAT, (2,))
    value = np.ones(2, dtype=np.float32)
    name = builder.make_initializer("", value, external=True, parameter_name="p", source="here")
    shared = builder.make_initializer("", value)
    assert builder.constants.uniform_value(name) == builder.constants.uniform_value(shared) == 1
    assert (
        {name}
        == builder.constants.parameter_names
        == builder.constants.external_names
        == set(builder.constants.sources)
    )
    builder.op.Neg("x", outputs=["y"])
    builder.make_tensor_output("y")
    assert builder.remove_unused() == 2
    check_graph(builder.graph)
    assert names_of(builder) == {"x", "y"} and not builder.constants.external_names
    assert not builder.constants.shared_names


def _dead_fact(builder: GraphBuilder) -> None:
    builder.facts.refine("gone", ResultFacts(1))


def _dead_constant(builder: GraphBuilder) -> None:
    builder.constants.computed["a"] = builder.store.producers["b"]


def _dead_value(builder: GraphBuilder) -> None:
    builder.constants._values["gone"] = np.zeros(1)


def _dead_uniform(builder: GraphBuilder) -> None:
    builder.constants._uniform["gone"] = 0


def _dead_default(builder: GraphBuilder) -> None:
    builder.constants.overridable.add("gone")


def _dead_source(builder: GraphBuilder) -> None:
    builder.constants.sources["x"] = "an input"


def _dead_external(builder: GraphBuilder) -> None:
    builder.constants.external_names.add("y")


def _dead_parameter(builder: GraphBuilder) -> None:
    builder.constants.parameter_names.add("y")


def _dead_kept(builder: GraphBuilder) -> None:
    builder.store.pinned.add("w")


def _dead_device(builder: GraphBuilder) -> None:
    builder.set_device("gone", -1)


def _dead_origin(builder: GraphBuilder) -> None:
    builder.facts.refine("gone", ResultFacts(1), DECLARED)
    del builder.facts["gone"]


def _dead_shared(builder: GraphBuilder) -> None:
    name = builder.make_initializer("", np.zeros(1))
    assert builder.constants.shared_name(np.zeros(1)) == name
    del builder.constants.initializers[name]


@pytest.mark.parametrize(
    "spoil,what",
    [
        (_dead_fact, "the facts of"),
        (_dead_origin, "the origins"),
        (_dead_device, "the devices"),
        (_dead_kept, "the nodes to keep"),
        (_dead_value, "the values of constants"),
        (_dead_uniform, "the values of constants"),
        (_dead_default, "the default values"),
        (_dead_source, "the sources"),
        (_dead_external, "the external"),
        (_dead_parameter, "the parameters"),
        (_dead_constant, "the computed constants"),
    ],
)
def test_what_is_left_is_seen(spoil: Callable[[GraphBuilder], None], what: str) -> None:
    builder = builder_of()
    check_graph(builder.graph)
    spoil(builder)
    with pytest.raises(PatternError, match=f"left in {what}"):
        check_graph(builder.graph)


def test_a_shared_initializer_that_is_left_is_seen() -> None:
    builder = builder_of()
    _dead_shared(builder)
    builder.facts.restart(list(builder.constants.shared_names))
    with pytest.raises(PatternError, match="left in the shared initializers"):
        check_graph(builder.graph)
