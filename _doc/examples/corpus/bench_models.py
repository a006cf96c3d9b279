"""Models of any size for the benchmarks, made of what exporters write."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
from onnx import TensorProto

#: nodes of one block of :func:`chain_model`
BLOCK = 15


def block(i: int, x: str, names: dict[str, str]) -> tuple[list[onnx.NodeProto], str]:
    """Makes one block: a hand-made normalization, useless moves and casts, an activation.

    :param i: number of the block
    :param x: name of its input, float[batch, seq, 16]
    :param names: names of the shared constants
    :return: nodes, name of the output
    """
    p = f"b{i}_"

    def node(op_type: str, *inputs: str, out: str, **attributes: object) -> onnx.NodeProto:
        return oh.make_node(op_type, list(inputs), [p + out], name=p + out, **attributes)

    nodes = [
        node("Add", x, names["zero"], out="same"),
        node("Transpose", p + "same", out="t1", perm=[0, 2, 1]),
        node("Transpose", p + "t1", out="t2", perm=[0, 2, 1]),
        node("ReduceMean", p + "t2", names["last"], out="mean", keepdims=1),
        node("Sub", p + "t2", p + "mean", out="centered"),
        node("Pow", p + "centered", names["two"], out="square"),
        node("ReduceMean", p + "square", names["last"], out="var", keepdims=1),
        node("Add", p + "var", names["epsilon"], out="vareps"),
        node("Sqrt", p + "vareps", out="std"),
        node("Div", p + "centered", p + "std", out="norm"),
        node("Cast", p + "norm", out="cast", to=TensorProto.FLOAT),
        node("MatMul", p + "cast", names["weight"], out="product"),
        node("Sigmoid", p + "product", out="gate"),
        node("Mul", p + "product", p + "gate", out="silu"),
        node("Add", p + "silu", x, out="y"),
    ]
    return nodes, p + "y"


def chain_model(n_nodes: int) -> onnx.ModelProto:
    """Makes a model with about this number of nodes.

    :param n_nodes: number of nodes, rounded up to a whole number of blocks
    :return: a model, opset 18
    """
    rng = np.random.default_rng(0)
    constants = {
        "zero": np.zeros((1,), np.float32),
        "last": np.array([-1], np.int64),
        "two": np.array([2], np.float32),
        "epsilon": np.array([1e-5], np.float32),
        "weight": (rng.standard_normal((16, 16)) / 8).astype(np.float32),
    }
    nodes: list[onnx.NodeProto] = []
    last = "x"
    for i in range(max(1, -(-n_nodes // BLOCK))):
        added, last = block(i, last, {name: name for name in constants})
        nodes.extend(added)
    nodes.append(oh.make_node("Identity", [last], ["y"], name="end"))
    graph = oh.make_graph(
        nodes,
        "chain",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", 16])],
        [oh.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "seq", 16])],
        [onh.from_array(value, name) for name, value in constants.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def motif_chain(n_nodes: int, copies: int = 1) -> onnx.ModelProto:
    """Makes a chain of motifs every optimizer knows: two Transpose, two Reshape, two Cast, a MatMul
    and an Add, an Identity.

    :param n_nodes: number of nodes, rounded up to a whole number of motifs
    :param copies: the same chain so many times, all read the input, a Sum reads them
    :return: a model, opset 18
    """
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    last = "x"

    def add(op_type: str, *others: str, **attributes: object) -> None:
        nonlocal last
        out = f"r{len(nodes)}"
        nodes.append(oh.make_node(op_type, [last, *others], [out], name=out, **attributes))
        last = out

    ends = []
    for copy in range(1, copies + 1):
        last = "x"
        while len(nodes) < copy * (n_nodes - 1) / copies:
            add("Transpose", perm=[1, 0])
            add("Transpose", perm=[1, 0])
            add("Reshape", "rank3")
            add("Reshape", "rank2")
            add("Cast", to=TensorProto.DOUBLE)
            add("Cast", to=TensorProto.FLOAT)
            add("MatMul", "weight")
            add("Add", "bias")
            add("Identity")
        ends.append(last)
    if copies > 1:
        last = ends.pop()
        add("Sum", *ends)
    add("Relu")
    constants = {
        "rank3": np.array([-1, 2, 4], np.int64),
        "rank2": np.array([-1, 8], np.int64),
        "weight": (rng.standard_normal((8, 8)) / 8).astype(np.float32),
        "bias": rng.standard_normal((8,)).astype(np.float32),
    }
    graph = oh.make_graph(
        nodes,
        "motifs",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [oh.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", 8])],
        [onh.from_array(value, name) for name, value in constants.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
