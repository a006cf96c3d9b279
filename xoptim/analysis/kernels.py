"""The operators that runtimes are known to compute with a kernel of their own on CPU, and the
conditions of speed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from xbuilder.dims import Shape
from xbuilder.nodes.loading import loads
from xbuilder.nodes.schema_functions import changed_operators, has_function
from xbuilder.runtimes.kernel_table import shipped_kernels
from xbuilder.runtimes.known_kernels import has_kernel

from ..authoring import RewriteContext


def require_cpu_kernel(g: RewriteContext, op_type: str, kind: int | None) -> None:
    """Refuses an operator that runtimes have no kernel for on CPU, if the model is meant for it:
    they would not load it, or compute more nodes, those of the function that defines it. They do so
    in float16 even where they have a kernel for float.

    :param op_type: operator of the main domain
    :param kind: element type of its first operand; an unknown one is refused
    """
    if g.has_processor("CPU"):
        opset = g.main_opset
        expanded = kind == TensorProto.FLOAT16 and has_function(op_type, "", opset)
        known = has_kernel(op_type, kind or 0, opset)
        known = known and not (expanded and not changed_operators(op_type, "", opset))
        g.require(known, "runtimes have no kernel on CPU")


def require_fast(g: RewriteContext, fast: object, reason: str) -> None:
    """Refuses a case that was measured slower, unless the pattern is asked with `even_slower=True`.

    :param fast: whether the case was measured faster
    :param reason: why not, the name of the option follows it
    """
    if not g.even_slower:
        g.require(fast, f"{reason}, even_slower=True applies it")


def is_faster_as_image(weight: Sequence[int], group: int, transposed: bool = False) -> bool:
    """Whether onnxruntime convolves rows faster as images of one line, on CPU: it holds images in
    blocks of channels.

    1. One group, 16 to 128 channels, multiples of 16, windows of 5 elements or more: up to 1.4
       times faster. Windows of 3 elements, from 48 channels on: up to 1.16.
    2. Several groups, each with 16 to 128 channels before and after, multiples of 16, windows of 3
       elements or more: 1.02 to 1.9 times faster.
    3. Every channel on its own, from 16 channels on: 1.16 to 6 times faster.
    4. A ConvTranspose of 16 results or more, windows of 3 elements or more: 1.03 to 1.18 times
       faster, because results are added line by line.

    :param weight: shape of the weight for rows
    :param group: number of groups
    :param transposed: it is the weight of a ConvTranspose
    """
    if len(weight) != 3 or group < 1:
        return False
    filters, channels, window = weight
    if transposed:
        return channels * group >= 16 and window >= 3
    if group == filters >= 16 and channels == 1:
        return True
    least = 16 if window >= 5 or group > 1 else 48
    sizes = (filters // group, channels)
    return window >= 3 and all(n % 16 == 0 and least <= n <= 128 for n in sizes)


def require_loaded(g: RewriteContext, op_type: str, name: str) -> None:
    """Refuses an operator of one input that runtimes do not load on CPU for its type, neither with
    a kernel nor with the function that defines it, if the model is meant for it.

    :param op_type: operator of the main domain
    :param name: its input; an unknown type is refused
    """
    if g.has_processor("CPU"):
        node = NodeProto(op_type=op_type, input=["x"], output=["y"])
        kind = g.type_of(name)
        g.require(loads(shipped_kernels("CPU"), node, g.main_opset, [kind]), "no runtime loads it")


def require_many(g: RewriteContext, shape: Shape, known: int, otherwise: int) -> None:
    """Refuses a tensor of few elements, for which several nodes cost more than a slow one.

    :param shape: its shape
    :param known: the fewest elements, if every dimension is known
    :param otherwise: the fewest elements of the dimensions that are known
    """
    sizes = [d for d in shape if isinstance(d, int)]
    least = known if len(sizes) == len(shape) else otherwise
    require_fast(g, math.prod(sizes) >= least, "there are few elements")


def require_float_on_cpu(g: RewriteContext, x: str) -> None:
    """Refuses what was not measured: another processor than CPU, other elements than floats.

    :param x: the first operand
    """
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    g.require(g.type_or_none(x) == TensorProto.FLOAT, "the elements are not float")
