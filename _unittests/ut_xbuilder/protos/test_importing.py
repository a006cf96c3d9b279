"""A proto, a file or another library's model becomes a builder."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import GraphProto, ModelProto, TensorProto
from ut_xbuilder.graph_checks import (
    check_stores,
    op_types,
    optimized,
    parse,
    random_feeds,
    run_onnxruntime,
)

from xbuilder import (
    GraphBuilder,
    InferShapesOptions,
    InvalidModelError,
    OptimizationOptions,
    OptionError,
)

TEXT = """
agraph (float[batch,3] x) => (float[batch,3] y) <float[3] w = {1.0, 2.0, 3.0}>
{ t = Add(x, w) y = Neg(t) }
"""


def graph_of(nodes, inputs=("x",), outputs=("y",), initializers=()):
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info(n, 1, [3]) for n in inputs],
        [oh.make_tensor_value_info(n, 1, [3]) for n in outputs],
        list(initializers),
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def node(op_type, inputs, outputs, **kwargs):
    return oh.make_node(op_type, inputs, outputs, **kwargs)


def test_sources(tmp_path):
    model = parse(TEXT)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    for source in (model, str(path), path):
        builder = GraphBuilder(source)
        assert builder.input_names == ["x"] and builder.output_names == ["y"]
        assert builder.main_opset == 18
        check_stores(builder)
    builder = GraphBuilder(model.graph, opsets={"": 18})
    assert op_types(builder.to_onnx()) == ["Add", "Neg"]
    with pytest.raises(OptionError, match="opsets="):
        GraphBuilder(model.graph)
    with pytest.raises(OptionError, match="Unable to build"):
        GraphBuilder(3.5)
    assert GraphBuilder({"": 18, "custom": 3}).opsets == {"": 18, "custom": 3}


def test_other_libraries():
    onnx_ir = pytest.importorskip("onnx_ir")
    model = parse(TEXT)
    builder = GraphBuilder(onnx_ir.from_proto(model))
    assert op_types(builder.to_onnx()) == ["Add", "Neg"]

    class Program:
        model_proto = model

    assert GraphBuilder(Program()).output_names == ["y"]


def test_the_proto_given_is_never_modified():
    model = parse(
        """
        agraph (float[batch,3] x, bool c) => (float[batch,3] y) <float[1,3] w = {1.0, 2.0, 3.0}>
        {
            i = Identity(x)
            t = Transpose(w)
            u = Transpose(t)
            v = Add(i, u)
            y0 = If (c) <
                then_branch = a () => (r) { j = Identity(v) r = Neg(j) },
                else_branch = b () => (s) { s = Exp(v) }
            >
            y = Identity(y0)
        }
        """
    )
    content = model.SerializeToString()
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=None, order="RANDOM"),
    )
    builder.move_initializers_to_constant("")
    onx = builder.to_onnx()
    assert model.SerializeToString() == content
    onx.graph.node[0].op_type = "Changed"
    del onx.graph.initializer[:]
    assert model.SerializeToString() == content


@pytest.mark.parametrize(
    "model,match",
    [
        (graph_of([node("Neg", ["unknown"], ["y"])]), r"Neg\(unknown\) -> y.*'unknown'"),
        (graph_of([node("Neg", ["x"], ["z"])]), "Output 'y'"),
        (graph_of([node("Neg", ["z"], ["y"]), node("Neg", ["y"], ["z"])]), "cycle"),
        (graph_of([node("Neg", ["x"], ["y"]), node("Neg", ["x"], ["y"])]), "produced twice"),
        (graph_of([node("Neg", ["x"], ["y"])], inputs=("x", "x")), "Input 'x' appears twice"),
        (graph_of([node("Neg", ["x"], ["x"])], outputs=("x",)), "an input and a result"),
        (
            graph_of(
                [node("Neg", ["x"], ["y"])], initializers=[oh.make_tensor("y", 1, [1], [1.0])]
            ),
            "an initializer and a result",
        ),
        (
            graph_of(
                [node("Add", ["x", "w"], ["y"])],
                initializers=[oh.make_tensor("w", 1, [n], [1.0] * n) for n in (1, 2)],
            ),
            "Initializer 'w' appears twice",
        ),
        (ModelProto(), "neither graph nor opset"),
    ],
)
def test_invalid_models(model, match):
    with pytest.raises(InvalidModelError, match=match):
        GraphBuilder(model, infer_shapes_options=True)


def test_nodes_in_any_order():
    nodes = [
        node("Neg", ["c"], ["y"]),
        node("Add", ["a", "b"], ["c"]),
        node("Exp", ["a"], ["b"]),
        node("Abs", ["x"], ["a"]),
    ]
    builder = GraphBuilder(graph_of(nodes), infer_shapes_options=True)
    check_stores(builder)
    assert builder.get_shape("c") == (3,)
    onx = builder.to_onnx()
    assert op_types(onx) == ["Abs", "Exp", "Add", "Neg"]
    onnx.checker.check_model(onx)


def test_nodes_of_subgraphs_in_any_order():
    model = parse(
        """
        agraph (float[2] x, bool c) => (float[2] y)
        {
            y = If (c) <
                then_branch = a () => (float[2] r)
                {
                    r = If (c) <
                        then_branch = d () => (float[2] p) { p = Exp(q) q = Neg(u) },
                        else_branch = e () => (float[2] q2) { q2 = Exp(u) }
                    >
                    dead = Neg(v)
                    u = Abs(v)
                    v = Neg(x)
                },
                else_branch = b () => (float[2] s) { s = Neg(x) }
            >
        }
        """
    )
    content = model.SerializeToString()
    builder = GraphBuilder(model, infer_shapes_options=True)
    check_stores(builder)
    assert builder.get_shape("y") == (2,)
    onx = builder.to_onnx()
    assert model.SerializeToString() == content
    onnx.checker.check_model(onx)
    assert op_types(onx) == ["If", "Neg", "Abs", "If", "Neg", "Exp", "Exp", "Neg"]
    x = np.array([1, -2], dtype=np.float32)
    got = run_onnxruntime(onx, {"x": x, "c": np.array(True)})[0]
    np.testing.assert_allclose(got, np.exp(-np.abs(x)), rtol=1e-6)


def test_a_cycle_inside_a_subgraph():
    model = parse(
        """
        agraph (float[2] x, bool c) => (float[2] y)
        {
            y = If (c) <
                then_branch = a () => (float[2] r) { r = Neg(u) u = Neg(r) },
                else_branch = b () => (float[2] s) { s = Neg(x) }
            >
        }
        """
    )
    with pytest.raises(InvalidModelError):
        GraphBuilder(model)


def test_duplicated_node_names():
    nodes = [
        node("Neg", ["x"], ["a"], name="same"),
        node("Abs", ["a"], ["b"], name="same"),
        node("Identity", ["b"], ["c"], name="same"),
        node("Exp", ["c"], ["y"], name="same"),
    ]
    # onnxruntime refuses this model, not the optimized one
    after = optimized(graph_of(nodes), run=False)
    assert op_types(after) == ["Neg", "Abs", "Exp"]
    assert after.graph.node[0].name == "same"
    x = np.array([1, -2, 3], dtype=np.float32)
    np.testing.assert_allclose(run_onnxruntime(after, {"x": x})[0], np.exp(np.abs(x)), rtol=1e-6)
    builder = GraphBuilder(after)
    assert builder.unique_node_name("same") != "same"


@pytest.mark.parametrize("name", ["x", "w"])
def test_an_output_that_is_an_input_or_an_initializer(name):
    model = graph_of(
        [node("Neg", ["x"], ["y"])],
        outputs=("y", name),
        initializers=[oh.make_tensor("w", 1, [3], [1.0, 2.0, 3.0])],
    )
    builder = GraphBuilder(model, optimization_options=OptimizationOptions(patterns=None))
    after = builder.to_onnx()
    assert [o.name for o in after.graph.output] == ["y", name]
    feeds = random_feeds(model)
    if name == "w":  # onnxruntime refuses an output that is an input
        for a, b in zip(run_onnxruntime(model, feeds), run_onnxruntime(after, feeds), strict=True):
            np.testing.assert_array_equal(a, b)
    check_stores(builder)


def test_empty_optional_inputs_and_outputs():
    model = parse(
        'agraph (float[3] x, float m) => (float[3] y) { t = Clip(x, "", m) y, _z = Dropout(t) }'.replace(
            '""', "EMPTY"
        )
    )
    for n in model.graph.node:
        inputs = ["" if i == "EMPTY" else i for i in n.input]
        del n.input[:]
        n.input.extend(inputs)
    del model.graph.node[1].output[1:]
    model.graph.node[1].output.append("")
    builder = GraphBuilder(model)
    assert "" not in builder.store.consumers and "" not in builder.store.producers
    after = optimized(model)
    assert list(after.graph.node[0].input) == ["x", "", "m"]


def test_domain_named_ai_onnx():
    model = graph_of([node("Neg", ["x"], ["t"], domain="ai.onnx"), node("Abs", ["t"], ["y"])])
    del model.opset_import[:]
    model.opset_import.append(oh.make_opsetid("ai.onnx", 18))
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert builder.opsets == {"": 18}
    assert builder.get_shape("t") == (3,)
    assert len(builder.store.bucket("", "Neg")) == 1
    onnx.checker.check_model(builder.to_onnx())


def test_names_of_the_model_are_not_given_again():
    builder = GraphBuilder(
        parse(
            """
            agraph (float[2] x, bool c) => (float[2] y) <float[2] w = {1.0, 2.0}>
            {
                t = Add(x, w)
                y = If (c) <
                    then_branch = a () => (float[2] r) { inner = Neg(t) r = Abs(inner) },
                    else_branch = b () => (float[2] s) { s = Exp(t) }
                >
            }
            """
        )
    )
    for name in ("x", "c", "w", "t", "y", "inner", "r", "s"):
        assert builder.unique_name(name) != name


def test_a_default_value_of_another_shape():
    model = parse(
        "agraph (float[N] x, float[N] w) => (float[N] y) <float[1] w = {1.0}> { y = Add(x, w) }"
    )
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert builder.get_shape("w") == ("N",)
    assert list(builder.constraints.items()) == []


def test_sparse_initializers_are_known():
    values = oh.make_tensor("w", TensorProto.FLOAT, [1], [5.0])
    sparse = oh.make_sparse_tensor(values, oh.make_tensor("i", TensorProto.INT64, [1], [1]), [3])
    model = graph_of([node("Add", ["x", "w"], ["y"])])
    model.graph.sparse_initializer.append(sparse)
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert builder.has_name("w") and builder.get_shape("w") == (3,)
    assert not builder.is_constant("w")
    with pytest.raises(OptionError):
        builder.make_tensor_input("w", 1, (3,))
    builder.make_node("Neg", ["w"], ["n"])
    after = builder.to_onnx(optimize=False)
    assert after.graph.sparse_initializer[0].values.name == "w"


def test_a_graph_proto_of_a_subgraph():
    model = parse(TEXT)
    graph = GraphProto()
    graph.CopyFrom(model.graph)
    builder = GraphBuilder(graph, opsets={"": 18})
    again = builder.to_onnx(as_graph_proto=True)
    assert isinstance(again, GraphProto)
    assert [n.op_type for n in again.node] == ["Add", "Neg"]


def test_a_generated_dimension_has_no_name_the_file_uses():
    model = parse("agraph (float[?] X, float[unk__0] A) => (float[N] Y) { Y = Add(X, A) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "unk__0"
    builder = GraphBuilder(model)
    assert builder.get_shape("A") == ("unk__0",)
    assert builder.get_shape("X") != builder.get_shape("A")


def test_names_of_branches_do_not_leave_them_with_the_inference_of_onnx():
    model = parse(
        """
        agraph (float[N] X, bool c, bool[M] m) => (float[P] Z)
        {
            Y = If (c) <
                then_branch = a () => (float[N] t) { t = Compress(X, m) },
                else_branch = b () => (float[N] e) { e = Compress(X, m) }
            >
            Z = Neg(Y)
        }
        """
    )
    for options in (InferShapesOptions.ONNX, InferShapesOptions.BUILDER | InferShapesOptions.ONNX):
        builder = GraphBuilder(model, infer_shapes_options=options)
        for name in ("Y", "Z"):
            assert builder.facts[name].shape != ("N",)


def test_the_last_initializer_of_a_name_is_read():
    """onnxruntime does so, unless their types or their shapes differ: it fails."""
    values = [oh.make_tensor("w", 1, [1], [float(i)]) for i in (1, 2, 3)]
    model = graph_of([node("Add", ["x", "w"], ["y"])], initializers=values)
    feeds = {"x": np.arange(3, dtype=np.float32)}
    with pytest.warns(UserWarning, match="'w' appears 3 times: the last one is read"):
        builder = GraphBuilder(model)
    assert builder.get_constant("w").tolist() == [3]
    assert (
        run_onnxruntime(model, feeds)[0].tolist()
        == run_onnxruntime(builder.to_onnx(), feeds)[0].tolist()
    )
