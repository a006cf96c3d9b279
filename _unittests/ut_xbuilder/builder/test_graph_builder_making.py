"""Adding inputs, outputs, initializers and nodes."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array, to_array

from xbuilder import FactError, GraphBuilder, InvalidModelError, OptionError, PatternError


def new(**kwargs):
    builder = GraphBuilder(18, **kwargs)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 3))
    return builder


# -- inputs


def test_inputs():
    builder = new()
    assert builder.get_shape("x") == ("batch", 3)
    assert builder.has_name("x") and builder.input_names == ["x"]
    with pytest.raises(OptionError, match="already taken"):
        builder.make_tensor_input("x", TensorProto.FLOAT, (2,))
    with pytest.raises(OptionError, match="empty"):
        builder.make_tensor_input("", TensorProto.FLOAT, (2,))
    builder.make_tensor_input("z", TensorProto.FLOAT, (None, "seq + 1"), device=0, marker="here")
    first, second = builder.get_shape("z")
    assert builder.is_generated(first) and second == "seq+1"
    assert builder.get_device("z") == 0
    info = builder.inputs[1]
    assert info.doc_string == "here"
    dims = info.type.tensor_type.shape.dim
    assert not dims[0].dim_param and dims[1].dim_param == "seq+1"


def test_input_as_a_dimension():
    builder = new()
    builder.make_tensor_input("seq", TensorProto.INT64, (), is_dimension=True)
    builder.make_tensor_input("other", TensorProto.INT64, (1,), is_dimension=True)
    assert builder.value_as_shape("seq") == "seq"
    assert builder.value_as_shape("other") == ("other",)
    shape = builder.op.Concat("other", np.array([3], dtype=np.int64), axis=0)
    builder.op.ConstantOfShape(shape, outputs=["y"])
    assert builder.get_shape("y") == ("other", 3)
    assert not builder.is_constant("seq") and not builder.is_constant("y")


def test_default_value_of_an_input():
    builder = new()
    default = np.array([1, 2, 3], dtype=np.float32)
    builder.make_tensor_input("w", TensorProto.FLOAT, ("n",), default_initializer=default)
    assert builder.get_shape("w") == ("n",)
    assert not builder.is_constant("w")
    assert builder.get_constant("w", exc=False) is None
    builder.op.Add("x", "w", outputs=["y"])
    builder.make_tensor_output("y")
    onx = builder.to_onnx()
    assert [i.name for i in onx.graph.input] == ["x", "w"]
    assert to_array(onx.graph.initializer[0]).tolist() == [1, 2, 3]


# -- outputs


def test_outputs():
    builder = new()
    with pytest.raises(OptionError, match="not a result"):
        builder.make_tensor_output("y")
    builder.op.Neg("x", outputs=["y"])
    builder.op.Exp("x", outputs=["z"])
    assert builder.make_tensor_output(["y", "z"], doc_string="doc") == ["y", "z"]
    assert builder.output_names == ["y", "z"]
    assert builder.outputs[1].doc_string == "doc"
    assert builder.outputs[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize(
    ("known", "declared"),
    [
        (("a", 3), ("a",)),
        (("a", 3), ("a", 4)),
        (("a", 3), ()),
        (("a", 3), ("a", "a", "a")),
        (("a", "a+1"), ("b", "b")),
    ],
)
def test_a_wrong_shape_of_an_output_is_told(known, declared):
    builder = GraphBuilder(18)
    builder.make_tensor_input("X", TensorProto.FLOAT, known)
    builder.op.Relu("X", outputs=["Y"])
    with pytest.warns(UserWarning, match="for 'Y': shape .* the inferred one is kept"):
        builder.make_tensor_output("Y", TensorProto.FLOAT, declared)
    assert builder.get_shape("Y") == known
    assert list(builder.constraints.items()) == [], "a wrong shape proves nothing"
    dims = builder.to_onnx().graph.output[0].type.tensor_type.shape.dim
    assert tuple(d.dim_param or d.dim_value for d in dims) == known


def test_a_shape_of_an_output_that_is_right():
    builder = GraphBuilder(18)
    builder.make_tensor_input("X", TensorProto.FLOAT, ("a", 3))
    builder.op.Relu("X", outputs=["Y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.make_tensor_output("Y", TensorProto.FLOAT, ("a", "b"))
    with pytest.raises(FactError, match="type float against int64"):
        builder.make_tensor_output("Y", TensorProto.INT64)


def test_untyped_outputs():
    builder = new()
    builder.anyop.Unknown("x", outputs=["y"], domain="custom")
    with pytest.raises(OptionError, match="not known"):
        builder.make_tensor_output("y")
    builder.make_tensor_output("y", allow_untyped_output=True)
    assert not builder.outputs[0].HasField("type")
    builder = new()
    builder.anyop.Unknown("x", outputs=["y"], domain="custom")
    builder.make_tensor_output("y", TensorProto.FLOAT, ("batch", None), device=-1)
    shape = builder.outputs[0].type.tensor_type.shape
    assert shape.dim[0].dim_param == "batch" and not shape.dim[1].HasField("dim_param")
    assert builder.get_device("y") == -1


# -- initializers


@pytest.mark.parametrize(
    "value,dtype,shape",
    [
        (3, TensorProto.INT64, ()),
        (3.5, TensorProto.FLOAT, ()),
        (True, TensorProto.BOOL, ()),
        ([1, 2], TensorProto.INT64, (2,)),
        ((1, 2, 3), TensorProto.INT64, (3,)),
        (np.float16(3), TensorProto.FLOAT16, ()),
        (np.array([1], dtype=np.int8), TensorProto.INT8, (1,)),
        (np.array(["a", "bc"]), TensorProto.STRING, (2,)),
        (from_array(np.array([[1.0]]), name="other"), TensorProto.DOUBLE, (1, 1)),
    ],
)
def test_initializer_values(value, dtype, shape):
    builder = new()
    assert builder.make_initializer("w", value) == "w"
    assert builder.get_type("w") == dtype
    assert builder.get_shape("w") == shape
    assert builder.is_constant("w")
    onx = builder.to_onnx(optimize=False)
    assert onx.graph.initializer[0].name == "w"
    assert onx.graph.initializer[0].data_type == dtype


def test_initializers_are_not_copied():
    builder = new()
    value = np.zeros((10, 10), dtype=np.float32)
    builder.make_initializer("w", value)
    assert builder.initializers_dict["w"] is value
    assert builder.get_constant("w") is value


def test_initializer_names():
    builder = new()
    builder.make_initializer("w", 1)
    with pytest.raises(OptionError, match=r"already taken, from here"):
        builder.make_initializer("w", 2, msg="from here")
    assert builder.make_initializer("w", 2, give_unique=True) == "w1"
    assert builder.make_initializer("", 7, parameter_name="fc.bias") == "fc.bias"
    one, two = builder.make_initializer("", 5), builder.make_initializer("", 5)
    assert one == two
    assert builder.make_initializer("", 5.0) != one
    assert builder.make_initializer("", np.array(0.0)) != builder.make_initializer(
        "", np.array(-0.0)
    )


def test_unsupported_initializer():
    with pytest.raises(OptionError, match="expected a numpy array"):
        new().make_initializer("w", object())


def test_empty_initializers():
    builder = new()
    with pytest.raises(OptionError, match="no element"):
        builder.make_initializer("w", np.zeros((0, 3), dtype=np.float32))
    builder.make_initializer("w", np.zeros((0, 3), dtype=np.float32), allow_empty=True)
    # the shape of a scalar
    builder.make_initializer("shape", np.array([], dtype=np.int64))
    assert builder.value_as_shape("shape") == ()


def test_check_empty_source():
    builder = new(check_empty_source=True)
    with pytest.raises(OptionError, match="no source"):
        builder.make_initializer("w", 1)
    builder.make_initializer("w", 1, source="here")
    builder.make_initializer("", 2, parameter_name="p")
    builder.op.Add("x", np.array([1], dtype=np.float32))
    assert builder.sources["w"] == "here"


def test_raise_list():
    builder = GraphBuilder(18, raise_list={"y", "w", "i", "two"})
    builder.make_tensor_input("x", 1, (2,))
    for make in (
        lambda: builder.make_tensor_input("i", 1, (2,)),
        lambda: builder.make_initializer("w", 1),
        lambda: builder.op.Neg("x", outputs=["y"]),
        lambda: builder.make_node("Split", ["x"], ["one", "two"], num_outputs=2),
    ):
        with pytest.raises(OptionError, match="raise_list"):
            make()
    assert builder.op.Neg("x", outputs=["other"]) == "other"


# -- nodes


def test_make_node():
    builder = new()
    y = builder.make_node("Transpose", "x", perm=[1, 0], name="T", metadata_props={"k": "v"})
    assert builder.get_shape(y) == (3, "batch")
    node = builder.nodes[0]
    assert node.name == "T" and node.metadata_props[0].key == "k"
    a, b = builder.make_node("Split", [y], 2, num_outputs=2)
    assert a != b
    assert builder.make_node("Split", [y], ["u", "v"], num_outputs=2, axis=None) == ("u", "v")
    assert [t.name for t in builder.nodes[-1].attribute] == ["num_outputs"]
    builder.make_node("Neg", ["x"], "w", name="T")
    assert builder.nodes[-1].name != "T"
    builder.store.check()


def test_make_node_refuses():
    builder = new()
    builder.make_initializer("w", 1.0)
    builder.make_node("Neg", ["x"], ["y"])
    with pytest.raises(OptionError, match="'unknown'"):
        builder.make_node("Neg", ["unknown"])
    for name in ("x", "w", "y"):
        with pytest.raises(OptionError, match="already"):
            builder.make_node("Neg", ["x"], [name])
    with pytest.raises(OptionError, match="not registered"):
        builder.make_node("Neg", ["x"], domain="custom")
    with pytest.raises(InvalidModelError, match="twice"):
        builder.make_node("Split", ["x"], ["s", "s"], num_outputs=2)
    builder.store.check()
    assert builder.make_node("Neg", ["later"], check=False)


def test_rename_result():
    g = GraphBuilder(18, raise_list={"forbidden"})
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 4))
    g.op.Exp("x", outputs=["first"])
    g.op.Neg("first", outputs=["last"])
    g.rename_result("first", "exp")
    assert [list(n.output) for n in g.nodes] == [["exp"], ["last"]]
    assert list(g.nodes[1].input) == ["exp"]
    assert g.get_type("exp") == TensorProto.FLOAT and g.get_shape("exp") == ("a", 4)
    assert not g.has_type("first") and not g.has_name("first")
    assert g.unique_name("exp") != "exp"
    g.store.check()
    with pytest.raises(OptionError, match="raise_list"):
        g.rename_result("exp", "forbidden")


def test_what_is_not_renamed():
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 4))
    g.op.Neg(g.op.Exp("x", outputs=["exp"]), outputs=["y"])
    g.make_tensor_output("y", TensorProto.FLOAT, ("a", 4))
    for old, new, reason in [
        ("unknown", "z", "No node gives 'unknown'"),
        ("x", "z", "No node gives 'x'"),
        ("y", "z", "'y' is an output"),
        ("exp", 3, "new expects the name of a result"),
    ]:
        with pytest.raises(OptionError, match=reason):
            g.rename_result(old, new)
    with pytest.raises(PatternError, match="this name is produced"):
        g.rename_result("exp", "y")
    assert [list(n.output) for n in g.nodes] == [["exp"], ["y"]]
    g.store.check()


@pytest.mark.parametrize("position", range(-5, 5))
def test_a_node_is_inserted_as_in_a_list(position):
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 4))
    for op_type in ("Exp", "Abs", "Relu"):
        g.make_node(op_type, ["x"])
    g.make_node("Neg", ["x"], insert_position=position)
    expected = ["Exp", "Abs", "Relu"]
    expected.insert(position, "Neg")
    assert [node.op_type for node in g.nodes] == expected
    g.store.check()


def test_domains():
    builder = new()
    builder.make_node("Gelu", ["x"], domain="com.microsoft")
    assert builder.get_opset("com.microsoft") == 1
    builder.add_domain("custom", 4)
    builder.add_domain("custom", 7)
    assert builder.get_opset("custom") == 4
    assert builder.main_opset == builder.get_opset("ai.onnx") == 18
    assert builder.get_opset("nothing", exc=False) == 0
    with pytest.raises(OptionError, match="not registered"):
        builder.get_opset("nothing")


def test_insert_position():
    builder = new()
    builder.make_node("Neg", ["x"], ["a"])
    builder.make_node("Abs", ["x"], ["b"], insert_position=0)
    builder.make_node("Exp", ["a"], ["c"], insert_position=2)
    builder.make_node("Abs", ["a"], ["d"])
    assert [r.outputs[0] for r in builder.store.nodes] == ["b", "a", "c", "d"]
    builder.store.check()


def test_sts_skips_the_inference():
    builder = new()
    builder.make_node("Neg", ["x"], ["a"], sts={"dtype": None})
    assert not builder.has_type("a")


def test_attributes_already_made():
    builder = new()
    builder.make_node("Transpose", ["x"], ["y"], attributes=[oh.make_attribute("perm", [1, 0])])
    for found in ({"name": "perm"}, {"att_name": "perm"}):
        assert builder.get_attribute(builder.nodes[0], **found).ints == [1, 0]
    assert builder.get_attribute_value(builder.nodes[0], "perm") == [1, 0]
    assert builder.get_attribute_with_default(builder.nodes[0], "perm", 0) == [1, 0]
    assert builder.get_attribute_with_default(builder.nodes[0], "axis", default_value=3) == 3
    assert builder.get_attribute(builder.nodes[0], "axis", exc=False) is None
    with pytest.raises(OptionError, match="'axis'"):
        builder.get_attribute(builder.nodes[0], "axis")


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    builder = new()
    builder.make_initializer("a", torch.nn.Parameter(torch.ones(2, 3)))
    builder.make_initializer("b", torch.ones(2, dtype=torch.bfloat16))
    builder.make_initializer("c", torch.arange(6).reshape(2, 3).T)
    assert builder.get_type("a") == TensorProto.FLOAT
    assert builder.get_type("b") == TensorProto.BFLOAT16
    onx = builder.to_onnx(optimize=False)
    values = {i.name: to_array(i) for i in onx.graph.initializer}
    assert values["b"].astype(np.float32).tolist() == [1, 1]
    assert values["c"].tolist() == [[0, 3], [1, 4], [2, 5]]
    onnx.checker.check_model(onx)
