"""Convolution followed by an activation."""

from __future__ import annotations

from ..api import RewriteContext
from ..declarative import rule
from .cpu_kernels import require_kernel


@rule(
    "onnxruntime",
    """y = Conv(x, *others, **attributes); Relu(y)
       -> com.microsoft.FusedConv(x, *others, **attributes, activation='Relu')""",
    root="y",
    priority=2,
    precision="rounding",
)
def fused_conv(g: RewriteContext, x: str) -> None:
    """Relu(Conv(x, w, b)) -> com.microsoft.FusedConv(x, w, b, activation=Relu), in float."""
    require_kernel(g, "FusedConv", x)
