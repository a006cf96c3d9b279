import ml_dtypes
import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto

from xbuilder import GraphBuilder, OptionError, to_graph_builder_code

FLOAT = TensorProto.FLOAT


def model_of(text, initializers=()):
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(initializers)
    return model


def rebuilt(model, **kwargs):
    """The model built by the code, with the weights the code does not write."""
    code = to_graph_builder_code(model, **kwargs)
    scope = {}
    exec(compile(code, "code.py", "exec"), scope)
    weights = {i.name: i for i in model.graph.initializer}
    return code, scope[kwargs.get("function_name", "build_model")](weights).to_onnx(optimize=False)


def contents(model):
    graph = model.graph
    return (
        model.ir_version,
        {o.domain: o.version for o in model.opset_import},
        list(graph.input),
        list(graph.output),
        [without_metadata(n) for n in graph.node],
        {i.name: (i.data_type, list(i.dims), onh.to_array(i).tobytes()) for i in graph.initializer},
    )


def without_metadata(node):
    """A node without its name, since the builder names those that have none."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.metadata_props[:]
    copy.name, copy.domain = "", copy.domain
    attributes = sorted(copy.attribute, key=lambda a: a.name)
    del copy.attribute[:]
    copy.attribute.extend(attributes)
    return copy


def same(model, **kwargs):
    code, found = rebuilt(model, **kwargs)
    assert contents(found) == contents(model)
    return code


SIMPLE = """
<ir_version: 9, opset_import: ["" : 18]>
agraph (float[a, 4] X) => (float[a, 2, 2] Y)
<int64[3] shape = {0, 2, 2}>
{
   [first] Z = Reshape <allowzero = 0> (X, shape)
   Y = LeakyRelu <alpha = 0.1> (Z)
}
"""


def test_a_model():
    code = same(model_of(SIMPLE))
    assert rebuilt(model_of(SIMPLE))[1].graph.node[0].name == "first"
    assert "g.make_node('Reshape', ['X', 'shape'], ['Z'], name='first', allowzero=0)" in code
    assert "np.array([0, 2, 2], dtype=np.int64)" in code
    assert "g.make_tensor_output('Y', 1, ('a', 2, 2))" in code


def test_name_of_the_function():
    assert "def again(weights=None):" in same(model_of(SIMPLE), function_name="again")
    for name in ("a b", "class", ""):
        with pytest.raises(OptionError, match="function_name must be a name in Python"):
            to_graph_builder_code(model_of(SIMPLE), function_name=name)


@pytest.mark.parametrize(
    "value",
    [
        np.array(3, dtype=np.int64),
        np.array([0.1, np.nan, np.inf], dtype=np.float32),
        np.array([[True], [False]]),
        np.array([1 / 3], dtype=np.float64),
        np.array([0.1, -0.0], dtype=np.float16),
        np.array([1.5], dtype=ml_dtypes.bfloat16),
        np.zeros((2, 0), dtype=np.float32),
        np.arange(17, dtype=np.float32),
        np.array(["a", "b"], dtype=object),
    ],
    ids=lambda v: f"{v.dtype}{list(v.shape)}",
)
def test_initializers(value):
    itype = oh.np_dtype_to_tensor_dtype(value.dtype)
    graph = oh.make_graph(
        [oh.make_node("Identity", ["W"], ["Y"])],
        "g",
        [],
        [oh.make_tensor_value_info("Y", itype, value.shape)],
        [onh.from_array(value, "W")],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    code = same(model)
    assert ("weights['W']" in code) == (value.size > 16)
    assert "weights['W']" in to_graph_builder_code(model, max_elements=-1)


def test_an_input_with_a_default_value():
    text = SIMPLE.replace("float[a, 4] X", "float[a, 4] X, int64[3] shape")
    assert "default_initializer=np.array([0, 2, 2]" in same(model_of(text))


def test_attributes_and_domains():
    nodes = [
        oh.make_node("Constant", [], ["c"], value=onh.from_array(np.arange(20), "")),
        oh.make_node(
            "Custom",
            ["X", "", "c"],
            ["", "Y"],
            domain="mine",
            name="n",
            alpha=[1.0, 2.0],
            texts=["a", "b"],
            mode="é",
        ),
    ]
    nodes[1].attribute.extend(
        [
            oh.make_attribute("inputs", 1),
            oh.make_attribute("lambda", 2),
            oh.make_attribute("bytes", b"\xff"),
            oh.make_attribute("infinite", float("inf")),
            oh.make_attribute("none", [], attr_type=onnx.AttributeProto.INTS),
        ]
    )
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("X", FLOAT, None)],
        [onnx.ValueInfoProto(name="Y")],
    )
    domains = [oh.make_opsetid("", 18), oh.make_opsetid("mine", 2)]
    code = same(oh.make_model(graph, opset_imports=domains, ir_version=9))
    for written in ("alpha=[1.0, 2.0]", "texts=['a', 'b']", "mode='é'"):
        assert written in code


def test_bodies():
    same(
        model_of(
            """
            <ir_version: 9, opset_import: ["" : 18]>
            agraph (bool c, float[n] X) => (float[n] Y)
            {
               Y = If (c) <then_branch = t () => (float[n] a) { a = Neg (X) },
                           else_branch = e () => (float[n] b) { b = Abs (X) }>
            }
            """
        )
    )


def test_the_model_of_a_builder():
    g = GraphBuilder(18, ir_version=9)
    g.make_tensor_input("X", FLOAT, ("a", "b"))
    g.op.MatMul("X", np.ones((3, 2), dtype=np.float32), outputs=["Y"])
    g.make_tensor_output("Y", FLOAT, ("a", 2))
    same(g.to_onnx(optimize=False))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SIMPLE + '<domain: "d", opset_import: ["" : 18]> F (x) => (y) { y = Neg (x) }',
            r"has local functions \(F\): inline them first",
        ),
        (
            """<ir_version: 9, opset_import: ["" : 18]>
         agraph (seq(float[n]) S) => (int64 Y) { Y = SequenceLength (S) }""",
            "'S' is not a tensor",
        ),
    ],
    ids=["functions", "sequence"],
)
def test_refused(text, message):
    with pytest.raises(OptionError, match=message):
        to_graph_builder_code(model_of(text))


def test_sparse_initializers_are_refused():
    model = model_of(SIMPLE)
    model.graph.sparse_initializer.add()
    with pytest.raises(OptionError, match="sparse initializers"):
        to_graph_builder_code(model)
    with pytest.raises(OptionError, match="onx"):
        to_graph_builder_code(model.graph)
