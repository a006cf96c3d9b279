"""If whose branches only return constants becomes Where, Not or Cast."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from xbuilder.nodes.attributes import find_attribute

from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite

#: most elements of the constants a Where chooses from; both are in the model already
_LIMIT = 64
#: types Where chooses between, in every runtime
_TYPES = ("float32", "float64", "int32", "int64")
_UNKNOWN = "a branch gives something else than constants"


@rewrite("default", root="If", min_opset=9)
def constant_branches(g: RewriteContext, node: NodeProto) -> list[Replacement]:
    """If(c, then 2, else 3) -> Where(c, 2, 3), the branches only return constants.

    1. Booleans: If(c, then True, else False) -> c, If(c, then False, else True) -> Not(c), as a
       loop written with `break`.
    2. Both return the same: a constant.

    The condition is a scalar, the constants of both branches have the same shape, at most 64
    elements, the same type: float, double, int32, int64, or booleans without dimension.
    """
    condition = node.input[0]
    g.require(g.rank_of(condition) == 0, "the condition is not a scalar")
    graphs = [find_attribute(node, name) for name in ("then_branch", "else_branch")]
    g.require(all(att is not None and not att.ref_attr_name for att in graphs), _UNKNOWN)
    rows = [_constants(g, att.g) for att in graphs if att is not None]
    return [_chosen(g, condition, *pair) for pair in zip(*rows, strict=True)]


def _chosen(
    g: RewriteContext, condition: str, first: np.ndarray, second: np.ndarray
) -> Replacement:
    """Chooses one of two constants by a condition."""
    same = first.dtype == second.dtype and first.shape == second.shape
    g.require(same, "the constants do not have the same type and the same shape")
    g.require(first.size <= _LIMIT, "there are too many elements")
    known = first.dtype.name in _TYPES or (first.dtype == np.bool_ and not first.shape)
    g.require(known, "runtimes do not choose between these types")
    if first.tobytes() == second.tobytes():
        return first
    if first.dtype == np.bool_ and not first.shape:
        return condition if first else g.op.Not(condition)
    new: NewNode = g.op.Where(condition, first, second)
    return new


def _constants(g: RewriteContext, body: GraphProto) -> list[np.ndarray]:
    """The constants a branch returns; refuses unless it holds only constants and copies of them."""
    for node in body.node:  # no weight is read if the branch computes anything
        g.require(not node.domain and node.op_type in ("Constant", "Identity"), _UNKNOWN)
    known = {i.name: numpy_helper.to_array(i) for i in body.initializer if not _is_outside(i)}
    g.require(len(known) == len(body.initializer), _UNKNOWN)
    for node in body.node:
        if node.op_type == "Constant":
            known[node.output[0]] = _value(g, node)
        else:
            known[node.output[0]] = _read(g, known, node.input[0])
    return [_read(g, known, output.name) for output in body.output]


def _is_outside(tensor: TensorProto) -> bool:
    """Whether the values are in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def _read(g: RewriteContext, known: dict[str, np.ndarray], name: str) -> np.ndarray:
    """A constant of a branch or of the graph around it."""
    found = known.get(name)
    return g.constant_of(name, _UNKNOWN) if found is None else found


def _value(g: RewriteContext, node: NodeProto) -> np.ndarray:
    """The tensor of a Constant."""
    att = find_attribute(node, "value")
    if att is None or att.ref_attr_name or _is_outside(att.t):
        g.refuse(_UNKNOWN)
    return numpy_helper.to_array(att.t)
