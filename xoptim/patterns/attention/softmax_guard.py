"""Removes zeros that replace NaN in attention weights, where the result is NaN anyway."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from ...analysis.attention.attention import weighted_product
from ...analysis.attention.projections import projected_magnitudes
from ...analysis.axes import axis_of
from ...analysis.values.masks import boolean_mask, sees_a_key
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite("default", root="IsNaN", after="Softmax")
def softmax_guard(g: RewriteContext, test: NodeProto) -> dict[str, NewNode]:
    """Where(IsNaN(w), 0, w) @ V -> w @ V, w = Softmax(scores).

    1. V holds the heads of x @ W + b, x is a normalized sequence, W and b are constants;
    2. scores are computed from x, by operations that keep them finite when x is, see
       :mod:`.magnitudes`, and from masks that are finite, or hide some keys of each
       query only, see :func:`.masks.sees_a_key`.

    If w is NaN, an element of x is not finite, every column of V has a NaN or an infinity: zeros
    @ V is NaN as well.
    """
    weights = test.input[0]
    softmax = g.before(test, "Softmax")
    rank = g.rank_of(weights)
    g.require(rank == 4 and axis_of(g, softmax, 4, -1) == 3, "it is not a Softmax of rows")
    _, weighted = weighted_product(g, weights)
    magnitudes = projected_magnitudes(g, weighted.input[1])
    finite = any(magnitudes.largest(name) is not None for name in _scores(g, softmax.input[0]))
    g.require(finite, "a score may not be finite where the values are")
    return {weighted.output[0]: g.op.MatMul(weights, weighted.input[1])}


def _scores(g: RewriteContext, name: str) -> Iterator[str]:
    """The input of Softmax, and the same before a mask that lets each query see a key is added."""
    yield name
    masked = g.producer_or_none(name, "Add")
    if masked is None:
        return
    for mask, scores in g.either_order(masked):
        found = boolean_mask(g, mask)
        if found is not None and sees_a_key(g, found[0]):
            yield scores
