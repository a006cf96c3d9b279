"""Changes of a signature: dimensions, names, outputs; what is refused."""

from __future__ import annotations

import onnx
import onnx.checker
import onnx.parser
import pytest

import xoptim
from xbuilder.errors import OptionError
from xbuilder.protos.pretty import pretty_value_info
from xoptim.surgery.signature import SignatureChanges, change_signature
from xoptim.trust.verification import verify_models

TEXT = """<ir_version: 8, opset_import: ["" : 18, "local": 1]>
g (float[batch, seq, 4] x, float[unknown] z, bool c) => (float[batch, double, 4] y, float[batch, seq, 4] w)
<float[batch, seq, 4] r, float[batch, double, 4] t, float two = {2}>
{
    r = Relu(x)
    t = Concat<axis = 1>(r, x)
    y = If(c) <
        then_branch = b1 () => (float[batch, double, 4] o) { q = Neg(t) o = Mul(q, two) },
        else_branch = b2 () => (float[batch, double, 4] p) { p = Add(t, two) }
    >
    w = local.f(r)
}
<domain: "local", opset_import: ["" : 18]> f (a) => (b) { b = Abs(a) }"""


def parse() -> onnx.ModelProto:
    """The parser refuses an expression for a dimension, exporters write some."""
    model = onnx.parser.parse_model(TEXT)
    return onnx.load_from_string(model.SerializeToString().replace(b"double", b"2 *seq"))


def changed(**changes) -> onnx.ModelProto:
    model = parse()
    found = change_signature(model, SignatureChanges(**changes))
    assert model == parse()
    onnx.checker.check_model(found)
    return found


def declared(model: onnx.ModelProto) -> dict[str, str]:
    """The declarations of the main graph and of the first branch."""
    (branches,) = (n for n in model.graph.node if n.op_type == "If")
    inner = branches.attribute[0].g.output
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info, *inner]
    return {v.name: pretty_value_info(v).split(": ")[1] for v in values}


def test_sizes_are_replaced_everywhere():
    found = declared(changed(sizes={"seq": 3}))
    assert found["x"] == found["r"] == found["w"] == "float[batch, 3, 4]"
    assert found["y"] == found["t"] == found["o"] == "float[batch, 6, 4]"


def test_shape_of_an_input():
    found = declared(changed(shapes={"x": (1, "length", 4)}))
    assert found["x"] == found["w"] == "float[1, length, 4]"
    assert found["y"] == "float[1, 2*length, 4]"


def test_a_dimension_without_name():
    model = parse()
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    for changes in ({"sizes": {"x[0]": 5}}, {"shapes": {"x": (5, "seq", 4)}}):
        found = change_signature(model, SignatureChanges(**changes))
        assert declared(found)["x"] == "float[5, seq, 4]"


def test_a_shape_for_an_input_without_one():
    model = parse()
    model.graph.input[1].type.tensor_type.ClearField("shape")
    found = change_signature(model, SignatureChanges(shapes={"z": (7,)}))
    assert declared(found)["z"] == "float[7]"


def test_names_of_dimensions():
    found = declared(changed(dims={"seq": "length"}))
    assert (found["x"], found["y"]) == ("float[batch, length, 4]", "float[batch, 2*length, 4]")


def test_names_of_results():
    """An input, an output, a weight and a result that bodies read."""
    names = {"x": "images", "y": "boxes", "two": "factor", "t": "both"}
    found = changed(names=names)
    assert [v.name for v in found.graph.input] == ["images", "z", "c"]
    assert [v.name for v in found.graph.output] == ["boxes", "w"]
    assert found.graph.initializer[0].name == "factor"
    back = change_signature(found, SignatureChanges(names={b: a for a, b in names.items()}))
    assert back == parse()


def test_names_in_annotations():
    model = parse()
    annotation = model.graph.quantization_annotation.add(tensor_name="t")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="two")
    found = change_signature(model, SignatureChanges(names={"two": "factor", "t": "both"}))
    (after,) = found.graph.quantization_annotation
    assert (after.tensor_name, after.quant_parameter_tensor_names[0].value) == ("both", "factor")


def test_outputs_in_another_order():
    assert [v.name for v in changed(outputs=["w", "y"]).graph.output] == ["w", "y"]
    done = xoptim.optimize(parse(), signature=SignatureChanges(outputs=["w"]), verify=True)
    assert [n.op_type for n in done.model.graph.node] == ["Relu", "Abs"][
        : len(done.model.graph.node)
    ]
    assert [v.name for v in done.model.graph.output] == ["w"]


def test_optimized_and_verified():
    changes = SignatureChanges({"batch": 2}, {}, {"seq": "n"}, {"x": "images"})
    done = xoptim.optimize(parse(), signature=changes, verify=True, measure=True)
    assert done.verification is not None and done.verification.ok and done.latency
    assert done.verification.rows[0].shape[0] == 2
    before = change_signature(parse(), changes)
    assert verify_models(before, done.model).ok


def test_in_place():
    model = parse()
    assert change_signature(model, SignatureChanges({"seq": 3}), copy=False) is model


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": {"bacth": 1}}, "no dynamic dimension 'bacth', did you mean 'batch'"),
        ({"sizes": {"x[2]": 1}}, "no dynamic dimension 'x\\[2\\]'"),
        ({"shapes": {"xx": (1,)}}, "no input 'xx'"),
        ({"shapes": {"x": (1, 2)}}, "'x' has 3 dimensions, the shape .* has 2"),
        ({"shapes": {"x": (1, 2, 8)}}, "Dimension 2 of input 'x' is 4, not 8: the nodes may rely"),
        ({"shapes": {"x": (1, 2, 4)}, "sizes": {"batch": 3}}, "'batch' has two values, 1 and 3"),
        ({"dims": {"nope": "n"}}, "no dimension 'nope'"),
        ({"names": {"nope": "n"}}, "no result 'nope'"),
        ({"names": {"x": "r"}}, "called 'r' already"),
        ({"names": {"x": "q"}}, "called 'q' already"),
        ({"names": {"x": "k", "z": "k"}}, "Two results would have the same name"),
        ({"outputs": ["r"]}, "no output 'r'"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(OptionError, match=message):
        change_signature(parse(), SignatureChanges(**changes))


def test_exchanged_names():
    found = changed(names={"y": "w", "w": "y"})
    assert [v.name for v in found.graph.output] == ["w", "y"]
