"""Parts of rows that are moved after a product or before one."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder import GraphBuilder
from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
WEIGHT = "float[2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}"
TURNED = "float[2, 4] w = {1, 3, 2, 4, 5, 7, 6, 8}"
ROWS = "float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}"
TURNED_ROWS = "float[4, 2] w = {1, 2, 5, 6, 3, 4, 7, 8}"
SIZES = {"sizes": [{"a": 2, "b": 3}, {"a": 1, "b": 1}, {"a": 0, "b": 2}, {"a": 2, "b": 0}]}


def columns(
    body: str,
    weight: str = WEIGHT,
    out: str = "float[a, b, 2, 2] y",
    x: str = "float[a, b, 2] x",
    shape: str = "{0, 0, 2, 2}",
) -> str:
    """A product whose columns are moved."""
    rank = shape.count(",") + 1
    return f"""g ({x}) => ({out}) <{weight}, int64[{rank}] s = {shape}> {{ {body} }}"""


def rows(
    body: str,
    weight: str = ROWS,
    out: str = "float[a, b, 2] y",
    x: str = "float[a, b, 2, 2] x",
    shape: str = "{0, 0, 4}",
) -> str:
    """A product of moved columns."""
    return columns(body, weight, out, x, shape)


MOVE = "Transpose<perm = [0, 1, 3, 2]>"
PRODUCT = "p = MatMul(x, w) r = Reshape(p, s) "
COLUMNS = PRODUCT + f"y = {MOVE}(r)"
BIASED = f"p = MatMul(x, w) q = Add(p, c) r = Reshape(q, s) y = {MOVE}(r)"
AFTER = "p = MatMul(x, w) y = Reshape(p, s)"
AFTER_BIASED = "p = MatMul(x, w) q = Add(p, c) y = Reshape(q, s)"
BEFORE_ROWS = f"t = {MOVE}(x) r = Reshape(t, s) y = MatMul(r, w)"
AFTER_ROWS = "r = Reshape(x, s) y = MatMul(r, w)"
MATRIX = {"x": "float[a, 2] x", "shape": "{-1, 2, 2}", "out": "float[a, 2, 2] y"}

#: what the documentation draws: pattern -> case -> (before, after)
MODELS = {
    "ColumnsTranspose": {
        "a product": (columns(COLUMNS), columns(AFTER, TURNED), SIZES),
        "a bias": (
            columns(BIASED, WEIGHT + ", float[4] c = {1, 2, 3, 4}"),
            columns(AFTER_BIASED, TURNED + ", float[4] c = {1, 3, 2, 4}"),
        ),
        "the bias is first, double": (
            columns(BIASED.replace("p, c", "c, p"), WEIGHT + ", float[4] c = {1, 2, 3, 4}").replace("float", "double"),
            columns(AFTER_BIASED, TURNED + ", float[4] c = {1, 3, 2, 4}").replace("float", "double"),
        ),
        "a matrix": (
            columns(COLUMNS.replace("[0, 1, 3, 2]", "[0, 2, 1]"), **MATRIX),
            columns(AFTER, TURNED, **{**MATRIX, "shape": "{0, 2, 2}"}),
        ),
        "three parts": (
            columns(COLUMNS.replace("[0, 1, 3, 2]", "[0, 1, 4, 2, 3]"),
                    out="float[a, b, 2, 2, 1] y", shape="{0, 0, 2, 1, 2}"),
            columns(AFTER, TURNED, out="float[a, b, 2, 2, 1] y", shape="{0, 0, 2, 2, 1}"),
        ),
    },
    "RowsTranspose": {
        "a product": (rows(BEFORE_ROWS), rows(AFTER_ROWS, TURNED_ROWS), SIZES),
        "a matrix": (
            rows(BEFORE_ROWS.replace("[0, 1, 3, 2]", "[0, 2, 1]"), x="float[a, 2, 2] x",
                 shape="{-1, 4}", out="float[a, 2] y"),
            rows(AFTER_ROWS, TURNED_ROWS, x="float[a, 2, 2] x", shape="{0, 4}", out="float[a, 2] y"),
        ),
    },
}  # fmt: skip

OTHER = "an inner result is used elsewhere"
PARTS = "the parts of the last dimension are not known"
REFUSED = {
    "ColumnsTranspose": {
        "the product is an output": (
            columns(COLUMNS + " z = Neg(p)", out="float[a, b, 2, 2] y, float[a, b, 4] z"), OTHER,
        ),
        "the reshaped product is an output": (
            columns(COLUMNS, out="float[a, b, 2, 2] y, float[a, b, 2, 2] r"), OTHER,
        ),
        "the sum is an output": (
            columns(BIASED, WEIGHT + ", float[4] c = {1, 2, 3, 4}",
                    out="float[a, b, 2, 2] y, float[a, b, 4] q"), OTHER,
        ),
        "batches of weights": (
            columns(COLUMNS, WEIGHT.replace("[2, 4]", "[1, 2, 4]")), "the weight is not a matrix",
        ),
        "another dimension is moved": (
            columns(PRODUCT + "y = Transpose<perm = [0, 2, 1, 3]>(r)", out="float[a, 2, b, 2] y"),
            "another dimension is moved",
        ),
        "the parts are not those of a row": (
            columns(COLUMNS, out="float[3, 2, 2, 2] y", shape="{3, 2, 2, 2}", x="float[2, 3, 2] x"),
            "another dimension is reshaped",
        ),
        "unknown parts": (
            f"""g (float[a, b, 2] x, int64[4] s) => (float[a, b, d, e] y) <{WEIGHT}> {{ {COLUMNS} }}""",
            PARTS,
        ),
        "the bias is a number": (
            columns(BIASED, WEIGHT + ", float c = {1}"), "the bias is not a vector",
        ),
        "what is added is no constant": (
            columns(BIASED, x="float[a, b, 2] x, float[4] c"), "no MatMul before",
        ),
        "integers": (
            columns(COLUMNS).replace("float", "int32"),
            "the type of the weight is not a float type",
        ),
    },
    "RowsTranspose": {
        "the moved result is an output": (
            rows(BEFORE_ROWS, out="float[a, b, 2] y, float[a, b, 2, 2] t"), OTHER,
        ),
        "the joined result is an output": (
            rows(BEFORE_ROWS, out="float[a, b, 2] y, float[a, b, 4] r"), OTHER,
        ),
        "another dimension is moved": (
            rows(BEFORE_ROWS.replace("[0, 1, 3, 2]", "[1, 0, 3, 2]"), x="float[2, 2, 2, 2] x",
                 out="float[2, 2, 2] y"),
            "another dimension is moved",
        ),
        "another dimension is joined": (
            rows(BEFORE_ROWS, x="float[a, 3, 2, 1] x", shape="{0, 2, 3}", out="float[a, 2, 2] y",
                 weight="float[3, 2] w = {1, 2, 3, 4, 5, 6}"),
            PARTS,
        ),
        "no constant": (
            f"""g (float[a, b, 2, 2] x, float[4, 2] w) => (float[a, b, 2] y)
            <int64[3] s = {{0, 0, 4}}> {{ {BEFORE_ROWS} }}""",
            "the weight is not a constant",
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, **CLOSE)
test_refusals = refusal_tests(REFUSED)


def _integers(shape: tuple[int, ...]) -> np.ndarray:
    """Small integers in float32, whose products and sums are exact."""
    return np.random.default_rng(len(shape)).integers(-9, 10, shape).astype(np.float32)


def random_model(parts: list[int], perm: list[int], before: bool, width: int) -> onnx.ModelProto:
    """A product whose rows, or columns, are parts that are moved. The weight is made of integers."""
    size = int(np.prod(parts))
    weight = _integers((size, width) if before else (width, size))
    axes = [0, 1, *(2 + p for p in perm)]
    move = {"perm": axes}
    split = ["d0", "d1", *parts]
    if before:
        nodes = [
            ("Transpose", ["x"], "t", move),
            ("Reshape", ["t", "s"], "r", {}),
            ("MatMul", ["r", "w"], "y", {}),
        ]
        shapes, shape = (split, ["d0", "d1", width]), [0, 0, size]
    else:
        nodes = [
            ("MatMul", ["x", "w"], "p", {}),
            ("Reshape", ["p", "s"], "r", {}),
            ("Transpose", ["r"], "y", move),
        ]
        shapes, shape = (["d0", "d1", width], [split[a] for a in axes]), [0, 0, *parts]
    made = [oh.make_node(o, i, [r], **a) for o, i, r, a in nodes]
    x, y = (oh.make_tensor_value_info(n, 1, s) for n, s in zip("xy", shapes, strict=True))
    weights = [onh.from_array(weight, "w"), onh.from_array(np.array(shape, np.int64), "s")]
    graph = oh.make_graph(made, "g", [x], [y], weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4).flatmap(
        lambda parts: st.tuples(st.just(parts), st.permutations(range(len(parts))))
    ),
    st.booleans(),
    st.integers(1, 5),
)
def test_any_parts(case: tuple[list[int], list[int]], before: bool, width: int) -> None:
    """Any number of parts in any order, parts of one element, any weight: integers, because sums in
    another order are not equal in float."""
    parts, perm = case
    name = "RowsTranspose" if before else "ColumnsTranspose"
    model = random_model(parts, perm, before, width)
    sizes = {"d0": 2, "d1": 3}
    dims = model.graph.input[0].type.tensor_type.shape.dim
    x = _integers(tuple(sizes.get(d.dim_param, d.dim_value) for d in dims))
    found = check_pattern(model, None, name, feeds=[{"x": x}], atol=0, rtol=0)
    assert "Transpose" not in {n.op_type for n in found.graph.node}


@pytest.mark.parametrize("before", [True, False])
def test_shared_weight(before: bool) -> None:
    """A big weight that something else reads stays: the model would grow."""
    proto = random_model([40, 20], [1, 0], before, 3)
    size = [800, 3] if before else [3, 800]
    proto.graph.node.append(oh.make_node("Neg", ["w"], ["z"]))
    proto.graph.output.append(oh.make_tensor_value_info("z", 1, size))
    made = GraphBuilder(proto, infer_shapes_options=True).to_onnx()
    assert "Transpose" in {n.op_type for n in made.graph.node}
