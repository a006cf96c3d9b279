"""A model that kills the process where onnxruntime runs it, unless its input is long enough."""

from __future__ import annotations

import platform

import onnx
import onnx.parser
import pytest

#: x86 processors trap when the lowest integer is divided by -1
only_where_it_crashes = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="this processor does not trap"
)


def crashing_model(length: int = 4096) -> onnx.ModelProto:
    """A model that crashes if x has fewer than *length* values."""
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x) => (int64[1] y) {{
            shape = Shape(x)
            length = Constant<value_ints=[{length}]>()
            minus_one = Constant<value_ints=[-1]>()
            low = Constant<value_ints=[-9223372036854775808]>()
            times = Div(shape, length)
            more = Sub(times, minus_one)
            divisor = Mul(more, minus_one)
            y = Div(low, divisor)
        }}
    """)
