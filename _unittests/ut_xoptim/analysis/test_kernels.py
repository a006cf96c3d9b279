"""Operators that runtimes compute with a kernel of their own on CPU."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from xoptim.analysis.kernels import is_faster_as_image, require_cpu_kernel
from xoptim.authoring import Refusal, RewriteContext
from xoptim.testing import optimizer_of

FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
MODEL = "g (float[a] x) => (float[a] y) { y = Neg(x) }"


@pytest.mark.parametrize(
    ("op_type", "kind", "opset", "accepted"),
    [
        ("Gelu", FLOAT, 20, True),
        ("Gelu", HALF, 20, False),
        ("Gelu", DOUBLE, 20, False),
        ("Relu", HALF, 17, True),
        ("Relu", HALF, 18, False),
        ("Relu", HALF, 19, True),
        ("Attention", FLOAT, 24, True),
        ("Attention", FLOAT, 25, False),
        ("Swish", FLOAT, 24, False),
        ("Relu", 0, 18, False),
    ],
)
def test_cpu(op_type: str, kind: int, opset: int, accepted: bool) -> None:
    for processor, refuses in (("CPU", not accepted), ("CPU,CUDA", not accepted), ("CUDA", False)):
        g = RewriteContext(optimizer_of(MODEL, None, opset, processor=processor))
        if refuses:
            with pytest.raises(Refusal):
                require_cpu_kernel(g, op_type, kind)
        else:
            require_cpu_kernel(g, op_type, kind)


@pytest.mark.parametrize(
    ("shape", "group", "faster"),
    [
        ((16, 128, 5), 1, True),
        ((16, 16, 4), 1, False),
        ((16, 144, 5), 1, False),
        ((16, 8, 5), 1, False),
        ((16, 0, 5), 1, False),
        ((16, 16, 5), 2, False),
        ((16, 16, 5, 5), 1, False),
    ],
)
def test_faster_as_image(shape: tuple[int, ...], group: int, faster: bool) -> None:
    assert is_faster_as_image(shape, group) == faster
