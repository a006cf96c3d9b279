"""Products of complex numbers whose last axis holds both parts, as ComplexMul, for CUDA."""

from __future__ import annotations

from typing import TypeAlias

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.axes import axes_of, axis_of
from ...analysis.constants import scalar_index
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel

#: a part of a complex number: the number, and 0 for its real part
Part: TypeAlias = tuple[str, int]
#: two factors, in alphabetical order
Factors: TypeAlias = tuple[Part, ...]


@rewrite("onnxruntime", root="Concat", after=("Sub", "Unsqueeze"), precision="rounding")
def complex_mul(g: RewriteContext, concat: NodeProto) -> NewNode:
    """Concat(a0 * b0 - a1 * b1, a0 * b1 + a1 * b0) -> com.microsoft.ComplexMul(a, b) on CUDA.

    1. the parts come from Split or Gather on the last axis, whose length is 2; a and b have the
       same shape, the one of the result;
    2. factors and terms come in any order but those of the difference;
    3. there is one complex number: the kernel multiplies every number of a by the first one of b
       (onnxruntime 1.31.1 on a GPU H100; newer kernels were not tried).
    """
    real, imaginary = _sides(g, concat, "Sub", "Add")
    for (a, _), (b, _) in (real[0], real[0][::-1]):
        if real == [_factors(a, 0, b, 0), _factors(a, 1, b, 1)] and set(imaginary) == {
            _factors(a, 0, b, 1),
            _factors(a, 1, b, 0),
        }:
            return _written(g, concat, "ComplexMul", a, b)
    return g.refuse("the factors are not those of a complex product")


@rewrite("onnxruntime", root="Concat", after=("Add", "Unsqueeze"), precision="rounding")
def complex_mul_conj(g: RewriteContext, concat: NodeProto) -> NewNode:
    """Concat(a0 * b0 + a1 * b1, a1 * b0 - a0 * b1) -> com.microsoft.ComplexMulConj(a, b) on CUDA.

    1. a is multiplied by the conjugate of b; the same conditions as ComplexMul.
    """
    real, imaginary = _sides(g, concat, "Add", "Sub")
    for (a, _), (b, _) in (real[0], real[0][::-1]):
        same = set(real) == {_factors(a, 0, b, 0), _factors(a, 1, b, 1)}
        if same and imaginary == [_factors(a, 1, b, 0), _factors(a, 0, b, 1)]:
            return _written(g, concat, "ComplexMulConj", a, b)
    return g.refuse("the factors are not those of a product by a conjugate")


def _factors(a: str, i: int, b: str, j: int) -> Factors:
    return tuple(sorted([(a, i), (b, j)]))


def _sides(
    g: RewriteContext, concat: NodeProto, first: str, second: str
) -> tuple[list[Factors], list[Factors]]:
    """Factors of the terms of both parts of the result."""
    names = list(concat.input)
    rank = g.rank_or_none(concat.output[0])
    last = rank is not None and axis_of(g, concat, rank, None) == rank - 1
    g.require(len(names) == 2 and last, "two parts are not joined on the last axis")
    for i, name in enumerate(names):
        node = g.producer_or_none(name, "Unsqueeze")
        if node is not None and axes_of(g, node) in ((-1,), (int(rank or 0) - 1,)):
            g.look_at(node)
            names[i] = node.input[0]
    return _terms(g, names[0], first), _terms(g, names[1], second)


def _terms(g: RewriteContext, name: str, op_type: str) -> list[Factors]:
    terms = g.before(name, op_type)
    found = []
    for term in terms.input[:]:
        product = g.before(term, "Mul")
        parts = [_part(g, factor) for factor in product.input]
        found.append(tuple(sorted(parts)))
    return found


def _part(g: RewriteContext, name: str) -> Part:
    """The complex number of which a result is a part."""
    node = g.before(name, "Split", "Gather")
    source = node.input[0]
    shape = g.shape_of(source)
    g.require(bool(shape) and shape[-1] == 2, "the last dimension is not 2")
    on_last = axis_of(g, node, len(shape)) == len(shape) - 1
    g.require(on_last, "the parts are not on the last axis")
    if node.op_type == "Split":
        halves = len(node.output) == 2 and all(g.shape_of(n)[-1] == 1 for n in node.output)
        g.require(halves, "the parts are not those of complex numbers")
        return source, list(node.output).index(name)
    index = scalar_index(g, node.input[1])
    if index not in (-2, -1, 0, 1) or g.rank_or_none(node.input[1]) != 0:
        g.refuse("the part is not known")
    return source, index % 2


def _written(g: RewriteContext, concat: NodeProto, op_type: str, a: str, b: str) -> NewNode:
    shapes = [g.shape_of(name) for name in (a, b, concat.output[0])]
    same = proven_equal(g, shapes[0], shapes[1]) and proven_equal(g, shapes[0], shapes[2])
    g.require(same, "the shapes are not the same")
    alone = all(size == 1 for size in shapes[1][:-1])
    g.require(alone, "the kernel is wrong for several numbers")
    require_kernel(g, op_type, a)
    return NewNode(op_type, [a, b], {}, MICROSOFT)
