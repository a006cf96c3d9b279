"""Wrong arguments are refused at once: the message names the argument and the expected type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from ut_xbuilder.graph_checks import parse

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions, OptionError, pretty_onnx
from xbuilder.files.model_container import save_model
from xbuilder.files.model_files import load_model
from xbuilder.support.argument_types import PATH, check_elem_type, check_names, check_type, shown

MODEL = parse("agraph (float[a, 3] x) => (float[a, 3] y) { z = Neg(x) y = Neg(z) }")


def test_types() -> None:
    check_type("name", "a", str)
    check_type("name", None, str, optional=True)
    check_type("name", Path("a"), PATH)
    with pytest.raises(OptionError, match=r"^name expects str or None, not 3\.$"):
        check_type("name", 3, str, optional=True)
    with pytest.raises(OptionError, match=r"^file expects a path, not None\.$"):
        check_type("file", None, PATH, "a path")
    with pytest.raises(OptionError, match=r"^order expects str or None, not 3\.$"):
        check_type("order", 3, (str, type(None)))


def test_names() -> None:
    check_names("names", ["a", "b"])
    check_names("names", None, optional=True)
    with pytest.raises(OptionError, match=r"\['xy'\] for one, not 'xy'"):
        check_names("names", "xy")
    for wrong in (None, 3, [3], [None]):
        with pytest.raises(OptionError, match="names expects several names"):
            check_names("names", wrong)


def test_element_types() -> None:
    assert [check_elem_type(v) for v in (None, 0, 1, np.int64(7))] == [0, 0, 1, 7]
    for wrong in ("a", -1, 99, True, 1.0, np.float32):
        with pytest.raises(OptionError, match="elem_type expects an element type"):
            check_elem_type(wrong)


def test_a_long_value_is_cut() -> None:
    assert len(shown(MODEL)) <= 80 and "\n" not in shown(MODEL)
    assert shown([1, "a"]) == "[1, 'a']"


def _builder() -> GraphBuilder:
    return GraphBuilder(MODEL)


#: what is wrong -> a call, what the error says
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "one input name": (lambda: GraphBuilder(MODEL, input_names="x"), "input_names .*several names"),
    "no output names": (lambda: GraphBuilder(MODEL, output_names=3), "output_names .*several"),
    "raise_list": (lambda: GraphBuilder(MODEL, raise_list="x"), "raise_list .*several names"),
    "a version": (lambda: GraphBuilder(MODEL, ir_version="a"), "ir_version expects int"),
    "a negative version": (lambda: GraphBuilder(MODEL, ir_version=-1), "ir_version .* >= 1"),
    "no such flag": (lambda: GraphBuilder(MODEL, infer_shapes_options=99), "infer_shapes_options"),
    "a domain": (lambda: GraphBuilder(MODEL, local_domain=3), "local_domain expects str"),
    "domains": (lambda: GraphBuilder({3: 4}), "domain of opsets expects str, not 3"),
    "opsets": (lambda: GraphBuilder(MODEL, opsets=3), "opsets expects a dictionary"),
    "one root": (lambda: GraphBuilder(MODEL, allowed_roots="abc"), "allowed_roots .*several"),
    "no root": (lambda: GraphBuilder(MODEL, allowed_roots=3), "allowed_roots .*several"),
    "roots": (lambda: GraphBuilder(MODEL, allowed_roots=[3]), "allowed_roots .*several"),
    "a folder": (lambda: GraphBuilder(MODEL, base_dir=3), "base_dir expects a folder"),
    "features": (lambda: OptimizationOptions(features=3), "features expects list or tuple"),
    "folding": (lambda: OptimizationOptions(constant_folding=3), "constant_folding .*several"),
    "name of a function": (lambda: FunctionOptions(name=3), "FunctionOptions.name expects str"),
    "threshold of a function": (
        lambda: FunctionOptions(external_threshold="a"),
        "external_threshold expects int",
    ),
    "function options": (
        lambda: _builder().to_onnx(function_options="f"),
        "function_options expects FunctionOptions or None, not 'f'",
    ),
    "threshold": (lambda: _builder().to_onnx(external_threshold=None), "a number of bytes"),
    "mask": (lambda: _builder().to_onnx(mask_outputs=3), "mask_outputs .*one bool for each"),
    "mask of names": (lambda: _builder().to_onnx(mask_outputs=["y"]), "mask_outputs .*one bool"),
    "input without name": (lambda: GraphBuilder(18).make_tensor_input(3), "the name of the input"),
    "type of an input": (
        lambda: GraphBuilder(18).make_tensor_input("x", "FLOAT"),
        "elem_type .* such as TensorProto.FLOAT, not 'FLOAT'",
    ),
    "shape of an input": (
        lambda: GraphBuilder(18).make_tensor_input("x", 1, 3),
        "a shape is a sequence of dimensions, not 3",
    ),
    "text for a shape": (
        lambda: GraphBuilder(18).make_tensor_input("x", 1, "ab"),
        "a shape is a sequence of dimensions, not 'ab'",
    ),
    "half a dimension": (
        lambda: GraphBuilder(18).make_tensor_input("x", 1, ("a", 2.5)),
        "a dimension is a name, an integer >= 0 or None, not 2.5",
    ),
    "negative dimension": (lambda: _builder().set_shape("z", ("a", -1)), "a dimension is a name"),
    "no shape": (lambda: _builder().set_shape("z", None), "a shape is a sequence"),
    "an unknown type": (lambda: _builder().set_type("z", "a"), "elem_type expects"),
    "name of an output": (lambda: _builder().make_tensor_output(3), "name expects several names"),
    "type of an output": (lambda: _builder().make_tensor_output("z", 99), "elem_type expects"),
    "name of a constant": (lambda: _builder().make_initializer(3, 1.0), "the name of the init"),
    "no operator": (lambda: _builder().make_node(None, ["x"]), "op_type expects str, not None"),
    "no inputs": (lambda: _builder().make_node("Neg", None), "inputs expects several names"),
    "names of outputs": (lambda: _builder().make_node("Neg", ["x"], [3]), "outputs expects"),
    "name of a node": (lambda: _builder().make_node("Neg", "x", name=3), "the name of the node"),
    "nodes of nothing": (lambda: _builder().make_nodes(3, ["x"], ["u"]), "builder .*GraphBuilder"),
    "options of nodes": (
        lambda: _builder().make_nodes(_builder(), ["x"], ["u"], function_options="f"),
        "function_options expects FunctionOptions",
    ),
    "one name for the inputs": (
        lambda: _builder().make_nodes(_builder(), "x", ["u"]),
        "input_names .*several names",
    ),
    "function of nothing": (
        lambda: _builder().make_local_function(3, FunctionOptions(name="f")),
        "builder .*GraphBuilder",
    ),
    "function without options": (
        lambda: _builder().make_local_function(_builder(), None),
        "function_options expects FunctionOptions",
    ),
    "text of a path": (lambda: pretty_onnx("m.onnx"), "a proto or a builder, not 'm.onnx'; a file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(OptionError, match=f"(?i){message}"):
        call()


def test_arguments_that_are_accepted() -> None:
    builder = GraphBuilder(
        MODEL, input_names=["x"], output_names=("y",), raise_list=set(), verbose=True, base_dir="."
    )
    onx = builder.to_onnx(mask_outputs=[np.True_])
    assert isinstance(onx, onnx.ModelProto) and [o.name for o in onx.graph.output] == ["y"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_model(None), "path expects the path of a model, not None"),
        (lambda: save_model(MODEL, None), "path expects the path of a file, not None"),
        (lambda: save_model("m", "m.onnx"), "model expects ModelProto or ModelContainer, not 'm'"),
    ],
)
def test_files_that_are_none(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()
    assert not Path("m.onnx").exists()


@pytest.mark.parametrize(
    "arguments,expected",
    [
        ({"insert_position": "a"}, "insert_position expects a position, not 'a'."),
        ({"insert_position": 1.5}, "insert_position expects a position, not 1.5."),
        ({"metadata_props": 3}, "metadata_props expects a dictionary of strings, not 3."),
        ({"metadata_props": {"k": 3}}, "metadata_props['k'] expects a string, not 3."),
        ({"attributes": [3]}, "attributes expects several AttributeProto, not [3]."),
        ({"attributes": 3}, "attributes expects several AttributeProto, not 3."),
        ({"name": 3}, "name expects the name of the node, not 3."),
    ],
)
def test_arguments_of_make_node(arguments: dict[str, Any], expected: str) -> None:
    builder = GraphBuilder(MODEL)
    count = len(builder.nodes)
    with pytest.raises(OptionError) as e:
        builder.make_node("Neg", ["x"], **arguments)
    assert str(e.value) == expected
    assert len(builder.nodes) == count


def test_what_is_no_node() -> None:
    builder = GraphBuilder(MODEL)
    for call in (builder.get_attribute, builder.get_attribute_value):
        with pytest.raises(OptionError, match=r"^node expects NodeProto, not 3\.$"):
            call(3, "axis")
    with pytest.raises(OptionError, match=r"^proto expects NodeProto, not 'Neg'\.$"):
        builder.add_node("Neg")


@pytest.mark.parametrize(
    "array,match",
    [
        (np.array(["a", None, {}], dtype=object), r"this one holds \['NoneType', 'dict'\]"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), r"ONNX type .* datetime64\[D\]"),
    ],
)
def test_arrays_that_are_no_initializer(array: np.ndarray, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        GraphBuilder(MODEL).make_initializer("value", array)
