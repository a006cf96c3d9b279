"""Chains of products and sums around MatMul and Gemm, made at random."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
from hypothesis import strategies as st
from onnx import TensorProto
from ut_xoptim.patterns.products.folding_chains import chain_tests

FOLDS = [
    "AffineMatMul",
    "MatMulAddMul",
    "MatMulAffine",
    "MatMulBiases",
    "MatMulReshapeNormalization",
]
_LAST = 4
_SHAPES = [(), (1,), (1, 1), ("N",), (1, "N"), (1, 1, "N"), (3, 1), (1, 1, 1)]
#: the weight comes first: channels are the last axis but one, another one follows
_ROWS = [(), (1,), (1, 1), ("N", 1), (1, "N", 1), (_LAST,), (1, 1, 1)]


@st.composite
def chains(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A product with products, sums and normalizations by constants around it."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    # onnxruntime leaves the result of a product as it is when the inner dimension is null
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    gemm, turned, left = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    shape = draw(st.sampled_from([(3, rows), (1, rows), (2, 3, rows), (rows,)]))
    if left:
        shape = draw(st.sampled_from([(rows, _LAST), (2, rows, _LAST)]))
    if gemm:
        shape = (rows, _LAST) if left else (3, rows)
    tensors: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []

    def affine(name: str, size: int) -> str:
        for _ in range(draw(st.integers(0, 3))):
            i, op = len(nodes), draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "BN"]))
            inputs, new = [name, f"k{i}"], f"r{i}"
            if op == "BN":
                inputs = [name, *(f"k{i}_{j}" for j in range(4))]
                channels = _LAST if left and len(shape) == 2 else size
                tensors.update((n, rng.random(channels) + 0.5) for n in inputs[1:])
                op = "BatchNormalization"
            else:
                dims = draw(st.sampled_from(_ROWS if left else _SHAPES))
                dims = tuple(size if d == "N" else d for d in dims)
                tensors[f"k{i}"] = (rng.random(dims) + 0.5) * rng.choice([-1, 1], dims)
                if draw(st.booleans()):
                    inputs.reverse()
            nodes.append(oh.make_node(op, inputs, [new]))
            name = new
        return name

    x = affine("x", rows)
    if gemm:
        tensors["w"] = rng.standard_normal((columns, rows) if turned != left else (rows, columns))
        biases = [(columns,), (1, columns), (3, 1)] if not left else [(columns, 1), (_LAST,)]
        bias = draw(st.sampled_from([None, (), (1,), *biases]))
        if bias is not None:
            tensors["b"] = rng.standard_normal(bias)
        inputs = [*(("w", x) if left else (x, "w")), *(["b"] if bias is not None else [])]
        side = {("transA" if left else "transB"): int(turned)}
        alpha = draw(st.sampled_from([1.0, 0.5]))
        nodes.append(oh.make_node("Gemm", inputs, ["c"], alpha=alpha, beta=2.0, **side))
    else:
        sides = (columns, rows) if left else (rows, columns)
        tensors["w"] = rng.standard_normal((*((2,) if turned else ()), *sides))
        nodes.append(oh.make_node("MatMul", ["w", x] if left else [x, "w"], ["c"]))
    last = affine("c", columns)
    nodes.append(oh.make_node("Identity", [last], ["y"]))
    outputs = {"y", *draw(st.sets(st.sampled_from([n.output[0] for n in nodes]), max_size=1))}
    dims: list[str | int] = [f"d{i}" for i in range(len(shape) - 1)]
    dims.insert(len(dims) - left, rows)
    graph = oh.make_graph(
        nodes,
        "g",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [oh.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in sorted(outputs)],
        [onh.from_array(np.asarray(v, dtype=np.float32), n) for n, v in tensors.items()],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    return model, {"x": rng.standard_normal(shape).astype(np.float32)}


test_any_chain, test_many_chains = chain_tests(chains(), FOLDS)
