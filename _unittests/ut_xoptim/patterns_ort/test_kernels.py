"""onnxruntime does have the kernels the table announces."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from xbuilder.operators.op_traits import FLOATS
from xbuilder.runtimes.installed import kernel_table
from xoptim.patterns_ort.kernels import KERNEL_MIN_RANKS, accepts_rank, runtime_has_kernel
from xoptim.testing import optimize_with, run_onnxruntime

#: shapes of the inputs, attributes
CALLS = {
    "com.microsoft::BiasGelu": ([(2, 4), (4,)], {}),
    "com.microsoft::FastGelu": ([(2, 4)], {}),
    "com.microsoft::FusedConv": ([(1, 2, 5, 5), (3, 2, 3, 3)], {"activation": "Relu"}),
    "com.microsoft::FusedMatMul": ([(2, 4, 3), (2, 4, 5)], {"transA": 1, "alpha": 0.5}),
    "com.microsoft::Gelu": ([(2, 4)], {}),
    "com.microsoft::QuickGelu": ([(2, 4)], {"alpha": 1.0}),
    "com.microsoft::SkipLayerNormalization": ([(2, 3, 4), (2, 3, 4), (4,), (4,)], {}),
    "com.microsoft::SkipSimplifiedLayerNormalization": ([(2, 3, 4), (2, 3, 4), (4,)], {}),
    "SimplifiedLayerNormalization": ([(2, 3, 4), (4,)], {"axis": -1}),
}


def one_node(key: str, elem_type: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node and its inputs."""
    domain, _, op_type = key.rpartition("::")
    shapes, attributes = CALLS[key]
    names = [f"x{i}" for i in range(len(shapes))]
    node = oh.make_node(op_type, names, ["y"], domain=domain, **attributes)
    inputs = [
        oh.make_tensor_value_info(n, elem_type, s) for n, s in zip(names, shapes, strict=True)
    ]
    graph = oh.make_graph([node], "g", inputs, [oh.make_tensor_value_info("y", elem_type, None)])
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("com.microsoft", 1)]
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    feeds = {n: np.ones(s, dtype=dtype) for n, s in zip(names, shapes, strict=True)}
    return oh.make_model(graph, opset_imports=opsets, ir_version=9), feeds


def types_of(key: str) -> list[int]:
    """The floats the kernels of an operator accept, but bfloat16: onnxruntime takes no array of it."""
    domain, _, op_type = key.rpartition("::")
    opset = 1 if domain else 18
    table = kernel_table("CPU")
    known = FLOATS - {onnx.TensorProto.BFLOAT16}
    return sorted(t for t in known if table.runs(op_type, domain, opset, [t]))


@pytest.mark.parametrize(("key", "elem_type"), [(k, t) for k in CALLS for t in types_of(k)])
def test_kernel_runs(key: str, elem_type: int) -> None:
    model, feeds = one_node(key, elem_type)
    (y,) = run_onnxruntime(model, feeds)
    assert y.dtype == oh.tensor_dtype_to_np_dtype(elem_type)


def test_unknown_type_is_refused() -> None:
    class Unknown:
        opsets: ClassVar[dict[str, int]] = {}
        processor = "CPU"

        def type_or_none(self, name: str) -> int | None:
            return None

    assert not runtime_has_kernel(Unknown(), "com.microsoft::Gelu", "x")


def test_optimizer_knows_the_shapes() -> None:
    """The nodes rewrites write have an inferred type, otherwise outputs would lose theirs."""
    for key in CALLS:
        model, _ = one_node(key, onnx.TensorProto.FLOAT)
        model.graph.output[0].type.tensor_type.ClearField("shape")
        _, _, builder = optimize_with(model, None)
        assert builder.get_type("y") == onnx.TensorProto.FLOAT
        assert builder.has_rank("y")


@pytest.mark.parametrize("key", CALLS)
def test_scalars(key: str) -> None:
    """A kernel of one input refuses a scalar if and only if the table says so."""
    if len(CALLS[key][0]) > 1:
        assert key not in KERNEL_MIN_RANKS, "its rewrites check more than a rank"
        return
    model, feeds = one_node(key, onnx.TensorProto.FLOAT)
    del model.graph.input[0].type.tensor_type.shape.dim[:]
    feeds = {"x0": np.array(1, dtype=np.float32)}
    if key in KERNEL_MIN_RANKS:
        with pytest.raises(Exception, match="1 or more dimensions"):
            run_onnxruntime(model, feeds)
    else:
        assert run_onnxruntime(model, feeds)[0].shape == ()


@pytest.mark.parametrize("rank", [None, 0, 1])
def test_accepts_rank(rank: int | None) -> None:
    class Ranked:
        def __init__(self, processor: str):
            self.processor = processor

        def rank_or_none(self, name: str) -> int | None:
            return rank

    g = Ranked("CPU")
    assert accepts_rank(g, "com.microsoft::FastGelu", "x") is (rank == 1)
    assert accepts_rank(g, "com.microsoft::Gelu", "x")
    assert accepts_rank(Ranked("CPU,CUDA"), "com.microsoft::Gelu", "x") is (rank == 1)
