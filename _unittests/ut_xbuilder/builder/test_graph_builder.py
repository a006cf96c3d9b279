"""The facade: random models through every pass, views, parameters."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from ut_xbuilder.graph_checks import check_stores, op_types, optimized, parse, run_onnxruntime
from ut_xbuilder.random_graphs import RandomModel, feeds

from xbuilder import GraphBuilder, OptimizationOptions, OptionError, VirtualTensor, pretty_onnx
from xbuilder.operators.opsets import newest_opset
from xbuilder.runtimes.sessions import plain_session


def session(model):
    return plain_session(model.SerializeToString())


def reference(model):
    return ReferenceEvaluator(model)


def check_random(seed, infer, patterns=None, inline=True, start=session, **kwargs):
    model = RandomModel(seed, **kwargs).model()
    content = model.SerializeToString(deterministic=True)
    builder = GraphBuilder(
        model,
        infer_shapes_options=infer,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=patterns is not None),
    )
    after = builder.to_onnx(inline=inline)
    check_stores(builder)
    assert model.SerializeToString(deterministic=True) == content
    before, optimal = start(model), start(after)
    for i in range(6):
        inputs = feeds(i, override=i % 2 == 1)
        expected, got = before.run(None, inputs), optimal.run(None, inputs)
        for a, b in zip(expected, got, strict=True):
            # a loop without iteration: onnxruntime takes 0 for the dimensions it does not know
            if np.size(a) or np.size(b):
                np.testing.assert_array_equal(a, b)
    if not inline:
        return
    again = GraphBuilder(
        after,
        infer_shapes_options=infer,
        optimization_options=OptimizationOptions(patterns=patterns),
    )
    assert sorted(op_types(again.to_onnx())) == sorted(op_types(after)), "not a fixed point"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.booleans())
def test_random_models(seed, infer):
    check_random(seed, infer)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_random_models_with_functions(seed, infer, inline):
    check_random(seed, infer, inline=inline, n_functions=3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31))
def test_random_models_with_shadowing(seed):
    check_random(seed, True, start=reference, shadow=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_random_models_with_patterns(seed):
    check_random(seed, True, "default")


# -- the example of the documentation, views


def small():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 3))
    builder.make_initializer("w", np.array([1, 2, 3], dtype=np.float32))
    t = builder.op.Mul("x", "w")
    builder.op.Relu(t, outputs=["y"])
    builder.make_tensor_output("y")
    return builder


def test_build_and_run():
    builder = small()
    x = np.array([[1, -1, 2]], dtype=np.float32)
    got = run_onnxruntime(builder.to_onnx(), {"x": x})[0]
    np.testing.assert_array_equal(got, [[1, 0, 6]])


def test_repr():
    assert repr(GraphBuilder(18)) == "GraphBuilder(() -> (), 0 nodes)"
    model = parse("g (float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }")
    assert repr(GraphBuilder(model)) == "GraphBuilder((x, z) -> (y), 1 nodes)"


def test_notebook():
    model = parse("g (float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "<b>"
    text = GraphBuilder(model)._repr_html_()
    assert "GraphBuilder, 1 nodes" in text and "<td>Relu</td><td>1</td>" in text
    assert "x: float[&lt;b&gt;, 4]" in text and "<b>," not in text


def test_views():
    builder = small()
    assert [n.op_type for n in builder.nodes] == ["Mul", "Relu"]
    assert [i.name for i in builder.inputs] == builder.input_names == ["x"]
    assert [o.name for o in builder.outputs] == builder.output_names == ["y"]
    assert list(builder.initializers_dict) == list(builder.constants_) == ["w"]
    builder.initializers_dict.clear()
    assert list(builder.initializers_dict) == ["w"]
    assert builder.dynamic_objects == {"batch": "x[0]"}
    assert builder.shadowing_names() == set()
    assert list(builder.iter_subgraph_builders()) == []
    assert builder.opsets == {"": 18} and builder.main_opset == 18


def test_builders_are_independent():
    first, second = small(), small()
    first.make_initializer("other", 1)
    assert not second.has_name("other") and second.unique_name("other") == "other"
    first.facts.constraints.add_equal("batch", 5)
    assert list(second.constraints.items()) == []


def test_to_onnx_twice():
    builder = small()
    first = builder.to_onnx()
    assert builder.to_onnx() == first


def test_what_is_returned_belongs_to_the_caller():
    builder = small()
    onx = builder.to_onnx()
    del onx.graph.node[:]
    onx.graph.initializer[0].name = "changed"
    assert op_types(builder.to_onnx()) == ["Mul", "Relu"]
    assert builder.to_onnx().graph.initializer[0].name == "w"


def test_single_passes_return_what_they_did():
    model = parse(
        """
        agraph (float[2,3] x) => (float[3,2] y) <float[3] w = {1.0, 2.0, 3.0}>
        { i = Identity(x) n = Neg(w) dead = Exp(x) s = Add(i, n) y = Transpose(s) }
        """
    )
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert builder.remove_identity_nodes() == 1
    assert builder.remove_unused() == 1
    assert builder.constant_folding() == 1
    assert builder.topological_sort() == 0
    assert builder.infer_shapes() == 0
    assert builder.inline_functions() == 0
    builder.store.check()


def test_same_input_same_output():
    for seed in range(5):
        texts = {
            pretty_onnx(optimized(RandomModel(seed).model(), run=False, order="RANDOM"))
            for _ in range(2)
        }
        assert len(texts) == 1


@pytest.mark.parametrize("opset", range(11, min(newest_opset(), 24) + 1))
def test_random_models_of_every_opset(opset):
    """onnxruntime 1.31 knows opset 24, not the next ones."""
    optimized(RandomModel(opset).model(opset=opset), feeds=feeds(opset, False))


def test_virtual_tensor():
    tensor = VirtualTensor("x", TensorProto.FLOAT, ("batch", 3))
    assert tensor.device is None and tensor.shape == ("batch", 3)
    with pytest.raises(AttributeError):
        tensor.name = "y"


def test_outputs_taken_away_after_a_cleaning():
    """Nodes only a removed output needed are removed, although no node changed in between."""
    model = parse(
        "agraph (float[4] x) => (float[4] y, float[4] z) <float[4] w = {1, 2, 3, 4}> "
        "{ y = Exp(x) z = Add(x, w) }"
    )
    builder = GraphBuilder(model)
    assert len(builder.to_onnx(optimize=True).graph.node) == 2
    left = builder.to_onnx(mask_outputs=[True, False])
    assert [n.op_type for n in left.graph.node] == ["Exp"] and not left.graph.initializer


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"optimization_options": ["Cast"]}, "optimization_options expects OptimizationOptions"),
        ({"optimization_options": "defualt"}, "Did you mean default"),
        ({"verbose": "1"}, "verbose expects int"),
        ({"infer_shapes_options": "no"}, "infer_shapes_options expects a bool"),
        ({"opsets": {"": 17}}, "is for a GraphProto: ModelProto holds its versions"),
    ],
)
def test_wrong_parameters(kwargs, message):
    model = parse("g (float[a] x) => (float[a] y) { y = Relu(x) }")
    with pytest.raises(OptionError, match=message):
        GraphBuilder(model, **kwargs)


@pytest.mark.parametrize("opsets", [{"": "18"}, {"": 0}, {"": 18, "custom": "1"}, {"": 18.0}])
def test_wrong_versions(opsets):
    with pytest.raises(OptionError, match="integer"):
        GraphBuilder(opsets)


@pytest.mark.parametrize("copies", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_builder_is_not_copied(copies):
    with pytest.raises(OptionError, match="make another one of its model"):
        copies(GraphBuilder(18))
