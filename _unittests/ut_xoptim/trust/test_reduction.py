"""The smallest model that shows a difference."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from xbuilder.nodes.functions import all_nodes
from xoptim.trust.reduction import ReductionError, first_difference, reduce_model

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
CHAIN = (
    HEAD
    + """g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z)
<float[4] w = {1, 2, 3, 4}> {
    a = Exp(x)  b = Add(a, w)  c = Neg(b)  d = Mul(c, w)  e = Floor(d)  f = Abs(e)  y = Sqrt(f)
    z = Sin(a)
}"""
)
FEEDS = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}


def has(*op_types: str):
    """A difference that shows when a model has some operators."""

    def shows(model, inputs):
        onnx.checker.check_model(model)
        assert set(inputs) == {i.name for i in model.graph.input}
        found = {node.op_type for node in model.graph.node}
        return "has them" if found.issuperset(op_types) else ""

    return shows


def operators(small) -> list[str]:
    return [node.op_type for node in small.model.graph.node]


@pytest.mark.parametrize(
    "wanted", [("Floor",), ("Exp",), ("Sqrt",), ("Sin",), ("Neg", "Mul"), ("Add", "Abs"), ("Exp", "Sin")]
)  # fmt: skip
def test_nothing_else_is_kept(wanted):
    small = reduce_model(onnx.parser.parse_model(CHAIN), FEEDS, has(*wanted))
    assert sorted(operators(small)) == sorted(wanted)
    assert small.nodes == (8, len(wanted)) and small.kind == "has them"


def test_nodes_next_to_the_difference_are_tried_first():
    """With the constants they read; the rest of a long model costs a bisection."""
    chain = " ".join(f"a{i + 1} = Neg(a{i})" for i in range(128))
    text = f"""{HEAD} g (float[n] a0) => (float[n] y) {{ {chain}
        k = Constant<value_float = 2.0>() b = Floor(a128) c = Mul(b, k) y = Sqrt(c) }}"""
    feeds = {"a0": np.ones(2, dtype=np.float32)}
    for wanted in (("Floor",), ("Constant", "Mul"), ("Floor", "Mul")):
        small = reduce_model(onnx.parser.parse_model(text), feeds, has(*wanted))
        assert sorted(operators(small)) == sorted(wanted)
        assert small.tries < 16


@pytest.mark.parametrize(
    ("wanted", "last", "kept"), [("Floor", "Floor", 5), ("Exp", "Exp", 1), ("Sin", "Sin", 2)]
)
def test_the_first_node_that_differs(wanted, last, kept):
    """The model goes from its inputs to this node."""
    found = first_difference(onnx.parser.parse_model(CHAIN), FEEDS, has(wanted))
    assert operators(found)[-1] == last and found.nodes == (8, kept)
    assert list(found.inputs) == ["x"] and found.tries < 8


@pytest.mark.parametrize("wanted", ["Neg", "Abs", "Ceil", "Sqrt"])
def test_the_nodes_of_other_branches_do_not_hide_it(wanted):
    """Nodes of the other branch and constants are between those that differ."""
    text = (
        HEAD
        + """g (float[n, 4] x) => (float[n, 4] y) {
        a = Neg(x)  s = Sin(x)  i = Constant<value_float = 1.0>()  u = Cos(s)  b = Abs(a)
        v = Tan(u)  j = Constant<value_float = 2.0>()  w = Atan(v)  c = Ceil(b)  k = Mul(w, j)
        l = Mul(k, i)  d = Add(c, l)  y = Sqrt(d) }"""
    )
    found = first_difference(onnx.parser.parse_model(text), FEEDS, has(wanted))
    assert operators(found)[-1] == wanted and found.tries < 8


def test_no_node_differs():
    with pytest.raises(ReductionError, match="no difference"):
        first_difference(onnx.parser.parse_model(CHAIN), FEEDS, has("Cos"))


BRANCHES = (
    HEAD
    + """g (float[n, 4] x, bool c) => (float[n, 4] y) {
    a = Exp(x)
    b = If (c) <
        then_branch = p () => (float[n, 4] z) { d = Neg(a) z = If (c) <
            then_branch = r () => (float[n, 4] t) { s = Floor(d) t = Sin(s) },
            else_branch = o () => (float[n, 4] k) { k = Abs(d) }> },
        else_branch = q () => (float[n, 4] w) { w = Cos(a) }>
    y = Sqrt(b) }"""
)


def anywhere(*op_types: str):
    """A difference that shows when a model has some operators, in its bodies as well."""

    def shows(model, inputs):
        onnx.checker.check_model(model)
        found = {node.op_type for node in all_nodes(model.graph.node)}
        return "has them" if found.issuperset(op_types) else ""

    return shows


@pytest.mark.parametrize(
    "wanted, ran, nodes",
    [
        (("Floor",), True, ["Floor"]),
        (("Neg", "Sin"), True, ["Neg", "Sin"]),
        (("Cos",), False, ["Cos"]),
        (("If", "Cos"), False, ["If"]),
        (("Floor",), False, ["If"]),
    ],
)
def test_branches(wanted, ran, nodes):
    """The branch that ran takes the place of an If, unless what is looked for goes with it."""
    feeds = {**FEEDS, "c": np.array(ran)}
    small = reduce_model(onnx.parser.parse_model(BRANCHES), feeds, anywhere(*wanted))
    assert operators(small) == nodes
    assert small.nodes == (9, len(all_nodes(small.model.graph.node)))


def test_the_inputs_are_those_of_the_run():
    small = reduce_model(onnx.parser.parse_model(CHAIN), FEEDS, has("Mul"))
    assert [i.name for i in small.model.graph.input] == ["c"]
    weight = np.float32([1, 2, 3, 4])
    np.testing.assert_allclose(small.inputs["c"], -(np.exp(FEEDS["x"]) + weight), rtol=1e-6)
    assert [w.name for w in small.model.graph.initializer] == ["w"]
    dims = small.model.graph.input[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, dims[1].dim_value) == ("n", 4)


def test_a_difference_in_the_values():
    def shows(model, inputs):
        got = ReferenceEvaluator(model).run(None, inputs)[0]
        return "integers" if np.array_equal(got, np.round(got)) else ""

    small = reduce_model(
        onnx.parser.parse_model(CHAIN.replace("y = Sqrt(f)", "y = Neg(f)")), FEEDS, shows
    )
    assert operators(small) == ["Floor"]


def test_a_body_stays_whole_and_what_it_captures_becomes_an_input():
    text = (
        HEAD
        + """g (bool c, float[n] x) => (float[n] y) {
        a = Exp(x)
        b = Neg(a)
        t = If (c) <
            then_branch = p () => (float[n] q) { q = Add(b, a) },
            else_branch = r () => (float[n] s) { s = Abs(a) }
        >
        y = Sqrt(t)
    }"""
    )
    feeds = {"c": np.array(True), "x": np.float32([1, 2])}
    small = reduce_model(onnx.parser.parse_model(text), feeds, has("If"))
    assert operators(small) == ["If"]
    assert {i.name for i in small.model.graph.input} == {"c", "a", "b"}


def test_functions_stay():
    text = (
        HEAD.replace('"" : 18', '"" : 18, "my" : 1')
        + """
    g (float[n] x) => (float[n] y) { a = Exp(x)  y = my.twice(a) }
    <domain: "my", opset_import: ["" : 18]> twice (u) => (v) { v = Add(u, u) }"""
    )
    feeds = {"x": np.float32([1, 2])}
    small = reduce_model(onnx.parser.parse_model(text), feeds, has("twice"))
    assert operators(small) == ["twice"] and len(small.model.functions) == 1


def test_no_difference():
    with pytest.raises(ReductionError, match="no difference"):
        reduce_model(onnx.parser.parse_model(CHAIN), FEEDS, has("Tanh"))


def test_tries_are_limited():
    small = reduce_model(onnx.parser.parse_model(CHAIN), FEEDS, has("Floor"), max_tries=2)
    assert small.tries == 2 and "Floor" in operators(small)


def test_files(tmp_path):
    small = reduce_model(onnx.parser.parse_model(CHAIN), FEEDS, has("Mul"))
    files = small.save(tmp_path / "report")
    assert [f.relative_to(tmp_path / "report").as_posix() for f in files] == [
        "model.onnx", "test_data_set_0/input_0.pb"
    ]  # fmt: skip
    tensor = onnx.load_tensor(files[1])
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), small.inputs["c"])
    assert tensor.name == "c" and len(onnx.load(files[0]).graph.node) == 1


def test_weights_in_other_files(tmp_path):
    model = onnx.parser.parse_model(CHAIN)
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="m.data")
    small = reduce_model(path, FEEDS, has("Mul"))
    assert operators(small) == ["Mul"]
    weight = onnx.numpy_helper.to_array(small.model.graph.initializer[0])
    np.testing.assert_array_equal(weight, np.float32([1, 2, 3, 4]))
