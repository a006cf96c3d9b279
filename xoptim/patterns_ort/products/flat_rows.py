"""Keeps (rows, columns) matrices between two Gemm: drops the Reshape around the nodes in
between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from xbuilder.dims import Shape
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

from ...analysis.arguments import int_attribute
from ...analysis.attention.magnitudes import NORMALIZATIONS
from ...analysis.axes import axis_of
from ...analysis.connected_nodes import ConnectedNodes
from ...analysis.neighbours import depends_on
from ...analysis.shapes import proven_equal
from ...authoring import Refusal, RewriteContext
from ...authoring.right_side import NewNode, Replacement
from ...authoring.roots import order_of
from ...catalogue import rewrite

#: most nodes computed on rows at once
_NODES = 12
#: operators of a region; a normalization only reads rows as its first input, along the last axis
_INSIDE = (*sorted(ELEMENTWISE_UNARY), *ELEMENTWISE_BINARY, "Sum", *NORMALIZATIONS)


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root="Reshape",
    behind=("RowsGemm", "SumLayerNormalization"),
    min_opset=13,
    priority="last",
)
def flat_rows(g: RewriteContext, node: NodeProto) -> Mapping[str, Replacement] | Refusal:
    """Reshape(f(Reshape(u, (a, b, c)), Reshape(v, (a, b, c))), (-1, c)) -> f(u, v).

    1. f is made of element-wise operators, normalizations of the last axis, which is known; every
       operand has the same shape, or is a scalar or a vector along the last axis;
    2. Other operands become rows, other uses get the shape back: fewer Reshape remain.

    Only neighbours are visited, 12 nodes at most; the next rewrite continues.
    """
    ranks = [g.rank_or_none(name) for name in (g.inputs(node)[0], node.output[0])]
    if 2 not in ranks or None in ranks or ranks == [2, 2]:
        return g.no("it makes no rows, it is not made of rows")
    rows = _Rows(g, node, ranks[1] == 2)
    for _ in rows.region.grow(rows.first(), _NODES):
        if rows.gain() > 0:
            return rows.written()
    return g.refuse("no Reshape goes away")


class _Rows:
    """Connected nodes whose wide results have the same shape, and become rows.

    :param root: a Reshape of one of them to rows, or from rows
    :param flat: the root is a Reshape to rows
    """

    def __init__(self, g: RewriteContext, root: NodeProto, flat: bool):
        self.g = g
        self.root = root
        self.flat = flat
        self.wide = root.input[0] if flat else root.output[0]
        self.shape: Shape = g.shape_of(self.wide)
        width = self.shape[-1] if len(self.shape) > 2 else None
        self.width = width if isinstance(width, int) and width > 1 else 0
        g.require(self.width, "the last dimension is not known, or there are less than three")
        self._wide: dict[str, bool] = {}
        self._rows: dict[str, list[NodeRecord]] = {}
        self.region = ConnectedNodes(g, self.accepts, self.wide_inputs)
        rows = self._is_reshape(g.record(root), int(flat))
        g.require(rows, "the last dimension changes")

    def first(self) -> Sequence[NodeRecord]:
        """The nodes next to the root."""
        store = self.g.store
        if not self.flat:
            return sorted(store.readers(self.wide), key=order_of)
        record = store.producers.get(self.wide)
        return () if record is None else (record,)

    def is_wide(self, name: str) -> bool:
        """Whether a result has the shape of the region."""
        if name not in self._wide:
            shape = self.g.shape_or_none(name)
            self._wide[name] = shape is not None and proven_equal(self.g, shape, self.shape)
        return self._wide[name]

    def _is_reshape(self, record: NodeRecord | None, flat: int) -> bool:
        """Whether a Reshape writes the last dimension, and its input (0) or its output (1) holds
        rows."""
        if record is None or record.key != ("", "Reshape"):
            return False
        rows = self.g.shape_or_none(record.outputs[0] if flat else record.inputs[0])
        target = self.g.value_as_shape(record.inputs[1])
        known = isinstance(target, tuple) and len(target) > 1 and target[-1] == self.width
        return known and rows is not None and len(rows) == 2 and rows[1] == self.width

    def makes_rows(self, record: NodeRecord) -> bool:
        """Whether a node is a Reshape of a wide result to rows."""
        return self._is_reshape(record, 1) and self.is_wide(record.inputs[0])

    def restores(self, name: str) -> NodeRecord | None:
        """The Reshape of rows that produces a wide result, if there is one."""
        record = self.g.store.producers.get(name)
        return record if record is not None and self._is_reshape(record, 0) else None

    def accepts(self, record: NodeRecord) -> bool:
        """Whether a node computes the same on rows."""
        if record.domain or record.op_type not in _INSIDE or len(record.outputs) > 1:
            return False
        first, *others = record.inputs
        if not self.is_wide(first) and (record.op_type in NORMALIZATIONS or not others):
            return False
        if record.op_type in NORMALIZATIONS:
            axis = axis_of(self.g, self.g.store.proto(record), len(self.shape), -1)
            return axis == len(self.shape) - 1 and all(map(self._is_small, others))
        operands = all(self.is_wide(n) or self._is_small(n) for n in record.inputs)
        return operands and self.is_wide(record.outputs[0])

    def _is_small(self, name: str) -> bool:
        shape = self.g.shape_or_none(name) if name else ()
        return shape is not None and len(shape) < 2

    def wide_inputs(self, record: NodeRecord) -> list[str]:
        """The wide results that a node reads."""
        return [n for n in record.inputs if n and self.is_wide(n)]

    def rows_of(self, name: str) -> list[NodeRecord]:
        """The Reshape nodes that turn a wide result into rows."""
        if name not in self._rows:
            self._rows[name] = [r for r in self.g.store.readers(name) if self.makes_rows(r)]
        return self._rows[name]

    def gain(self) -> int:
        """Number of removed Reshape minus the number of new ones."""
        total = 0
        for name in self.region.entries():
            if self.restores(name) is not None:
                total += not self.region.is_read_outside(name)
            else:
                total -= not self.rows_of(name)
        for record in self.region.nodes:
            rows = self.rows_of(record.outputs[0])
            total += len(rows) - self.region.is_read_outside(record.outputs[0], *rows)
        return total

    def written(self) -> dict[str, Replacement]:
        """The replacements of the results of the region."""
        g = self.g
        new, template = self._sources()
        flats: dict[str, Replacement] = {}
        for record in self.region.nodes:
            name = record.outputs[0]
            g.look_at(g.store.proto(record))
            rows = self.rows_of(name)
            g.require(len(rows) < 2, "a result becomes rows twice")
            for reshape in rows:
                g.look_at(g.store.proto(reshape))
                flats[reshape.outputs[0]] = self._flat(record, new)
            if self.region.is_read_outside(name, *rows):
                back = g.known(template, "no Reshape gives the shape back")
                flats[name] = g.like(g.store.proto(back), self._flat(record, new), back.inputs[1])
        targets = [r.inputs[1] for r in (g.record(self.root), template) if r is not None]
        made = depends_on(g, targets, [r.outputs[0] for r in self.region.nodes])
        g.require(not made, "a shape is computed from the results")
        return flats

    def _sources(self) -> tuple[dict[str, str | NewNode], NodeRecord | None]:
        """The rows of the inputs of the region, and a Reshape to copy to restore the shape."""
        g = self.g
        new: dict[str, str | NewNode] = {}
        template: NodeRecord | None = None
        for name in self.region.entries():
            reshape = self.restores(name)
            if reshape is not None:
                template = template or reshape
                g.look_at(g.store.proto(reshape))
                new[name] = reshape.inputs[0]
                continue
            rows = self.rows_of(name)
            g.require(rows or self.flat, "no Reshape makes rows")
            root = g.like(self.root, name, self.root.input[1])
            new[name] = rows[0].outputs[0] if rows else root
        return new, template

    def _flat(self, record: NodeRecord, new: dict[str, str | NewNode]) -> str | NewNode:
        """A node of the region on rows, written once."""
        name, store = record.outputs[0], self.g.store
        if name not in new:
            wide = self.wide_inputs(record)
            inputs = {n: new.get(n) or self._flat(store.producers[n], new) for n in wide}
            operands = [inputs.get(n, n) for n in record.inputs]
            node = store.proto(record)
            from_start = (
                record.op_type in NORMALIZATIONS and (int_attribute(node, "axis", -1) or 0) >= 0
            )
            new[name] = self.g.like(node, *operands, **({"axis": -1} if from_start else {}))
        return new[name]
