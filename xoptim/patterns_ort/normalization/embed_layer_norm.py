"""Sum of embeddings, then LayerNormalization, the first layer of a transformer:
EmbedLayerNormalization."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Shape
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import CARRIERS

from ...analysis.axes import axis_of
from ...analysis.constants import cheap_value
from ...analysis.shapes import padded, proven_equal
from ...authoring import NewNode, NewResult, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import register_pattern
from ...catalogue.speed_gated import SpeedGatedRewrite
from ..kernels import require_kernel
from .skip_layer_norm import normalization_vectors


class Lookup(NamedTuple):
    """Rows of a table, one for each index.

    :param table: a constant, of shape (any number, length of the rows)
    :param rows: number of rows
    :param indices: integers, of shape (batch, sequence), (1, sequence) or (sequence,)
    """

    table: str
    rows: int
    indices: str


@register_pattern(
    "onnxruntime",
    roots=("LayerNormalization",),
    after=("Add",),
    priority="first",
    precision="rounding",
)
class EmbedLayerNormalizationPattern(SpeedGatedRewrite):
    """LayerNormalization(w[i] + p[j] + t[k], s, c) -> EmbedLayerNormalization(i, k, w, p, t, s, c).

    1. w, p, t are constant tables of rows, which Gather reads; there may be two of them; i and k
       have the shape (batch, sequence), j has it, or (1, sequence), or (sequence,);
    2. the operator reads 32 bits and refuses negative indices: they become Cast(Mod(i, rows));
    3. the sum of two tables used elsewhere becomes the third output;
    4. the model is not meant for a processor where the kernel was measured slower, a CPU, or
       `on_cpu=True`.
    """

    lift = "on_cpu"
    needs_open_gate = True

    def __init__(self, on_cpu: bool = False, verbose: int = 0):
        super().__init__(on_cpu, verbose)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
        """Checks the measures, the tables, the shapes and the scale, then writes the operator."""
        self.require_open_gate(g)
        add = g.before(node, "Add")
        total = add.output[0]
        lookups = _lookups(g, add)
        shape = g.shape_of(total)
        g.require(len(shape) == 3, "the sum does not have three dimensions")
        parameters = normalization_vectors(g, node, shape)
        g.require(len(parameters) == 2, "there is no bias")
        words, positions, segments = _roles(g, lookups, shape[:2])
        freed = g.is_used_only_by(total, node)
        g.require(freed or segments is None, "the sum of three tables is used elsewhere")
        require_kernel(g, "EmbedLayerNormalization", words.table, index=2)
        inputs: list[Operand] = [
            _indices(g, words),
            segments and _indices(g, segments),
            words.table,
            positions.table,
            segments and segments.table,
            *parameters,
            None,
            _indices(g, positions),
        ]
        epsilon = g.get_attribute_with_default(node, "epsilon", 1e-5)
        count, missing = (2, (1,)) if freed else (3, (1,))
        options = {"epsilon": epsilon}
        new = NewNode(
            "EmbedLayerNormalization", inputs, options, MICROSOFT, outputs=count, missing=missing
        )
        return {node.output[0]: new[0]} if freed else {node.output[0]: new[0], total: new[2]}


def _lookups(g: RewriteContext, add: NodeProto) -> list[Lookup]:
    """The two or three terms of a sum; refuses unless all are rows of tables."""
    terms = list(add.input)
    for i, name in enumerate(terms):
        inner = g.producer_or_none(name, "Add")
        if inner is not None and g.is_used_only_by(name, add):
            g.look_at(inner)
            terms[i : i + 1] = inner.input
            break
    return [_lookup(g, name) for name in terms]


def _lookup(g: RewriteContext, name: str) -> Lookup:
    gather = g.before(name, "Gather")
    table, indices = gather.input
    shape = g.known(g.get_constant_shape(table), "a table is not constant")
    by_row = len(shape) == 2 and axis_of(g, gather, 2, 0) == 0
    g.require(by_row, "Gather does not read rows")
    return Lookup(table, shape[0], indices)


def _roles(
    g: RewriteContext, lookups: list[Lookup], shape: Shape
) -> tuple[Lookup, Lookup, Lookup | None]:
    """Words, positions and segments: only positions may be the same for the whole batch."""
    found = {x: g.shape_of(x.indices) for x in lookups}
    shared = [x for x in lookups if not proven_equal(g, found[x], shape)]
    for x in shared:
        expected = (1, *shape[1:])
        g.require(proven_equal(g, padded(found[x], 2), expected), "the indices are broadcast")
    g.require(len(shared) < 2, "two tables are broadcast")
    positions = shared[0] if shared else lookups[-1]
    words, *others = (x for x in lookups if x is not positions)
    return words, positions, others[0] if others else None


def _indices(g: RewriteContext, lookup: Lookup) -> Operand:
    """Indices as the operator requires them: 32 bits, not negative."""
    kind = g.type_of(lookup.indices)
    known: Operand = lookup.indices
    if not _positive(g, lookup.indices):
        dtype = np.int64 if kind == TensorProto.INT64 else np.int32
        known = g.op.Mod(known, np.array(lookup.rows, dtype))
    if g.rank_of(lookup.indices) == 1:
        known = g.op.Unsqueeze(known, axes=[0])
    return known if kind == TensorProto.INT32 else g.op.Cast(known, to=TensorProto.INT32)


def _positive(g: RewriteContext, name: str) -> bool:
    """Whether integers are elements of a constant without negative number."""
    while (node := g.producer_or_none(name, *CARRIERS)) is not None:
        name = node.input[0]
    value = cheap_value(g, name)
    return value is not None and bool((value >= 0).all())
