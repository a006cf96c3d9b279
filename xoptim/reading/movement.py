"""Arithmetic of the operators that move elements, and how to read their arguments in any opset.

Unknown is always None: a permutation that refers to an attribute of a function, axes that are not
constant, an axis out of range. Nothing here changes a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, exact_div, prod, prove_equal, prove_ge
from xbuilder.nodes.protos import find_attribute

if TYPE_CHECKING:
    from ..api.queries import GraphQueries

Ints = tuple[int, ...]


# -- neighbours


def producer(g: GraphQueries, name: str, *op_types: str) -> NodeProto | None:
    """The node giving a result if it is one of these operators of the main domain.

    Cost: no protobuf field is read. Example: `producer(g, node.input[0], "Squeeze", "Unsqueeze")`.
    """
    record = g.store.producers.get(name)
    if record is None or record.op_type not in op_types or record.domain:
        return None
    return g.store.proto(record)


def kept(g: GraphQueries, node: NodeProto) -> list[NodeProto]:
    """The node of a chain `apply` must return again, when something else than its successor uses
    it."""
    return [node] if g.is_used_more_than_once(node.output[0]) else []


# -- arguments


def int_values(g: GraphQueries, name: str) -> Ints | None:
    """Content of a constant vector of integers, None if it is something else."""
    if not name:
        return None
    value = g.value_as_shape(name)
    if value is None:
        array = g.get_computed_constant(name)
        if array is None or array.ndim != 1 or array.dtype.kind != "i":
            return None
        return tuple(array.tolist())
    if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
        return value  # type: ignore[return-value]
    return None


def optional_input(node: NodeProto, index: int) -> str:
    """Name of an input, an empty string if it is missing."""
    return node.input[index] if index < len(node.input) else ""


def int_attribute(node: NodeProto, name: str, default: int) -> int | None:
    """Integer attribute, None if it refers to an attribute of the function holding the node."""
    att = find_attribute(node, name)
    if att is None:
        return default
    return None if att.ref_attr_name else att.i


def perm_of(g: GraphQueries, node: NodeProto, rank: int | None = None) -> Ints | None:
    """Permutation of a Transpose; a missing one reverses the axes, which needs the rank.

    :param rank: number of dimensions if the caller knows it, otherwise facts are used
    """
    att = find_attribute(node, "perm")
    if att is not None:
        perm = att.ints[:]
        valid = not att.ref_attr_name and sorted(perm) == list(range(len(perm)))
        return tuple(perm) if valid else None
    if rank is None:
        if not g.has_rank(node.input[0]):
            return None
        rank = g.get_rank(node.input[0])
    return tuple(range(rank - 1, -1, -1))


def axes_of(g: GraphQueries, node: NodeProto) -> Ints | None:
    """Axes as written in a Squeeze, an Unsqueeze: an attribute, or a constant second input.

    The axes of a Squeeze without any are those of the dimensions 1, if every dimension is known.
    """
    att = find_attribute(node, "axes")
    if att is not None:
        return None if att.ref_attr_name else tuple(att.ints[:])
    name = optional_input(node, 1)
    if name:
        return int_values(g, name)
    if node.op_type == "Squeeze" and g.has_shape(node.input[0], full=True):
        return tuple(i for i, d in enumerate(g.get_shape(node.input[0])) if d == 1)
    return None


def normalized(axes: Iterable[int], rank: int | None) -> Ints | None:
    """Distinct axes in `[0, rank[`, in the order given; an unknown rank accepts non negative ones.

    >>> normalized((-1, 0), 3)
    (2, 0)
    """
    found: list[int] = []
    for axis in axes:
        if rank is not None:
            if not -rank <= axis < rank:
                return None
            axis %= rank
        if axis < 0 or axis in found:
            return None
        found.append(axis)
    return tuple(found)


def known_rank(g: GraphQueries, name: str) -> int | None:
    """Rank of a result, None if it is not known."""
    return g.builder.facts[name].known_rank()


# -- permutations


def compose(first: Sequence[int], second: Sequence[int]) -> Ints:
    """Permutation of `Transpose(Transpose(x, first), second)`."""
    return tuple(first[p] for p in second)


def inverse(perm: Sequence[int]) -> Ints:
    """Permutation that cancels another one: where each axis of the input goes."""
    result = [0] * len(perm)
    for i, p in enumerate(perm):
        result[p] = i
    return tuple(result)


# -- dimensions


def equal_dims(g: GraphQueries) -> Callable[[Dim, Dim], bool]:
    """A function telling if two dimensions are proven equal."""
    constraints = g.get_registered_constraints()
    return lambda a, b: a == b or prove_equal(a, b, constraints) is True


def positive(g: GraphQueries, dim: Dim) -> bool:
    """Tells if a dimension is proven to be at least 1."""
    if isinstance(dim, int):
        return dim > 0
    return prove_ge(dim, 1, g.get_registered_constraints()) is True


def ones_difference(
    before: Sequence[Any], after: Sequence[Any], same: Callable[[Any, Any], bool]
) -> tuple[str, Ints] | None:
    """How to go from a shape to another one by only adding, or only removing, dimensions 1.

    :param before: dimensions, 1 is an integer
    :param after: dimensions
    :param same: tells if two dimensions are equal
    :return: `("Squeeze", axes)`, `("Unsqueeze", axes)`, `("Identity", ())`, or None

    >>> ones_difference(("a", 1, 3), ("a", 3), lambda x, y: x == y)
    ('Squeeze', (1,))
    """
    if len(before) > len(after):
        axes = _extra_ones(before, after, same)
        return None if axes is None else ("Squeeze", axes)
    axes = _extra_ones(after, before, same)
    if axes is None:
        return None
    return ("Unsqueeze", axes) if axes else ("Identity", ())


def _extra_ones(
    long: Sequence[Any], short: Sequence[Any], same: Callable[[Any, Any], bool]
) -> Ints | None:
    """Positions of the ones of *long* that are not in *short*, None if something else differs."""
    axes: list[int] = []
    position = 0
    for i, dim in enumerate(long):
        if position < len(short) and same(dim, short[position]):
            position += 1
        elif isinstance(dim, int) and dim == 1:
            axes.append(i)
        else:
            return None
    return tuple(axes) if position == len(short) else None


def shape_of(g: GraphQueries, name: str) -> Shape | None:
    """Shape of a result, None if it is not known."""
    return g.builder.facts[name].shape


#: operators applying a function to each element of their first input; other inputs are scalars
ELEMENTWISE_UNARY = frozenset(
    (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil"),
        *("Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid"),
        *("HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not"),
        *("Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus"),
        *("Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"),
    )
)

#: operators of two inputs broadcast together
ELEMENTWISE_BINARY = (
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Xor",
)


def scalar_index(g: GraphQueries, name: str) -> int | None:
    """Value of a constant holding one integer, of shape `()` or `(1,)`, None otherwise."""
    value = g.value_as_shape(name) if name else None
    if isinstance(value, tuple):
        value = value[0] if len(value) == 1 else None
    return value if isinstance(value, int) else None


def axis_of(
    g: GraphQueries, node: NodeProto, rank: int | None, default: int | None = 0
) -> int | None:
    """Attribute axis in `[0, rank[`, None if it is missing without default, or not valid.

    :param rank: rank the axis refers to; when it is unknown a negative axis is not accepted
    """
    att = find_attribute(node, "axis")
    if att is not None and att.ref_attr_name:
        return None
    axis = default if att is None else att.i
    found = None if axis is None else normalized((axis,), rank)
    return None if found is None else found[0]


def padded(shape: Shape, rank: int) -> Shape:
    """Shape with dimensions 1 added before, as broadcasting does."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def consumers_of(g: GraphQueries, name: str, op_type: str) -> list[NodeProto]:
    """Nodes of one operator of the main domain whose first input is a result, in graph order."""
    rows = [
        r
        for r in g.store.readers(name)
        if r.op_type == op_type and not r.domain and r.inputs[0] == name
    ]
    rows.sort(key=lambda r: r.order)
    return [g.store.proto(r) for r in rows]


def proven_equal(g: GraphQueries, a: Shape, b: Shape) -> bool:
    """Tells if two shapes are proven to be equal."""
    same = equal_dims(g)
    return len(a) == len(b) and all(map(same, a, b))


def reshaped(g: GraphQueries, node: NodeProto) -> Shape | None:
    """Shape a Reshape gives, None if it is not known *for every size*, null ones included.

    An element of the second input that is null copies a dimension of the first one. `x[4, 2, a]`
    reshaped to `(a, -1)` is `(a, 8)`, but `(4, 0)` when `a` is 0; `x[a, 1, b]` reshaped to `(a, b)`
    is `(0, 1)` when both are 0. It does not matter when the copied dimension is null at the same
    time, when there is none to copy or when the number of elements would not be the same any more:
    the model is then not valid.
    """
    shape = shape_of(g, node.output[0])
    content = g.value_as_shape(node.input[1])
    if shape is None or not isinstance(content, tuple):
        return shape
    if all(isinstance(d, int) for d in content) or int_attribute(node, "allowzero", 0):
        return shape
    source = shape_of(g, node.input[0])
    if source is None:
        return shape if all(d == -1 or positive(g, d) for d in content) else None
    pairs = list(zip(content, source, strict=False))
    doubtful = [d for d, s in pairs if isinstance(d, str) and not _safe(g, d, s)]
    if not doubtful:
        return shape
    nullable = [d for d, s in pairs if not positive(g, s if d == 0 else d)]
    if len(nullable) > 1 or -1 in content:
        return None
    total = prod(s if d == 0 else d for d, s in zip_longest(content, source[: len(content)]))
    return shape if equal_dims(g)(total, prod(source)) else None


def _safe(g: GraphQueries, dim: Dim, copied: Dim) -> bool:
    """Tells if a dimension cannot be null, or if the dimension it would copy is null as well."""
    if copied == 0 or positive(g, dim) or exact_div(copied, dim) is not None:
        return True
    factor = exact_div(dim, copied)
    return factor is not None and positive(g, factor)


def moved_shape(g: GraphQueries, name: str) -> Shape | None:
    """Shape of a result, the one that holds for every size if a Reshape gives it."""
    node = producer(g, name, "Reshape")
    return shape_of(g, name) if node is None else reshaped(g, node)
