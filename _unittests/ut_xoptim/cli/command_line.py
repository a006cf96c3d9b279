"""The command run in the process of the test."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
from click.testing import CliRunner, Result
from onnx import TensorProto

from xoptim.cli.main import main

#: the project
ROOT = Path(__file__).resolve().parents[3]
#: a model three nodes of which are useless
TRANSPOSES = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
    a = Transpose<perm: ints = [0, 2, 1]>(x)
    b = Transpose<perm: ints = [0, 2, 1]>(a)
    c = Identity(b)
    y = Neg(c)
}
"""


def run(*args: object, code: int = 0) -> Result:
    """Runs the command, checks its exit code, and that no traceback is shown."""
    result = CliRunner().invoke(main, [str(a) for a in args])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def parse(text: str = TRANSPOSES) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def one_node(op_type: str, **kwargs) -> onnx.ModelProto:
    """A model of one node that no parser would accept."""
    node = oh.make_node(op_type, kwargs.get("inputs", ["x"]), ["y"])
    x = oh.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])
    y = oh.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])
    graph = oh.make_graph([node, *kwargs.get("more", [])], "g", [x], [y])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=8)


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def ops(path: Path) -> list[str]:
    return [n.op_type for n in onnx.load(path).graph.node]


def functions(count: int, called: int) -> onnx.ModelProto:
    """Functions that call one of the others: twice makes 2**count nodes."""
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("mine", 1)]
    made = [
        oh.make_function("mine", "F0", ["a"], ["b"], [oh.make_node("Relu", ["a"], ["b"])], opsets)
    ]
    for i in range(1, count):
        names = ["a", *(f"t{k}" for k in range(1, called)), "b"]
        pairs = itertools.pairwise(names)
        calls = [oh.make_node(f"F{i - 1}", [x], [y], domain="mine") for x, y in pairs]
        made.append(oh.make_function("mine", f"F{i}", ["a"], ["b"], calls, opsets))
    proto = one_node(f"F{count - 1}")
    proto.graph.node[0].domain = "mine"
    proto.opset_import.append(opsets[1])
    proto.functions.extend(made)
    return proto


def not_onnx(path: Path) -> None:
    path.write_bytes(b"this is not a model" * 10)


def cycle(path: Path) -> None:
    a = oh.make_node("Add", ["x", "b"], ["a"])
    b = oh.make_node("Neg", ["a"], ["b"])
    path.write_bytes(one_node("Add", inputs=["a", "b"], more=[a, b]).SerializeToString())


def missing_external(path: Path) -> None:
    proto = one_node("Add", inputs=["x", "w"])
    proto.graph.initializer.append(onh.from_array(np.ones(5000, np.float32), "w"))
    onnx.save(proto, path, save_as_external_data=True, location="gone.data")
    path.with_name("gone.data").unlink()
