"""Element types that onnx does not know."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto

import xoptim
from xbuilder import GraphBuilder
from xoptim.cli.main import main
from xoptim.linting.unknown_types import unknown_type_message, unknown_types
from xoptim.reports.costs import costs_of

MODEL = """
<ir_version: 9, opset_import: ["": 18]> g (float[a,4] x, bool c) => (float[a,4] y)
<float[4] w = {1,1,1,1}, float[a,4] f> {
  [one] k = Constant<value = float[4] {1,1,1,1}>()
  [two] s = Shape(x)
  [three] o = ConstantOfShape<value = float[1] {2}>(s)
  [four] e = Cast<to = 1>(x)
  [five] b = If (c) <then_branch = t () => (float[a,4] t1) { [six] t1 = Cast<to = 1>(x) },
                     else_branch = u () => (float[a,4] u1) { u1 = Neg(x) }>
  f = Sum(x, w, k, o, e, b)
  y = Exp(f)
}
"""


def broken(place: str) -> ModelProto:
    """The model with type 99 somewhere."""
    model = onnx.parser.parse_model(MODEL)
    nodes = {n.name: n for n in model.graph.node}
    if place == "input":
        model.graph.input[0].type.tensor_type.elem_type = 99
    elif place == "output":
        model.graph.output[0].type.tensor_type.elem_type = 99
    elif place == "result":
        model.graph.value_info[0].type.tensor_type.elem_type = 99
    elif place == "weight":
        model.graph.initializer[0].data_type = 99
    elif place in ("one", "three"):
        nodes[place].attribute[0].t.data_type = 99
    elif place == "four":
        nodes["four"].attribute[0].i = 99
    elif place == "six":
        nodes["five"].attribute[0].g.node[0].attribute[0].i = 99
    return model


PLACES = {
    "input": "input 'x'",
    "output": "output 'y'",
    "result": "the declaration of result 'f'",
    "weight": "tensor 'w'",
    "one": "Constant 'one'",
    "three": "ConstantOfShape 'three'",
    "four": "Cast 'four'",
    "six": "Cast 'six'",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore:The shape function", "ignore:The model declares")
def test_a_place_is_found_and_nothing_stops(place):
    model = broken(place)
    assert list(unknown_types(model)) == [(PLACES[place], 99)]
    assert f"{PLACES[place]} has element type 99, which onnx " in unknown_type_message(model)
    report = xoptim.check(model)
    assert [f.where for f in report.findings if f.code == "X007"] == [PLACES[place]]
    xoptim.optimize(model)
    costs_of(GraphBuilder(model, infer_shapes_options=True))


def test_known_types():
    model = broken("nowhere")
    assert not list(unknown_types(model)) and not unknown_type_message(model)
    model.graph.input.append(oh.make_tensor_sequence_value_info("q", TensorProto.INT4, None))
    assert not unknown_type_message(model)
    model.graph.input[-1].type.sequence_type.elem_type.tensor_type.elem_type = 99
    assert list(unknown_types(model)) == [("input 'q'", 99)]


@pytest.mark.filterwarnings("ignore:The shape function", "ignore:The model declares")
def test_a_failure_names_the_file_and_the_node(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(broken("one"), path)
    np.savez(tmp_path / "feeds.npz", x=np.zeros((2, 4), np.float32), c=np.array(True))
    arguments = ["verify", path, path, "--inputs", tmp_path / "feeds.npz"]
    found = CliRunner().invoke(main, [*map(str, arguments)])
    assert found.exit_code == 1
    text = f"\n{path}: Constant 'one' has element type 99, which onnx {onnx.__version__} does not"
    assert found.output.count(text) == 1
    found = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert "Constant 'one' has element type 99" in json.loads(found.stdout)["error"]
    assert CliRunner().invoke(main, ["info", str(path)]).exit_code == 0
