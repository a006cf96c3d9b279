"""Outlines causal masks, which compare positions of keys with those of queries."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.constants import scalar_value
from ...analysis.values.masks import causal_positions
from ...analysis.values.positions import first_position
from ...authoring import NewResult, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

_MASKS = ("intermediate::CausalMask", "intermediate::ShiftedCausalMask")


@rewrite("default", root=("LessOrEqual", "Greater"), prepares=_MASKS)
def function_causal_mask(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """columns <= rows -> CausalMask(columns, rows), where both are 0, 1, 2, ...

    1. columns are along the last axis, rows along the one before;
    2. columns > rows is its opposite, with the attribute `hidden`;
    3. something is added to the rows: ShiftedCausalMask.
    """
    columns, rows = node.input
    found = causal_positions(g, columns, rows)
    shift = g.known(found, "they are not positions of keys and queries")
    name = "CausalMask" if shift == 0 else "ShiftedCausalMask"
    hidden = int(node.op_type == "Greater")
    return g.outline(name, [columns, rows], [node.output[0]], hidden=hidden)


@rule("default", "y = rows * n + columns; y", prepares="intermediate::CausalMaskMulAdd")
def function_causal_mask_mul_add(
    g: RewriteContext, rows: str, n: str, columns: str, y: str
) -> dict[str, NewResult]:
    """rows * n + columns -> CausalMaskMulAdd(rows, n, columns), where both are 0, 1, 2, ...

    1. n is a constant of one element;
    2. dimensions 1 may be added to the positions, nothing to their values.
    """
    counted = scalar_value(g, n) is not None and first_position(g, columns) == 0
    counted = counted and first_position(g, rows) == 0
    g.require(counted, "they are not positions, one of them multiplied")
    return g.outline("CausalMaskMulAdd", [rows, n, columns], [y])
