"""Tests of the difference of two models."""

import numpy as np
import onnx
import onnx.parser
import pytest

from xbuilder.files.model_container import ModelContainer
from xoptim.reports.model_diff import ModelDiff, diff_models

HEAD = '<ir_version: 10, opset_import: ["" : 18, "my" : 1]>\n'
PLAIN = """g (float[a,4] x) => (float[a,4] y)
<float[4] w = {1, 2, 3, 4}>
{ t = Add(x, w)  u = Relu(t)  y = Mul(u, u) }"""


def diff(before: str, after: str) -> ModelDiff:
    """The difference of two models written as text."""
    models = (onnx.parser.parse_model(HEAD + text) for text in (before, after))
    return diff_models(*map(ModelContainer, models))


def changes(found: ModelDiff) -> list[tuple[str, ...]]:
    """Kind, change, names and detail of each row."""
    return [(r.kind, r.change, r.before, r.after, r.detail) for r in found.rows]


def test_a_model_and_itself():
    found = diff(PLAIN, PLAIN)
    assert found.same and not found.rows
    assert found.unchanged == {"input": 1, "output": 1, "opset": 2, "weight": 1, "node": 3}


def test_other_names_are_no_difference():
    other = PLAIN.replace("t", "tt").replace("floatt", "float").replace("w", "weight")
    other = other.replace("ttt", "tt").replace("u =", "v =").replace("Mul(u, u)", "Mul(v, v)")
    found = diff(PLAIN, other)
    assert found.same
    assert {(r.kind, r.change) for r in found.rows} == {("weight", "renamed"), ("node", "renamed")}
    assert found.counts()[-2] == {
        "kind": "node",
        "same": 1,
        "renamed": 2,
        "changed": 0,
        "removed": 0,
        "added": 0,
    }


def test_constant_nodes_and_identity_are_no_difference_of_the_others():
    other = """g (float[a,4] x) => (float[a,4] y)
    { c = Constant<value = float[4] {1, 2, 3, 4}>()  d = Identity(c)  t = Add(x, d)  u = Relu(t)
      y = Mul(u, u) }"""
    found = diff(PLAIN, other)
    assert changes(found) == [
        ("weight", "renamed", "w", "c", ""),
        ("node", "added", "", "d", ""),
    ]
    assert not found.same


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("Relu(t)", "Tanh(t)",
         [("node", "changed", "y", "y", "input 0: u (Relu) -> u (Tanh); input 1: u (Relu) -> u (Tanh)"),
          ("node", "removed", "u", "", ""), ("node", "added", "", "u", "")]),
        ("Relu(t)", "LeakyRelu<alpha = 0.5>(t)",
         [("node", "changed", "y", "y", "input 0: u (Relu) -> u (LeakyRelu); input 1: u (Relu) -> u (LeakyRelu)"),
          ("node", "removed", "u", "", ""), ("node", "added", "", "u", "")]),
        ("Mul(u, u)", "Mul(u, t)", [("node", "changed", "y", "y", "input 1: u -> t")]),
        ("{1, 2, 3, 4}", "{1, 2, 3.5, 4}",
         [("weight", "changed", "w", "w", "1 of 4 elements, by 0.5 at most"),
          ("node", "changed", "t", "t", "input 1: w -> w")]),
        ("float[a,4] y", "float[b,4] y",
         [("output", "changed", "y", "y", "float[a, 4] -> float[b, 4]")]),
        ("float[a,4] x", "float[a,4] x, float[a] z", [("input", "added", "", "z", "")]),
        ("float[a,4] y", "float[a,4] y, float[a,4] u", [("output", "added", "", "u", "")]),
        ("y = Mul(u, u)", "y = Mul(u, u)  z = Neg(y)", [("node", "added", "", "z", "")]),
    ],
)  # fmt: skip
def test_one_change(old, new, expected):
    found = diff(PLAIN, PLAIN.replace(old, new))
    assert changes(found) == expected
    assert not found.same
    back = diff(PLAIN.replace(old, new), PLAIN)
    opposite = {"added": "removed", "removed": "added", "changed": "changed"}
    assert sorted((k, opposite[c]) for k, c, *_ in expected) == sorted(
        (r.kind, r.change) for r in back.rows
    )


def test_an_attribute_equal_to_its_default_is_no_difference():
    before = "g (float[a,4] x) => (float[a,4] y) { y = Softmax(x) }"
    assert diff(before, before.replace("Softmax(", "Softmax<axis = -1>(")).same
    found = diff(before, before.replace("Softmax(", "Softmax<axis = 0>("))
    assert changes(found) == [("node", "changed", "y", "y", "axis absent -> 0")]


def test_a_weight_with_the_name_of_a_result():
    """The producer of an input is told where both have one name."""
    before = "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { c = Neg(w) y = Add(x, c) }"
    after = "g (float[4] x) => (float[4] y) <float[4] c = {5,2,3,4}> { y = Add(x, c) }"
    details = [r.detail for r in diff(before, after).rows if r.kind == "node" and r.detail]
    assert details == ["input 1: c (Neg) -> c (no node)"]


def test_what_follows_a_removed_node_is_not_removed():
    before = """g (float[a] x) => (float[a] y)
    { a = Neg(x)  b = Exp(a)  c = Abs(b)  d = Sqrt(c)  y = Log(d) }"""
    after = """g (float[a] x) => (float[a] y)
    { a = Neg(x)  b = Exp(a)  e = Sqrt(b)  y = Log(e) }"""
    assert changes(diff(before, after)) == [
        ("node", "changed", "d", "e", "input 0: c -> b"),
        ("node", "removed", "c", "", ""),
    ]


def test_the_place_of_a_node_counts_when_its_operands_come_from_a_pair():
    before = """g (float[a] x) => (float[a] y, float[a] z)
    { a = Neg(x)  b = Exp(a)  c = Abs(b)  y = Log(c)  z = Sqrt(c) }"""
    after = before.replace("a = Neg(x)", "a = Cos(x)").replace("c =", "q =").replace("(c)", "(q)")
    found = diff(before, after)
    assert ("node", "removed", "a", "", "") in changes(found)
    assert [c for c in changes(found) if c[1] == "renamed"] == [("node", "renamed", "c", "q", "")]


BRANCHES = """g (bool c, float[a] x) => (float[a] y) {
    y = If (c) <
        then_branch = t () => (float[a] p) { q = Neg(x)  p = Exp(q) },
        else_branch = e () => (float[a] r) { r = Abs(x) }
    > }"""


def test_bodies_are_compared_in_their_own_place():
    found = diff(BRANCHES, BRANCHES.replace("Neg(x)", "Cos(x)"))
    assert {row.where for row in found.rows} == {"If 'y' then_branch"}
    assert sorted((r.change, r.operator) for r in found.rows) == [
        ("added", "Cos"), ("changed", "Exp"), ("removed", "Neg")
    ]  # fmt: skip
    assert diff(BRANCHES, BRANCHES.replace("q", "qq")).same


FUNCTIONS = """g (float[a] x) => (float[a] y) { y = my.twice(x) }
<domain: "my", opset_import: ["" : 18]>
twice (u) => (v) { v = Add(u, u) }"""


def test_functions_are_compared_by_name():
    changed = diff(FUNCTIONS, FUNCTIONS.replace("Add(u, u)", "Mul(u, u)"))
    assert {(r.kind, r.change, r.where) for r in changed.rows} == {
        ("node", "removed", "function my.twice"), ("node", "added", "function my.twice")
    }  # fmt: skip
    renamed = diff(FUNCTIONS, FUNCTIONS.replace("twice", "double"))
    assert [(r.kind, r.change, r.before, r.after) for r in renamed.rows if r.kind == "function"] == [
        ("function", "removed", "my.twice", ""), ("function", "added", "", "my.double")
    ]  # fmt: skip
    more = diff(FUNCTIONS, FUNCTIONS.replace("(u) => (v)", "(u, w) => (v)"))
    assert [r.detail for r in more.rows] == ["(u) => (v) -> (u, w) => (v)"]


def test_opsets_and_types_of_weights():
    newer = onnx.parser.parse_model(HEAD + PLAIN)
    newer.opset_import[0].version = 20
    newer.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.arange(4.0), "w"))
    found = diff_models(
        ModelContainer(onnx.parser.parse_model(HEAD + PLAIN)), ModelContainer(newer)
    )
    details = [(r.kind, r.detail) for r in found.rows]
    assert ("opset", "version 18 -> version 20") in details
    assert ("weight", "float[4] -> double[4]") in details


def test_equal_nodes_are_paired_one_by_one():
    before = "g (float[a] x) => (float[a] y) { a = Neg(x)  b = Neg(x)  y = Add(a, b) }"
    after = "g (float[a] x) => (float[a] y) { a = Neg(x)  y = Add(a, a) }"
    assert changes(diff(before, after)) == [("node", "removed", "b", "", "")]


def test_weights_in_other_files(tmp_path):
    model = onnx.parser.parse_model(HEAD + PLAIN)
    onnx.save(model, tmp_path / "a.onnx", save_as_external_data=True, size_threshold=0)
    found = diff_models(ModelContainer.load(tmp_path / "a.onnx"), ModelContainer(model))
    assert found.same and found.unchanged["weight"] == 1


def test_a_long_chain_takes_no_recursion_and_pairs_all_but_one():
    steps = "\n".join(f"r{i + 1} = Neg(r{i})" for i in range(1500))
    before = f"g (float[a] r0) => (float[a] r1500) {{ {steps} }}"
    found = diff(before, before.replace("r701 = Neg(r700)", "r701 = Abs(r700)"))
    assert sorted((r.change, r.before, r.after) for r in found.rows) == [
        ("added", "", "r701"), ("changed", "r702", "r702"), ("removed", "r701", "")
    ]  # fmt: skip


def test_each_weight_is_read_once(monkeypatch):
    text = BRANCHES.replace("{ q = Neg(x)", "<float[2] w = {1, 2}> { k = Add(x, w) q = Neg(k)")
    text = text.replace("float[a]", "float[2]")
    containers = [ModelContainer(onnx.parser.parse_model(HEAD + text)) for _ in range(2)]
    read: list[str] = []
    array = ModelContainer.array

    def counted(container: ModelContainer, tensor: onnx.TensorProto) -> np.ndarray:
        read.append(tensor.name)
        return array(container, tensor)

    monkeypatch.setattr(ModelContainer, "array", counted)
    assert diff_models(*containers).same
    assert read == ["w", "w"]


def test_the_order_of_outputs_counts():
    """Runtimes return them in this order."""
    text = "g (float[a] x, float[a] v) => (float[a] y, float[b] z, float[a] t) { y = Neg(x) z = Abs(v) t = Exp(x) }"
    found = diff(text, text.replace("float[a] y, float[b] z", "float[b] z, float[a] y"))
    assert changes(found) == [
        ("output", "changed", "y", "y", "float[a], place 0 -> float[a], place 1"),
        ("output", "changed", "z", "z", "float[b], place 1 -> float[b], place 0"),
    ]
    assert not found.same and found.unchanged["output"] == 1
    removed = diff(text, text.replace("float[a] x, float[a] v", "float[a] x").replace("(v)", "(x)"))
    assert ("input", "removed", "v", "", "") in changes(removed)
    assert not [row for row in changes(removed) if "place" in row[-1]]


def test_what_a_sequence_holds():
    text = "g (seq(float[a]) x) => (int64 y) { y = SequenceLength(x) }"
    found = diff(text, text.replace("float", "int64"))
    assert changes(found) == [
        ("input", "changed", "x", "x", "sequence of float[a] -> sequence of int64[a]")
    ]


def test_the_opsets_of_a_function():
    text = """g (float[a] x) => (float[a] y) { y = my.f(x) }
    <domain: "my", opset_import: ["" : 18]> f (p) => (r) { r = Neg(p) }"""
    found = diff(text, text.replace('["" : 18]> f', '["" : 17]> f'))
    assert changes(found) == [("function", "changed", "my.f", "my.f", "ai.onnx 18 -> ai.onnx 17")]
