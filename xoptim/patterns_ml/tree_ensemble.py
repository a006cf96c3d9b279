"""Folds a factor into a tree ensemble; merges tree ensembles that read one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto
from onnx.numpy_helper import from_array

from xbuilder.nodes.attributes import attributes_of
from xbuilder.tensors.amplitude import is_normal

from ..analysis.arguments import other_input
from ..analysis.axes import axis_of
from ..analysis.constants import scalar_constant
from ..authoring import NewNode, Refusal, RewriteContext
from ..catalogue import rewrite

_REGRESSOR = "ai.onnx.ml::TreeEnsembleRegressor"
#: the leaves and the base values: 32 bits floats, or tensors
_SCALED = ("target_weights", "base_values")
_TENSOR = "_as_tensor"
#: attributes of nodes that an ensemble may have, and their default
_OPTIONAL = {"nodes_hitrates": 1.0, "nodes_missing_value_tracks_true": 0}


def _trees(g: RewriteContext, node: NodeProto, *kinds: str) -> dict[str, Any]:
    """Attributes of an ensemble that sums its leaves, or aggregates them in one of some other ways,
    without post-transformation; refuses others."""
    found = {"aggregate_function": "SUM", "post_transform": "NONE", **attributes_of(node)}
    g.require(found["aggregate_function"] in ("SUM", *kinds), "the leaves are not summed")
    g.require(found.pop("post_transform") == "NONE", "the sum is transformed")
    return found


def _written(name: str, values: np.ndarray) -> Any:
    """Values in the type of the attribute of an ensemble."""
    return from_array(values) if name.endswith(_TENSOR) else values.tolist()


def _scaled(g: RewriteContext, values: Any, factor: np.ndarray) -> np.ndarray:
    """Leaves times factors; refuses if one is no longer a normal number."""
    before = values if isinstance(values, np.ndarray) else np.array(values, np.float32)
    after: np.ndarray = before.astype(np.float64) * factor
    normal = is_normal(after, before.dtype, before == 0).all()
    g.require(normal, "a leaf is not a normal number any more")
    return after.astype(before.dtype)


@rewrite("ml", root=_REGRESSOR, read_by=("Mul", "Neg"), precision="rounding", sole_use=True)
def tree_ensemble_regressor_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """TreeEnsembleRegressor(x) * c -> TreeEnsembleRegressor(x), leaves and base values times c.

    c is a scalar constant, or -1 for Neg, or it has one factor for each target; the leaves are
    summed, without post-transformation.
    """
    mul = g.after(node, "Mul", "Neg")
    trees = _trees(g, node)
    targets = int(trees.get("n_targets", 1))
    factors = np.full(targets, -1.0) if mul.op_type == "Neg" else _factors(g, node, mul, targets)
    g.require(factors.all(), "the factor is null")
    return {mul.output[0]: g.like(node, node.input[0], **_times(g, trees, factors))}


def _factors(g: RewriteContext, node: NodeProto, mul: NodeProto, targets: int) -> np.ndarray:
    """The factor of each target."""
    result = node.output[0]
    other = other_input(mul, result)
    factor = scalar_constant(g, other, g.rank_of(result))
    if factor is None:
        factor = g.constant_or_none(other)
        row = factor is not None and factor.shape in ((targets,), (1, targets))
        g.require(row, "the factor is not a scalar constant, nor one for each target")
    return np.broadcast_to(np.ravel(g.known(factor, "the factor is not known")), targets)


def _times(
    g: RewriteContext, trees: dict[str, Any], factors: np.ndarray, as_written: bool = True
) -> dict[str, Any]:
    """The leaves and the base values of an ensemble, times the factor of their target."""
    ids = {"target_weights": trees.get("target_ids", ()), "base_values": range(len(factors))}
    g.require(all(0 <= i < len(factors) for i in ids["target_weights"]), "a target is not counted")
    changed = {}
    for name, values in trees.items():
        if name.removesuffix(_TENSOR) in _SCALED:
            places = list(ids[name.removesuffix(_TENSOR)])
            g.require(len(places) == len(values), "there is not one base value for each target")
            scaled = _scaled(g, values, factors[places])
            changed[name] = _written(name, scaled) if as_written else scaled
    return changed


@rewrite("ml", root=_REGRESSOR, read_by=("Concat", "Sigmoid"), precision="rounding", sole_use=True)
def tree_ensemble_regressor_concat(
    g: RewriteContext, node: NodeProto
) -> dict[str, NewNode] | Refusal:
    """Concat(TreeEnsembleRegressor(x), ...) -> TreeEnsembleRegressor(x), with all the targets.

    1. Each ensemble sums its leaves, or takes the least, or the greatest, without
       post-transformation: onnxruntime forgets LOGISTIC when there is one target, AVERAGE divides
       by the number of all trees.
    2. Every piece goes through Sigmoid before Concat: one Sigmoid is left.
    3. Hit rates, and the side of missing values, have their default in an ensemble without them.
    4. On axis 0, each has one target: the result is transposed, then reshaped into one column.
    """
    sigmoid = g.after_or_none(node, "Sigmoid")
    piece = node.output[0] if sigmoid is None else sigmoid.output[0]
    concat = g.after(piece, "Concat")
    pieces = g.inputs(concat)
    if pieces[0] != piece:
        return g.no("it is not the first piece")
    g.require(len(pieces) > 1, "there is one ensemble only")
    activated = pieces if sigmoid is None else [g.before(p, "Sigmoid").input[0] for p in pieces]
    nodes = [g.before(name, _REGRESSOR) for name in activated]
    same = all(n.input[0] == node.input[0] for n in nodes)
    g.require(same, "the ensembles do not have the same input")
    axis = g.known(axis_of(g, concat, 2, None), "the axis is not known")
    merged = _merged(g, [_trees(g, n, "MIN", "MAX") for n in nodes])
    alone = axis == 1 or merged["n_targets"] == len(nodes)
    g.require(alone, "an ensemble has several targets, they would be transposed")
    found = g.op.TreeEnsembleRegressor(node.input[0], domain="ai.onnx.ml", **merged)
    if axis == 0:
        found = g.op.Reshape(g.op.Transpose(found, perm=[1, 0]), [-1, 1])
    return {concat.output[0]: found if sigmoid is None else g.op.Sigmoid(found)}


@rewrite("ml", root=_REGRESSOR, read_by=("Add", "Sum", "Sub"), precision="rounding", sole_use=True)
def tree_ensemble_regressor_sum(g: RewriteContext, node: NodeProto) -> dict[str, NewNode] | Refusal:
    """TreeEnsembleRegressor(x) + TreeEnsembleRegressor(x) -> TreeEnsembleRegressor(x), all the
    trees: stages of boosting, a model of residues. Or their difference.

    The ensembles sum their leaves, have as many targets, and are as those of
    ``TreeEnsembleRegressorConcat`` otherwise. With base values, there is one target: onnxruntime
    forgets the base value of a target whose leaves are not reached.
    """
    total = g.after(node, "Add", "Sum", "Sub")
    terms = g.inputs(total)
    if terms[0] != node.output[0]:
        return g.no("it is not the first term")
    g.require(len(terms) > 1, "there is one ensemble only")
    nodes = [g.before(name, _REGRESSOR) for name in terms]
    same = all(n.input[0] == node.input[0] for n in nodes)
    g.require(same, "the ensembles do not have the same input")
    found = [_trees(g, n) for n in nodes]
    if total.op_type == "Sub":
        found[1] |= _times(g, found[1], np.full(int(found[1].get("n_targets", 1)), -1.0), False)
    merged = _merged(g, found, summed=True)
    has_base = any(name.startswith("base_values") for name in merged)
    reached = merged["n_targets"] == 1 and _has_all_leaves(merged)
    g.require(reached or not has_base, "the leaves of a target may not be reached")
    new = g.op.TreeEnsembleRegressor(node.input[0], domain="ai.onnx.ml", **merged)
    return {total.output[0]: new}


def _has_all_leaves(trees: dict[str, Any]) -> bool:
    """Whether every leaf has a value."""
    places = set(zip(trees["target_treeids"], trees["target_nodeids"], strict=True))
    return len(places) == sum(mode in ("LEAF", b"LEAF") for mode in trees["nodes_modes"])


def _completed(ensembles: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ensembles, with the optional attributes of nodes that one of them has."""
    added = [name for name in _OPTIONAL if any(name in trees for trees in ensembles)]
    sizes = [len(trees.get("nodes_treeids", ())) for trees in ensembles]
    defaults = [{name: [_OPTIONAL[name]] * size for name in added} for size in sizes]
    return [{**missing, **trees} for missing, trees in zip(defaults, ensembles, strict=True)]


def _merged(
    g: RewriteContext, found: Sequence[dict[str, Any]], summed: bool = False
) -> dict[str, Any]:
    """Attributes of one ensemble with the targets of each given ensemble, or with their sums."""
    kinds = {trees.pop("aggregate_function") for trees in found}
    g.require(len(kinds) == 1, "the leaves are not aggregated in the same way")
    ensembles = _completed(found)
    base = next((n for e in ensembles for n in e if n.startswith("base_values")), "base_values")
    names = set(ensembles[0]) - {base, "n_targets"}
    g.require({"nodes_treeids", "target_ids"} <= names, "an ensemble has no tree")
    for trees in ensembles:
        same = set(trees) - {base, "n_targets"} == names
        g.require(same, "the ensembles do not have the same attributes")
        valid = all(0 <= i < trees.get("n_targets", 0) for i in trees["target_ids"])
        g.require(valid, "the number of targets is not known")
    targets = [int(trees["n_targets"]) for trees in ensembles]
    g.require(not summed or len(set(targets)) == 1, "the numbers of targets differ")
    shifts = {
        "target_ids": [0] * len(targets) if summed else targets,
        "nodes_treeids": (numbers := [1 + max(map(int, e["nodes_treeids"])) for e in ensembles]),
        "target_treeids": numbers,
    }
    merged: dict[str, Any] = {"n_targets": targets[0] if summed else sum(targets)}
    if kinds != {"SUM"}:
        (merged["aggregate_function"],) = kinds
    for name in sorted(names):
        values = [list(trees[name]) for trees in ensembles]
        for i, row in enumerate(values if name in shifts else []):
            values[i] = [v + sum(shifts[name][:i]) for v in row]
        merged[name] = _joined(name, values)
    if any(base in trees for trees in ensembles):
        zeros = [[0.0] * n for n in targets]
        rows = [list(e.get(base, z)) for e, z in zip(ensembles, zeros, strict=True)]
        g.require(list(map(len, rows)) == targets, "there is not one base value for each target")
        merged[base] = _joined(base, [[*map(sum, zip(*rows, strict=True))]] if summed else rows)
    return merged


def _joined(name: str, rows: Sequence[list[Any]]) -> Any:
    """Concatenates values of one attribute; tensors hold floats of 64 bits or of 32."""
    values = [v for row in rows for v in row]
    if not name.endswith(_TENSOR):
        return values
    dtype = np.float32 if any(isinstance(v, np.float32) for v in values) else np.float64
    return from_array(np.array(values, dtype))
