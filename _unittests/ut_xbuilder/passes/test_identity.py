"""Identity nodes: removed unless they are the only ones to give a name."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import check_stores, op_types, optimized, parse

from xbuilder import GraphBuilder
from xbuilder.nodes import record as record_module


def test_middle_and_output():
    model = parse(
        """
        agraph (float[N] x) => (float[N] y)
        { a = Identity(x) b = Neg(a) c = Identity(b) d = Abs(c) y = Identity(d) }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Neg", "Abs"]
    assert after.graph.node[-1].output[0] == "y"


@pytest.mark.parametrize(
    "body,expected",
    [
        ("y = Identity(x)", ["Identity"]),  # an output that is an input
        ("y = Identity(w)", ["Identity"]),  # an output that is an initializer
        ("z = Neg(x) y = Identity(z)", ["Neg"]),
        ("z = Neg(x) t = Identity(z) y = Identity(t)", ["Neg"]),
        ("z = Neg(x) y = Identity(z) u = Exp(z) v = Identity(u)", ["Neg"]),
    ],
)
def test_single_output(body, expected):
    model = parse(f"agraph (float[N] x) => (float[1] y) <float[1] w = {{1.0}}> {{ {body} }}")
    model.graph.output[0].type.tensor_type.shape.dim[0].ClearField("dim_value")
    assert op_types(optimized(model)) == expected


def test_two_outputs_of_one_result():
    model = parse(
        "agraph (float[N] x) => (float[N] y, float[N] z) { a = Neg(x) y = Identity(a) z = Identity(a) }"
    )
    after = optimized(model)
    assert sorted(op_types(after)) == ["Identity", "Neg"]
    model = parse("agraph (float[N] x) => (float[N] y, float[N] z) { y = Neg(x) z = Identity(y) }")
    assert op_types(optimized(model)) == ["Neg", "Identity"]


def test_readers_of_an_output_that_stays_read_the_source():
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y, float[N] z, float[N] t, float[N] k)
        {
            y = Neg(x)
            z = Identity(y)
            t = Abs(z)
            k = If (c) <
                then_branch = t () => (float[N] r) { r = Abs(z) },
                else_branch = e () => (float[N] s) { s = Exp(z) }
            >
        }
        """
    )
    nodes = optimized(model).graph.node
    assert [n.op_type for n in nodes] == ["Neg", "Identity", "Abs", "If"]
    assert nodes[2].input[0] == "y"
    assert [a.g.node[0].input[0] for a in nodes[3].attribute] == ["y", "y"]


def test_captured_name_follows():
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y)
        {
            n = Neg(x)
            a = Identity(n)
            y = If (c) <
                then_branch = t () => (float[N] r) { r = Abs(a) },
                else_branch = e () => (float[N] s) { s = Exp(a) }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Neg", "If", "Abs", "Exp"]
    assert after.graph.node[1].attribute[0].g.node[0].input[0] == "n"


def test_output_renamed_where_a_subgraph_captures_it():
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y, float[N] z)
        {
            n = Neg(x)
            z = Identity(n)
            y = If (c) <
                then_branch = t () => (float[N] r) { r = Abs(n) },
                else_branch = e () => (float[N] s) { s = Exp(n) }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Neg", "If", "Abs", "Exp"]


def test_shadowing_stops_it():
    """The branch has its own `n`: a cannot become n inside."""
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y)
        {
            n = Neg(x)
            a = Identity(n)
            y = If (c) <
                then_branch = t () => (float[N] r) { n = Exp(a) r = Add(a, n) },
                else_branch = e () => (float[N] s) { s = Exp(a) }
            >
        }
        """
    )
    builder = GraphBuilder(model)
    assert builder.shadowing_names() == {"n"}
    assert builder.remove_identity_nodes() == 0
    # onnx.checker and onnxruntime refuse such a model, the reference evaluator runs it
    import numpy as np
    from onnx.reference import ReferenceEvaluator

    builder.optimize()
    feeds = {"x": np.array([1, 2], dtype=np.float32), "c": np.array(True)}
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    got = ReferenceEvaluator(builder.to_onnx()).run(None, feeds)[0]
    np.testing.assert_array_equal(expected, got)


def test_branch_returning_an_outer_result_keeps_identity():
    model = parse(
        """
        agraph (float[N] x, bool c) => (float[N] y)
        {
            a = Neg(x)
            y = If (c) <
                then_branch = t () => (float[N] r) { r = Identity(a) },
                else_branch = e () => (float[N] s) { u = Exp(a) s = Identity(u) }
            >
        }
        """
    )
    assert op_types(optimized(model)) == ["Neg", "If", "Identity", "Exp"]


def test_overridable_initializer_is_read_directly():
    model = parse(
        """
        agraph (float[N] x, float[1] w) => (float[N] y) <float[1] w = {3.0}>
        { a = Identity(w) y = Add(x, a) }
        """
    )
    after = optimized(model)
    assert list(after.graph.node[0].input) == ["x", "w"]


def test_facts_follow():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("batch", 3))
    builder.make_node("Neg", ["x"], ["a"])
    builder.make_node("Identity", ["a"], ["b"])
    builder.make_node("Abs", ["b"], ["y"])
    builder.make_tensor_output("y")
    assert builder.remove_identity_nodes() == 1
    assert builder.get_shape("a") == ("batch", 3)
    assert not builder.has_shape("b")


def test_many_identities_before_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inputs of the node are rebuilt once, not once for each Identity."""
    counts = []
    rebuild = record_module._renamed_names

    def count(names, renames):
        counts.append(len(renames))
        return rebuild(names, renames)

    monkeypatch.setattr(record_module, "_renamed_names", count)
    n = 500
    lines = [f"i{i} = Identity(r{i})" for i in range(n)]
    results = ", ".join(f"r{i}" for i in range(n))
    read = ", ".join(f"i{i}" for i in range(n))
    builder = GraphBuilder(
        parse(
            f"agraph (float[{n},N] x) => (float[{n},N] y) {{ {results} = Split<num_outputs={n}>(x)"
            f" {' '.join(lines)} y = Concat<axis=0>({read}) }}"
        ),
        infer_shapes_options=True,
    )
    assert builder.remove_identity_nodes() == n
    assert counts in ([], [n])
    assert builder.store.producers["y"].inputs == tuple(f"r{i}" for i in range(n))
    assert counts == [n]
    check_stores(builder)
