"""Operations and memory of a model as formulas of its dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto, TensorProto

from xbuilder.dims import Dim, Shape, add, ceildiv, evaluate, floordiv, mul, prod, symbols
from xbuilder.dims.errors import DimensionError
from xbuilder.facts.facts import ResultFacts
from xbuilder.graph.graph import Graph
from xbuilder.nodes.attributes import attribute_value, find_attribute
from xbuilder.nodes.subgraphs import node_captures, subgraphs_of
from xbuilder.operators.domains import main_domain
from xbuilder.tensors.bits import element_type, is_known_type

Shapes = Sequence[Shape | None]
#: the multiplications of a node, None if a shape is missing
Count = Callable[[NodeProto, Shapes, Shapes], Dim | None]
_MS = "com.microsoft"


def _option(node: NodeProto, name: str, default: Any) -> Any:
    attribute = find_attribute(node, name)
    return default if attribute is None else attribute_value(attribute)


def _matmul(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    """The elements of the result times the length of the axis that is reduced."""
    left, result = inputs[0], outputs[0]
    if not left or result is None:
        return None
    is_transposed = _option(node, "transA", 0) and len(left) > 1
    return prod([*result, left[-2] if is_transposed else left[-1]])


def _blocks(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    result = outputs[0]
    return None if result is None else prod([*result, _option(node, "K", 0)])


def _conv(weight: int) -> Count:
    """The elements of the result times those of one filter."""

    def count(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
        filters, result = inputs[weight], outputs[0]
        return None if filters is None or result is None else prod([*result, *filters[1:]])

    return count


def _conv_transpose(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    x, filters = inputs[:2]
    return None if filters is None or x is None else prod([*x, *filters[1:]])


def _recurrent(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    """One product with both matrices for each step and each element of the batch."""
    x, weights, recurrence = inputs[:3]
    if x is None or weights is None or recurrence is None:
        return None
    return mul(prod(x[:2]), add(prod(weights), prod(recurrence)))


def _attention(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    """Queries by keys, then scores by values: heads * queries * keys * length of a head, twice."""
    query, key = inputs[0], inputs[1] if len(inputs) > 1 else None
    if query is None or key is None or len(query) not in (3, 4) or len(key) != len(query):
        return None
    present = outputs[1] if len(outputs) > 1 else None
    keys = key[-2] if present is None or len(present) != 4 else present[2]
    return prod([2, *query, keys])


def _packed_attention(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    """One product gives queries, keys and values, side by side; then those of the attention."""
    x, weights = inputs[:2]
    present = outputs[1] if len(outputs) > 1 else None
    if x is None or weights is None or len(x) != 3 or len(weights) != 2:
        return None
    keys = x[1] if present is None or len(present) != 5 else present[3]
    queries, _, values = _option(node, "qkv_hidden_sizes", [floordiv(weights[1], 3)] * 3)
    attended = mul(prod([*x[:2], keys]), add(queries, values))
    return add(prod([*x, weights[1]]), attended)


def _einsum(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    """The product of the sizes of all its letters, as one loop."""
    equation = str(_option(node, "equation", "")).replace(" ", "")
    terms = equation.split("->")[0].split(",")
    sizes: dict[str, Dim] = {}
    for term, shape in zip(terms, inputs, strict=False):
        if shape is None or len(term) != len(shape) or not term.isalpha():
            return None
        sizes.update(zip(term, shape, strict=True))
    return prod(sizes.values()) if len(terms) > 1 else 0


_COUNTS: dict[tuple[str, str], Count] = {
    **dict.fromkeys(
        [("", op) for op in ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul")], _matmul
    ),
    **dict.fromkeys(
        [
            (_MS, op)
            for op in (
                "DynamicQuantizeMatMul",
                "FusedGemm",
                "FusedMatMul",
                "GemmFastGelu",
                "MatMulIntegerToFloat",
                "QGemm",
                "TransposeMatMul",
            )
        ],
        _matmul,
    ),
    (_MS, "MatMulNBits"): _blocks,
    ("", "Conv"): _conv(1),
    ("", "ConvInteger"): _conv(1),
    ("", "DeformConv"): _conv(1),
    ("com.microsoft.nchwc", "Conv"): _conv(1),
    ("", "QLinearConv"): _conv(3),
    (_MS, "QLinearConv"): _conv(3),
    (_MS, "FusedConv"): _conv(1),
    (_MS, "NhwcFusedConv"): _conv(1),
    ("", "ConvTranspose"): _conv_transpose,
    **dict.fromkeys([("", op) for op in ("LSTM", "GRU", "RNN")], _recurrent),
    ("", "Attention"): _attention,
    **dict.fromkeys([(_MS, "Attention"), (_MS, "QAttention")], _packed_attention),
    (_MS, "MultiHeadAttention"): _attention,
    (_MS, "GroupQueryAttention"): _attention,
    ("", "Einsum"): _einsum,
}


@dataclass
class Costs:
    """The cost of one run of a model.

    :param operations: multiplications and additions of the products, convolutions, attentions and
        recurrent networks, by operator: a number, or a formula of the dimensions
    :param peak: bytes of the results that live at the same time, weights excepted, at most
    :param peak_result: the result that is computed then
    :param uncounted: operators whose shapes are not known, and those that have bodies
    :param sizes: sizes the peak is computed for

    Example::

        >>> costs = Costs({"MatMul": "8*n", "Gemm": 100}, peak="4*n", sizes={"n": 10})
        >>> costs.total, costs.at(costs.total), costs.at(costs.peak)
        ('8*n+100', 180, 40)
    """

    operations: dict[str, Dim] = field(default_factory=dict)
    peak: Dim = 0
    peak_result: str = ""
    uncounted: Counter[str] = field(default_factory=Counter)
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> Dim:
        """All the operations."""
        total: Dim = 0
        for count in self.operations.values():
            total = add(total, count)
        return total

    def at(self, dim: Dim) -> int | None:
        """The value of a formula for the sizes, None if one is missing.

        :param dim: a number or a formula
        """
        try:
            return evaluate(dim, self.sizes)
        except DimensionError:
            return None


def costs_of(graph: Graph, sizes: Mapping[str, int] | None = None) -> Costs:
    """The operations and the memory of one run of a model.

    Two operations are counted for one multiplication and its addition. Bodies of If, Loop and Scan
    are not counted. A result is freed after its last reader: the peak is where the bytes of the
    living ones are the most, for *sizes*, 1 for the dimensions that have none.

    :param graph: a graph whose shapes are inferred
    :param sizes: sizes of its dimensions

    ::

        builder = GraphBuilder("model.onnx", infer_shapes_options=True)
        costs = costs_of(builder.graph, {"batch": 8})
        print(costs.total, costs.at(costs.total))
    """
    found = Costs(sizes=dict(sizes or {}))
    for node in graph.nodes:
        name = node.op_type if not main_domain(node.domain) else f"{node.domain}.{node.op_type}"
        if any(subgraphs_of(node)):
            found.uncounted[name] += 1
        inputs, outputs = ([_shape(graph, n) for n in names] for names in (node.input, node.output))
        number = operations_of(node, inputs, outputs)
        if number is None:
            found.uncounted[name] += 1
        elif (main_domain(node.domain), node.op_type) in _COUNTS:
            found.operations[name] = add(found.operations.get(name, 0), number)
    _add_peak(graph, found)
    return found


def operations_of(node: NodeProto, inputs: Shapes, outputs: Shapes) -> Dim | None:
    """The multiplications and additions of the products of one node, 0 if it computes none.

    :param node: a node
    :param inputs: the shapes of its inputs
    :param outputs: the shapes of its outputs
    :return: a number or a formula of the dimensions, None if a shape is missing

    ::

        node = oh.make_node("MatMul", ["x", "w"], ["y"])
        assert operations_of(node, [(2, 3), (3, 4)], [(2, 4)]) == 48
    """
    count = _COUNTS.get((main_domain(node.domain), node.op_type))
    if count is None:
        return 0
    number = count(node, inputs, outputs)
    return None if number is None else mul(2, number)


def _shape(graph: Graph, name: str) -> Shape | None:
    return graph.facts[name].shape if name else None


def _bytes_of(facts: ResultFacts) -> Dim | None:
    """The bytes of a tensor."""
    if facts.shape is None or not facts.type:
        return None
    if facts.type == TensorProto.STRING or not is_known_type(facts.type):
        return None
    return ceildiv(mul(prod(facts.shape), element_type(facts.type).bits), 8)


def _add_peak(graph: Graph, found: Costs) -> None:
    """Adds the largest sum of the bytes of the results that live at the same time."""
    nodes = [node for node in graph.nodes if node.op_type != "Constant"]
    last = {name: i for i, node in enumerate(nodes) for name in _reads(node)}
    last.update((name, len(nodes)) for name in graph.output_names)
    numbers: dict[str, int] = {}
    alive: dict[str, Dim] = {}
    largest: list[Dim] = []
    current, best = 0, -1
    for i, node in enumerate(nodes):
        for name in filter(None, node.output):
            size = _bytes_of(graph.facts[name])
            if size is not None:
                alive[name], numbers[name] = size, _usual(size, found.sizes)
                current += numbers[name]
        if current > best:
            best, largest = current, list(alive.values())
            found.peak_result = next(filter(None, node.output), "")
        for name in {*_reads(node), *node.output}:
            if last.get(name, i) <= i and name in alive:
                del alive[name]
                current -= numbers[name]
    for size in largest:
        found.peak = add(found.peak, size)


def _usual(size: Dim, sizes: Mapping[str, int]) -> int:
    """A formula for the sizes that are given, 1 for the others; 0 if it has no value then."""
    try:
        return evaluate(size, {name: sizes.get(name, 1) for name in symbols(size)})
    except DimensionError:
        return 0


def _reads(node: NodeProto) -> Iterator[str]:
    yield from (name for name in node.input if name)
    yield from node_captures(node)
