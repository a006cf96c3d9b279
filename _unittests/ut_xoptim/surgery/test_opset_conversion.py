"""Models converted to a newer opset."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper as onh
import onnx.parser
import onnx.shape_inference
import pytest
from ut_xoptim.cli.command_line import run

from xbuilder.errors import OptionError
from xbuilder.operators.opsets import opsets_of
from xoptim.surgery.opset_conversion import OpsetConversionError, convert_opset
from xoptim.trust.verification import verify_models


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def checked(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """Converts a model, checks it is valid and computes the same results."""
    before = model.SerializeToString()
    found = convert_opset(model, target)
    assert model.SerializeToString() == before
    assert opsets_of(found)[""] == target
    onnx.checker.check_model(found)
    verify_models(model, found).raise_if_different()
    return found


#: one-node bodies: opset, inputs, nodes, output
CASES = {
    "squeeze": (11, "float[1, 4] x", "y = Squeeze<axes: ints = [0]>(x)"),
    "unsqueeze": (11, "float[n, 4] x", "y = Unsqueeze<axes: ints = [0, 2]>(x)"),
    "reduce sum": (11, "float[n, 4] x", "y = ReduceSum<axes: ints = [1], keepdims: int = 0>(x)"),
    "reduce max": (13, "float[n, 4] x", "y = ReduceMax<axes: ints = [-1]>(x)"),
    "softmax": (11, "float[n, 4, m] x", "y = Softmax(x)"),
    "softmax axis": (11, "float[n, 4, m] x", "y = Softmax<axis: int = 2>(x)"),
    "log softmax": (11, "float[n, 4, m] x", "y = LogSoftmax(x)"),
    "split": (11, "float[n, 4] x", "y, z = Split<axis: int = 1, split: ints = [1, 3]>(x)"),
    "equal split": (13, "float[n, 4] x", "y, z = Split<axis: int = 1>(x)"),
    "clip": (9, "float[n, 4] x", "y = Clip<min: float = -0.5, max: float = 0.5>(x)"),
    "pad": (9, "float[n, 4] x", "y = Pad<pads: ints = [0, 1, 0, 2], value: float = 3.0>(x)"),
    "slice": (
        9,
        "float[n, 4] x",
        "y = Slice<axes: ints = [1], starts: ints = [1], ends: ints = [3]>(x)",
    ),
    "top k": (9, "float[n, 4] x", "y, z = TopK<k: int = 2>(x)"),
    "upsample": (
        8,
        "float[n, 1, 4, 4] x",
        "y = Upsample<scales: floats = [1.0, 1.0, 2.0, 2.0]>(x)",
    ),
    "resize": (
        10,
        "float[n, 1, 4, 4] x",
        "s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()\n y = Resize(x, s)",
    ),
    "dropout": (9, "float[n, 4] x", "y = Dropout<ratio: float = 0.5>(x)"),
    "batch norm": (8, "float[n, 2, 4] x, float[2] a", "y = BatchNormalization(x, a, a, a, a)"),
    "grid sample": (
        16,
        "float[n, 1, 4, 4] x, float[n, 3, 3, 2] g",
        'y = GridSample<mode: string = "bilinear">(x, g)',
    ),
    "dft": (17, "float[n, 8, 1] x", "y = DFT<axis: int = 1>(x)"),
    "scatter": (
        10,
        "float[3, 4] x, float[1, 4] u",
        "i = Constant<value = int64[1, 4] {0, 1, 2, 1}>()\n y = Scatter(x, i, u)",
    ),
    "max pool": (
        8,
        "float[n, 1, 8, 8] x",
        "y = MaxPool<kernel_shape: ints = [3, 3], strides: ints = [2, 2]>(x)",
    ),
    "cast": (8, "float[n, 4] x", "y = Cast<to: int = 7>(x)"),
    "lstm": (
        7,
        "float[5, n, 3] x, float[1, 8, 3] w, float[1, 8, 2] r",
        "y = LSTM<hidden_size: int = 2>(x, w, r)",
    ),
    "domain": (
        13,
        "float[n, 4] x",
        "z = com.microsoft.Gelu(x)\n y = ReduceMax<axes: ints = [1]>(z)",
    ),
}


@pytest.mark.parametrize("target", [18, 21, 23])
@pytest.mark.parametrize("case", CASES)
def test_operators(case, target):
    opset, inputs, nodes = CASES[case]
    model = parse(f"""
        <ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>
        g ({inputs}) => (y) {{ {nodes} }}
    """)
    inferred = onnx.shape_inference.infer_shapes(model).graph.output[0]
    if not inferred.type.WhichOneof("value"):
        inferred = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 1])
    model.graph.output[0].CopyFrom(inferred)
    checked(model, target)


def test_what_does_not_change_stays():
    model = parse("""
        <ir_version: 8, opset_import: ["" : 11], metadata_props: ["k" : "v"]>
        g (float[n, 4] x) => (float[n, 4] y) <float[n, 4] a> {
            a = Relu(x)
            b = Unsqueeze<axes: ints = [0]>(a)
            c = Neg(b)
            s = Squeeze<axes: ints = [0]>(c)
            y = Mul(s, w)
        }
    """)
    weight = np.arange(1000, dtype=np.float32)[:, None] + np.zeros((1, 4), np.float32)
    model.graph.initializer.append(onh.from_array(weight[:1], "w"))
    model.graph.initializer.append(onh.from_array(weight, "unused"))
    for node in model.graph.node:
        node.name, node.doc_string = f"name_{node.output[0]}", f"doc of {node.output[0]}"
        node.metadata_props.add(key="k", value=node.output[0])
    found = checked(model, 18)
    kept = {n.output[0]: n for n in found.graph.node}
    for node in model.graph.node:
        same = kept[node.output[0]]
        if node.op_type in ("Relu", "Neg", "Mul"):
            assert same == node
        assert (same.name, same.doc_string) == (node.name, node.doc_string)
        assert same.metadata_props == node.metadata_props
    assert found.graph.initializer == model.graph.initializer
    assert found.graph.value_info == model.graph.value_info
    assert found.metadata_props == model.metadata_props
    assert found.ir_version == 8 and convert_opset(model, 21).ir_version == 10


def test_bodies():
    model = parse("""
        <ir_version: 8, opset_import: ["" : 11]>
        g (float[1, 4] x, bool c) => (float[4] y) {
            y = If(c) <then_branch = t () => (float[4] u) { u = Squeeze<axes: ints = [0]>(x) },
                       else_branch = f () => (float[4] v) { v = ReduceSum<axes: ints = [0], keepdims: int = 0>(x) }>
        }
    """)
    found = checked(model, 21)
    assert [
        len(n.input)
        for a in found.graph.node[0].attribute
        for n in a.g.node
        if n.op_type != "Constant"
    ] == [2, 2]


def test_functions_are_inlined():
    model = parse("""
        <ir_version: 8, opset_import: ["" : 11, "local" : 1]>
        g (float[n, 4] x) => (float[n, 4] y) {
            z = local.f(x)
            y = Neg(z)
        }
        <domain: "local", opset_import: ["" : 11]>
        f (a) => (c) {
            b = Unsqueeze<axes: ints = [0]>(a)
            c = Squeeze<axes: ints = [0]>(b)
        }
    """)
    found = checked(model, 18)
    assert not found.functions and {o.domain for o in found.opset_import} == {""}


LARGE = """
<ir_version: 8, opset_import: ["" : 11]>
g (float[n, 40] x) => (float[n, 40] y) {
    a = MatMul(x, w)
    b = Unsqueeze<axes: ints = [0]>(a)
    c = Squeeze<axes: ints = [0]>(b)
    y = Add(c, k)
}
"""


@pytest.fixture
def large(tmp_path):
    """A model with its weight in another file, and a large Constant."""
    model = parse(LARGE)
    weight = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    model.graph.initializer.append(onh.from_array(weight, "w"))
    constant = onnx.helper.make_node("Constant", [], ["k"], value=onh.from_array(weight[0] * 1.0))
    model.graph.node.insert(0, constant)
    big = onnx.helper.make_node("Constant", [], ["unused"], value=onh.from_array(weight))
    model.graph.node.insert(0, big)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0)
    return path


def test_weights_are_not_read(large, tmp_path):
    found = convert_opset(large, 18)
    assert [i.data_location for i in found.graph.initializer] == [onnx.TensorProto.EXTERNAL]
    assert (
        found.graph.node[0].attribute[0].t
        == onnx.load(large, load_external_data=False).graph.node[0].attribute[0].t
    )
    onnx.save(found, tmp_path / "found.onnx")
    verify_models(large, tmp_path / "found.onnx").raise_if_different()


def test_refusals():
    model = parse(LARGE)
    for target in (10, onnx.defs.onnx_opset_version() + 1):
        with pytest.raises(OptionError, match=f"target_opset={target}: a model of opset 11"):
            convert_opset(model, target)
    assert convert_opset(model, 11) == model
    groups = parse("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[n, 4, 5] x, float[2] s) => (float[n, 4, 5] y) {
            y = GroupNormalization<num_groups: int = 2>(x, s, s)
        }
    """)
    assert opsets_of(convert_opset(groups, 20))[""] == 20
    with pytest.raises(OpsetConversionError, match="choose an opset below 21"):
        convert_opset(groups, 21)
    hardmax = parse("""
        <ir_version: 8, opset_import: ["" : 11]>
        g (float[n, 4, 5] x) => (float[n, 4, 5] y) { y = Hardmax(x) }
    """)
    with pytest.raises(OpsetConversionError, match="Hardmax has another meaning from opset 13"):
        convert_opset(hardmax, 18)
    unknown = parse(LARGE.replace("MatMul(x, w)", "Unknown(x)").replace("Add(c, k)", "Neg(c)"))
    with pytest.raises(OpsetConversionError, match=r"from opset 11 to 18: .*Unknown"):
        convert_opset(unknown, 18)


def test_data_of_a_body_in_another_file():
    model = parse("""
        <ir_version: 8, opset_import: ["" : 11]>
        g (float[4] x, bool c) => (float[4] y) {
            y = If(c) <then_branch = t () => (float[4] u) { u = Add(x, k) },
                       else_branch = f () => (float[4] v) { v = Neg(x) }>
        }
    """)
    tensor = onnx.TensorProto(name="k", data_type=1, dims=[4], data_location=1)
    tensor.external_data.add(key="location", value="data.bin")
    model.graph.node[0].attribute[0].g.initializer.append(tensor)
    with pytest.raises(OpsetConversionError, match="data of 'k' is in another file and in a body"):
        convert_opset(model, 18)


def test_the_command(large, tmp_path):
    target = tmp_path / "new.onnx"
    told = json.loads(run("optimize", large, target, "--target-opset", 18, "--json").output)
    assert (told["opset_before"], told["opset_after"]) == (11, 18)
    assert told["verification"]["ok"]
    found = onnx.load(target)
    assert opsets_of(found)[""] == 18
    assert [n.op_type for n in found.graph.node] == ["Gemm"] or len(found.graph.node) == 2
    text = run("optimize", large, target, "--target-opset", 21, "--no-verify").output
    assert "opset:   11 -> 21" in text and "verification" not in text


def test_the_command_refuses(large, tmp_path):
    target = tmp_path / "new.onnx"
    assert "--target-opset=9" in run("optimize", large, target, "--target-opset", 9, code=2).stderr
    path = tmp_path / "groups.onnx"
    onnx.save(
        parse("""
            <ir_version: 8, opset_import: ["" : 18, "local" : 1]>
            g (float[n, 4, 5] x, float[2] s) => (float[n, 4, 5] y) {
                y = local.f(x, s)
            }
            <domain: "local", opset_import: ["" : 18]>
            f (x, s) => (y) { y = GroupNormalization<num_groups: int = 2>(x, s, s) }
        """),
        path,
    )
    wrong = run("optimize", path, target, "--target-opset", 21, code=1).stderr
    assert "GroupNormalization has another meaning from opset 21" in wrong
    how = ("--target-opset", 20, "--keep-functions")
    assert "does not go with --keep-functions" in run("optimize", path, target, *how, code=2).stderr
    assert not target.exists()
