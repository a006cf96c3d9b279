"""Merges two arithmetic operators into one CUDA kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from onnx import NodeProto

from xbuilder.dims import Shape
from xbuilder.operators.domains import CUDA_DOMAIN

from ..analysis.arguments import int_attribute, other_input
from ..analysis.permutations import perm_of
from ..analysis.shapes import dims_are_equal, positive, proven_equal
from ..authoring import NewNode, RewriteContext, RewriteResult
from ..authoring.rewrite import RewriteFunction
from ..catalogue import rewrite
from .cuda import require_cuda

Fits = Callable[[RewriteContext, Sequence[Shape], Shape], bool]
#: the last operator, the one before
Pair = tuple[str, str]

#: the last operator, the one before -> the operator that merges them
_FUSED: dict[Pair, str] = {
    ("Add", "Add"): "AddAdd",
    ("Mul", "Mul"): "MulMul",
    ("Mul", "Add"): "AddMul",
    ("Add", "Mul"): "MulAdd",
    ("Mul", "Sub"): "SubMul",
    ("Sub", "Mul"): "MulSub",
}
#: pattern -> the pairs of operators it merges, the rewrites it does
_FAMILIES: dict[str, tuple[tuple[Pair, ...], str]] = {
    "AddAddMulMul": (
        (("Add", "Add"), ("Mul", "Mul")),
        "(a + b) + c -> AddAdd(a, b, c), (a * b) * c -> MulMul(a, b, c)",
    ),
    "AddMul": (
        (("Mul", "Add"), ("Add", "Mul")),
        "(a + b) * c -> AddMul(a, b, c), a * b + c -> MulAdd(a, b, c)",
    ),
    "SubMul": (
        (("Mul", "Sub"), ("Sub", "Mul")),
        "(a - b) * c -> SubMul(a, b, c), a * b - c or c - a * b -> MulSub(a, b, c)",
    ),
}
#: operator -> the operator that merges two of them sharing an operand
_SHARED = {"Add": "AddSharedInput", "Mul": "MulSharedInput"}
_SHARED_TEXT = "a + b, a + c -> AddSharedInput(a, b, c), the same with Mul"
#: most readers of a result to compare
_MAX_READERS = 16


def _same(g: RewriteContext, shapes: Sequence[Shape], result: Shape) -> bool:
    """Whether every operand has the shape of the result."""
    return all(proven_equal(g, shape, result) for shape in shapes)


def _repeated(g: RewriteContext, shapes: Sequence[Shape], result: Shape) -> bool:
    """Whether one operand has the shape of the result, and the others are repeated along its first
    dimensions: the kernels read their elements cyclically.

    The result takes the shape of the biggest operand, so no dimension may be null.
    """
    if not all(positive(g, d) for d in result):
        return False
    same = dims_are_equal(g)

    def is_end(shape: Shape) -> bool:
        ones = next((i for i, d in enumerate(shape) if d != 1), len(shape))
        end = shape[ones:]
        fits = len(shape) <= len(result)
        return fits and all(map(same, end, result[len(result) - len(end) :]))

    return all(map(is_end, shapes)) and any(proven_equal(g, s, result) for s in shapes)


#: end of a name -> which shapes, what it says of them, level
_SHAPES: dict[str, tuple[Fits, str, str]] = {
    "": (_same, "the operands have the shape of the result", "later"),
    "Broadcast": (
        _repeated,
        "the operands are repeated along the first dimensions, none is null",
        "last",
    ),
}


def _require_shapes(g: RewriteContext, names: Sequence[str], result: str, fits: Fits) -> None:
    """Refuses unless a kernel computes the same as broadcasting does."""
    shapes = [s for name in names if (s := g.shape_or_none(name)) is not None]
    whole = g.shape_of(result)
    known = len(shapes) == len(names) and fits(g, shapes, whole)
    g.require(known, "the kernel may not broadcast these shapes")


def _fused(pairs: Sequence[Pair], fits: Fits) -> RewriteFunction:
    """The rewrite of an operator and the one before into one."""

    def function(g: RewriteContext, node: NodeProto) -> RewriteResult:
        before = [inner for outer, inner in pairs if outer == node.op_type]
        found = [n for n in g.before_each(node, *before) if n is not None]
        if not found:
            return g.no("no operator to fuse before")
        require_cuda(g, node.output[0])
        alone = (n for n in found if not g.is_used_more_than_once(n.output[0]))
        inner = g.known(next(alone, None), "an inner result is used elsewhere")
        other = other_input(node, inner.output[0])
        operands = (*g.inputs(inner), other)
        _require_shapes(g, operands, node.output[0], fits)
        negative = node.op_type == "Sub" and node.input[1] == inner.output[0]
        make = getattr(g.op, _FUSED[node.op_type, inner.op_type])
        new: NewNode = make(*operands, domain=CUDA_DOMAIN, negative=1 if negative else None)
        return new

    return function


def _siblings(g: RewriteContext, node: NodeProto) -> Iterator[tuple[str, NodeProto]]:
    """Later nodes with the same operator and a common operand, which is returned first.

    Cost: bounded, see :data:`_MAX_READERS`.
    """
    order = g.record(node).order
    for name in dict.fromkeys(g.inputs(node)):
        for record in islice(g.store.readers(name), _MAX_READERS):
            after = record.order > order and name in record.inputs
            if after and record.op_type == node.op_type and not record.domain:
                yield name, g.store.proto(record)


def _shared(fits: Fits) -> RewriteFunction:
    """The rewrite of two operators sharing an operand into one with two results."""

    def function(g: RewriteContext, node: NodeProto) -> RewriteResult:
        require_cuda(g, node.output[0])
        order, first = g.record(node).order, node.output[0]
        for name, sibling in _siblings(g, node):
            b, c = (other_input(n, name) for n in (node, sibling))
            made = g.store.producers.get(c)
            if made is not None and made.order >= order:
                continue  # it may need the first result
            second = sibling.output[0]
            same = g.same_shape(first, second)
            g.require(same, "the results may not have the same shape")
            _require_shapes(g, (name, b, c), first, fits)
            g.look_at(sibling)
            make = getattr(g.op, _SHARED[node.op_type])
            new = make(name, b, c, domain=CUDA_DOMAIN, outputs=2)
            return {first: new[0], second: new[1]}
        return g.no("no other operator on the same operand")

    return function


def _documented(function: RewriteFunction, text: str, shapes: str) -> RewriteFunction:
    function.__doc__ = f"""{text}, on CUDA.

    1. The type is float or float16, {shapes}.
    2. Nothing else reads an inner result.
    """
    return function


for _end, (_fits, _where, _priority) in _SHAPES.items():
    for _name, (_pairs, _text) in _FAMILIES.items():
        rewrite(
            "experimental",
            root=tuple(outer for outer, _ in _pairs),
            reads=tuple(inner for _, inner in _pairs),
            priority=_priority,
            precision="rounding",
            name=f"{_name}{_end}",
        )(_documented(_fused(_pairs, _fits), _text, _where))
    rewrite(
        "experimental",
        root=tuple(_SHARED),
        priority=_priority,
        precision="rounding",
        name=f"AddMulSharedInput{_end}",
    )(_documented(_shared(_fits), _SHARED_TEXT, _where))


@rewrite(
    "experimental",
    root=(f"{CUDA_DOMAIN}::AddMul", f"{CUDA_DOMAIN}::MulAdd"),
    read_by="Transpose",
)
def add_mul_transpose(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """Transpose(AddMul(a, b, c), (0, 2, 1, 3)) -> AddMul(a, b, c, transposeMiddle=1), on CUDA.

    The same with MulAdd; the transposed result has no other use.
    """
    require_cuda(g, node.output[0])
    transpose = g.after(node, "Transpose")
    middle = perm_of(g, transpose) == (0, 2, 1, 3)
    g.require(middle, "the permutation is not (0, 2, 1, 3)")
    once = int_attribute(node, "transposeMiddle", 0) == 0
    g.require(once, "the kernel transposes already")
    return {transpose.output[0]: g.like(node, *node.input, transposeMiddle=1)}
