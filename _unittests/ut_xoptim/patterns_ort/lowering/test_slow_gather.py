"""Gather along the last axis, written along another one."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import refusal_tests, rewrite_tests

INDICES = "int64[4] i = {1, 0, 3, -2}"


def model(body: str, constants: str = INDICES, x: str = "n, 32, 4", y: str = "n, 32, 4") -> str:
    """One Gather, or what it becomes."""
    return f"g (float[{x}] x) => (float[{y}] y) <{constants}> {{ {body} }}"


LAST = "y = Gather<axis = -1>(x, i)"
MOVED = (
    "t = Transpose<perm = [0, 2, 1]>(x) r = Gather<axis = 1>(t, i)"
    " y = Transpose<perm = [0, 2, 1]>(r)"
)
#: what the documentation draws: name -> (before, after)
MODELS = {"SlowGather": {"coordinates of boxes": (model(LAST), model(MOVED))}}
#: pattern -> case -> (before, after)
CASES = {
    "SlowGather": {
        "a table": (
            model(LAST, x="300, 4", y="300, 4"),
            model(MOVED.replace("0, 2, 1", "1, 0").replace("= 1>", "= 0>"), x="300, 4", y="300, 4"),
        ),
        "the indices are an input": (
            "g (float[n, 32, 12] x, int64[3] i) => (float[n, 32, 3] y) { y = Gather<axis = 2>(x, i) }",
            f"g (float[n, 32, 12] x, int64[3] i) => (float[n, 32, 3] y) {{ {MOVED} }}",
        ),
        "none after, four dimensions": (
            model(LAST, x="n, 2, 32, 16", y="n, 2, 32, 4"),
            model(
                MOVED.replace("0, 2, 1", "0, 1, 3, 2").replace("= 1>", "= 2>"),
                x="n, 2, 32, 16",
                y="n, 2, 32, 4",
            ),
        ),
    },
}
#: pattern -> case -> (model, reason)
REFUSED = {
    "SlowGather": {
        "another axis": (
            model("y = Gather<axis = 1>(x, i)", y="n, 4, 4"),
            "the axis is not the last one of two at least",
        ),
        "one dimension": (
            model("y = Gather(x, i)", x="n", y="4"),
            "the axis is not the last one of two at least",
        ),
        "one index": (
            model(LAST, "int64 i = {1}", y="n, 32"),
            "the indices do not have one dimension",
        ),
        "indices in two dimensions": (
            model(LAST, INDICES.replace("[4]", "[2, 2]"), y="n, 32, 2, 2"),
            "the indices do not have one dimension",
        ),
        "a small part": (
            model(LAST, x="n, 32, 17"),
            "a small part of the axis is read, or an unknown one",
        ),
        "an axis of any length": (
            model(LAST, x="n, 32, m"),
            "a small part of the axis is read, or an unknown one",
        ),
        "few elements": (model(LAST, x="7, 32, 4", y="7, 32, 4"), "there are few elements"),
        "rows that are alone": (
            model(LAST, x="300, 1, 4", y="300, 1, 4"),
            "each row is alone",
        ),
        "integers": (model(LAST).replace("float[", "int64["), "the elements are not float"),
    },
}
test_rewrites = rewrite_tests(MODELS)
test_cases = rewrite_tests(CASES)
test_refused = refusal_tests(REFUSED)


@pytest.mark.parametrize("x", ["n, 32, 4", "300, 4"])
def test_nothing_moves_it_back(x):
    """The other patterns leave the new nodes."""
    before = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {model(LAST, x=x, y=x)}')
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(before, infer_shapes_options=True, optimization_options=options)
    after = builder.to_onnx(optimize=True)
    assert isinstance(after, onnx.ModelProto)
    assert [n.op_type for n in after.graph.node] == ["Transpose", "Gather", "Transpose"]
