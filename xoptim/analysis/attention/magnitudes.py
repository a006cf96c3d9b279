"""Upper bounds on absolute values of results, proven from a normalization they are computed from.

A normalized sequence, `(batch, sequence, length)`, holds NaN or is bounded by its scale and its
bias. Products, sums and moves of it are bounded by the same operations on the bounds. The sequences
of a batch are never mixed: results computed from one are finite when it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Shape
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import INDICES, RESHAPES

from ...authoring.context import RewriteContext
from ...authoring.outlining import INTERMEDIATE
from ..axes import axis_of, cut_axes
from ..constants import cheap_value, is_cheap
from ..permutations import perm_of
from ..shapes import proven_equal
from ..weights.weights import largest_in, largest_norm
from .rotary import HALF_ROTARY, INTERLEAVED_ROTARY
from .rotary_tables import COS_SIN_CACHE

#: operators that normalize the last axis, or more
NORMALIZATIONS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
#: most results between a normalization and a result
_MOST = 64
#: bound of integers
_INTEGERS = 2.0**63
_FLOAT_MAX = float(np.finfo(np.float32).max)
#: bound of what does not overflow in float16: roundings add up to less than the rest
HALF_LIMIT = 60000.0
_LIMITS = {int(TensorProto.FLOAT): _FLOAT_MAX, int(TensorProto.FLOAT16): HALF_LIMIT}
#: the lowest float absorbs any number that is not larger
ABSORBED = 2.0**100
#: the sum of the squares of such numbers does not overflow
_SQUARED = 2.0**44

Found = float | None


class Magnitudes:
    """Upper bounds on the absolute values of results, when they are finite.

    :param source: a normalized sequence, the only one that may hold NaN; its elements may be the
        rows of a matrix
    :param batch: the number of sequences, the first dimension of *source* by default
    """

    def __init__(self, g: RewriteContext, source: str, batch: Shape | None = None):
        self._g, self._source = g, source
        self._batch = batch or g.shape_of(source)[:1]
        #: matrices whose rows are the elements of the sequences
        self._matrices = {source} if g.rank_of(source) == 2 else set[str]()
        self._known: dict[str, Found] = {}
        #: results computed from the source
        self._from_source = {source}

    def largest(self, name: str) -> Found:
        """A bound that no element exceeds, for each sequence of the source that is finite; None if
        none is proven.

        Cost: bounded, each weight on the way is read once.
        """
        if name not in self._known:
            self._known[name] = None  # unless proven: there may be too many results
            if len(self._known) <= _MOST:
                found = self._computed(name)
                limit = _LIMITS.get(self._g.type_or_none(name) or 0, _FLOAT_MAX)
                self._known[name] = found if found is None or found <= limit else None
        return self._known[name]

    def all(self, names: Iterable[str]) -> list[float] | None:
        """The bounds of several results, None if one is unknown."""
        rows = []
        for name in filter(None, names):
            found = self.largest(name)
            if found is None:
                return None
            rows.append(found)
        return rows

    def _computed(self, name: str) -> Found:
        g = self._g
        kind = g.type_or_none(name)
        if kind in INDICES:
            return _INTEGERS
        if kind not in _LIMITS:
            return None
        if g.is_constant(name):
            return largest_in(g, name)  # nan bounds nothing
        record = g.store.producers.get(name)
        rule = None if record is None else _RULES.get(record.key)
        if record is None or rule is None:
            return None
        node = g.store.proto(record)
        found = rule(self, node)
        if found is None or name == self._source:
            return found
        if self._from_source.intersection(node.input):
            self._from_source.add(name)
            return found if self._keeps_sequences(node) else None
        return found

    def _keeps_sequences(self, node: NodeProto) -> bool:
        """Whether each part of the result is computed from one sequence of the source."""
        if node.op_type in RESHAPES:
            return True  # the elements are in the same order
        g = self._g
        if node.op_type == "Transpose" and (perm_of(g, node) or (1,))[0] != 0:
            return False
        names = [name for name in node.input if name in self._from_source]
        if g.rank_or_none(names[0]) == 2:
            ranks = [g.rank_or_none(name) for name in (*node.input, node.output[0]) if name]
            rows = names[0] in self._matrices or self._is_of_rows(names[0])
            known = all(rank is not None and rank <= 2 for rank in ranks)
            straight = not g.get_attribute_with_default(node, "transA", 0)
            keeps = rows and straight and names == node.input[:1] and known and ranks[-1] == 2
            self._matrices.update(node.output if keeps else ())
            return keeps
        shapes = [g.shape_or_none(name) or () for name in (*names, node.output[0])]
        same = len(set(map(len, shapes))) == 1 and len(shapes[0]) >= 3
        return same and all(proven_equal(g, s[:1], self._batch) for s in shapes)

    def _is_of_rows(self, name: str) -> bool:
        """Whether a matrix holds the rows of the sequences."""
        g = self._g
        reshape = g.producer_or_none(name, "Reshape")
        before = g.shape_or_none(reshape.input[0]) if reshape else None
        after = g.shape_or_none(name)
        if before is None or after is None or len(before) < 3:
            return False
        return proven_equal(g, (before[0], before[-1]), (*self._batch, after[1]))

    def moved(self, node: NodeProto) -> Found:
        """Moves of the first operand: the same bound."""
        return self.largest(node.input[0])

    def cut(self, node: NodeProto) -> Found:
        """A part of the first operand, unless it is cut along the first axis: the same bound."""
        axes = cut_axes(self._g, node, _rank(self._g, node))
        return self.largest(node.input[0]) if axes and 0 not in axes else None

    def table(self, node: NodeProto) -> Found:
        """Some rows of a small constant, or others than those of the first axis: the bound of the
        data."""
        name = node.input[0]
        along = axis_of(self._g, node, self._g.rank_or_none(name))
        return self.largest(name) if along or is_cheap(self._g, name) else None

    def joined(self, node: NodeProto) -> Found:
        """Operands joined along another axis than the first one: the largest bound."""
        axis = axis_of(self._g, node, _rank(self._g, node), None)
        found = self.all(node.input) if axis else None
        return max(found) if found else None

    def chosen(self, node: NodeProto) -> Found:
        """Elements of any operand but the first one: the largest bound."""
        found = self.all(node.input[1:])
        return max(found) if found else None

    def sum(self, node: NodeProto) -> Found:
        """The sum of the bounds; a number that hides a score absorbs the score."""
        found = sorted(self.all(node.input) or [])
        if not found or sum(found[:-1]) > ABSORBED:
            return None
        return min(sum(found), _FLOAT_MAX)

    def product(self, node: NodeProto) -> Found:
        """The product of the bounds."""
        found = self.all(node.input)
        return _computable(math.prod(found)) if found else None

    def quotient(self, node: NodeProto) -> Found:
        """The bound divided by a small constant that is not null."""
        g, (x, name) = self._g, node.input
        value = cheap_value(g, name)
        smallest = 0.0 if value is None else float(np.abs(value).min(initial=np.inf))
        found = self.largest(x) if smallest > 0 else None
        return None if found is None else _computable(found / smallest)

    def angle(self, node: NodeProto) -> Found:
        """A cosine or a sine: 1."""
        return None if self.all(node.input) is None else 1.0

    def turned(self, node: NodeProto) -> Found:
        """A rotary embedding: the bound of the first operand, times those of the cosines and
        sines."""
        angles = node.input[2:4] if node.domain == MICROSOFT else node.input[1:3]
        found = self.all((node.input[0], *angles))
        return _computable(found[0] * sum(found[1:])) if found else None

    def normalized(self, node: NodeProto) -> Found:
        """A normalization: the square root of the length times the largest scale, plus the largest
        bias."""
        g, shape = self._g, self._g.shape_or_none(node.output[0])
        if not shape or axis_of(g, node, len(shape), -1) != len(shape) - 1:
            return None
        found = self.all(node.input[1:])
        if not self._is_normalizable(node) or not found or not isinstance(shape[-1], int):
            return None
        return _computable(math.sqrt(shape[-1]) * found[0] + sum(found[1:]))

    def _is_normalizable(self, node: NodeProto) -> bool:
        """Whether a normalization returns no NaN, or is the source: its sum of squares is finite,
        its divisor is not 0."""
        if node.output[0] == self._source:
            return True
        largest = self.largest(node.input[0])
        positive = self._g.get_attribute_with_default(node, "epsilon", 1e-5) > 0
        return positive and largest is not None and largest <= _SQUARED

    def matmul(self, node: NodeProto) -> Found:
        """A product of matrices: as many products as the last dimension of the left operand, plus
        the bias of a Gemm. In float16, which overflows earlier, it is the norm of a row times that
        of a column, if the right operand is a constant matrix."""
        g = self._g
        given = g.get_attributes_with_default(node, alpha=1.0, beta=1.0, transA=0)
        shape, found = g.shape_or_none(node.input[0]), self.all(node.input)
        if given["transA"] or not shape or not isinstance(shape[-1], int) or not found:
            return None
        product = shape[-1] * found[0] * found[1]
        right, half = node.input[1], g.type_or_none(node.output[0]) == TensorProto.FLOAT16
        if half and g.is_constant(right) and g.rank_or_none(right) == 2:
            axis = g.get_attribute_with_default(node, "transB", 0)
            row = self._norm_of_rows(node.input[0], shape[-1])
            product = min(product, row * largest_norm(g, right, axis))
        if half and product > HALF_LIMIT:
            return None  # it overflows before alpha makes it smaller
        return _scaled_sum(product, given["alpha"], sum(found[2:]), given["beta"])

    def _norm_of_rows(self, name: str, length: int) -> float:
        """A bound on the norm of each row, of known length, of a result that is bounded."""
        g, node = self._g, self._g.producer_or_none(name, "Reshape", *NORMALIZATIONS)
        while node is not None and node.op_type == "Reshape":
            before = g.shape_or_none(node.input[0])
            if not before or before[-1] != length:
                break
            name = node.input[0]
            node = g.producer_or_none(name, "Reshape", *NORMALIZATIONS)
        found = None if node is None or node.op_type == "Reshape" else self.all(node.input[1:])
        largest = sum(found) if found else self.largest(name)
        return math.inf if largest is None else math.sqrt(length) * largest

    def fused_matmul(self, node: NodeProto) -> Found:
        """A product of matrices, which may be transposed, times a number."""
        known = {"alpha": 1.0, **dict.fromkeys(("transA", "transBatchA", "transBatchB"), 0)}
        given = self._g.get_attributes_with_default(node, **known)
        shape, found = self._g.shape_or_none(node.input[0]), self.all(node.input)
        if given["transBatchA"] or given["transBatchB"] or not found or len(shape or ()) < 2:
            return None
        length = shape[-2 if given["transA"] else -1] if shape else None
        # onnxruntime does not write the result of a product of no element
        if not isinstance(length, int) or length < 1:
            return None
        return _scaled_sum(length * found[0] * found[1], given["alpha"])


def _rank(g: RewriteContext, node: NodeProto) -> int | None:
    return g.rank_or_none(node.output[0])


def _computable(value: float) -> Found:
    """The number, or None if a result as large may overflow once rounded."""
    return value if value <= ABSORBED else None


def _scaled_sum(product: float, alpha: float, bias: float = 0.0, beta: float = 1.0) -> Found:
    """A bound of `alpha * product + beta * bias`, None if that or the product may overflow."""
    known = _computable(product)
    return None if known is None else _computable(known * abs(alpha) + bias * abs(beta))


_Rule = Callable[[Magnitudes, NodeProto], Found]
_MAIN: dict[str, _Rule] = {
    **dict.fromkeys((*RESHAPES, "Cast", "Expand", "Neg", "Transpose"), Magnitudes.moved),
    **dict.fromkeys(("Slice", "Split"), Magnitudes.cut),
    **dict.fromkeys(("Add", "Sub"), Magnitudes.sum),
    **dict.fromkeys(("Cos", "Sin"), Magnitudes.angle),
    **dict.fromkeys(("Gemm", "MatMul"), Magnitudes.matmul),
    **dict.fromkeys(NORMALIZATIONS, Magnitudes.normalized),
    "Concat": Magnitudes.joined,
    "Div": Magnitudes.quotient,
    "Gather": Magnitudes.table,
    "Mul": Magnitudes.product,
    "RotaryEmbedding": Magnitudes.turned,
    "Where": Magnitudes.chosen,
}
_RULES: dict[tuple[str, str], _Rule] = {
    **{("", op_type): rule for op_type, rule in _MAIN.items()},
    (MICROSOFT, "FusedMatMul"): Magnitudes.fused_matmul,
    (MICROSOFT, "RotaryEmbedding"): Magnitudes.turned,
    (INTERMEDIATE, COS_SIN_CACHE): Magnitudes.angle,
    (INTERMEDIATE, HALF_ROTARY): Magnitudes.turned,
    (INTERMEDIATE, INTERLEAVED_ROTARY): Magnitudes.turned,
}
