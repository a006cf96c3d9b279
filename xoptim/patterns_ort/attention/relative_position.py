"""Attention biases by distance between query and key (T5): RelativePositionBias, for CUDA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xbuilder.operators.domains import MICROSOFT

from ...analysis.axes import axes_of
from ...analysis.values.masks import causal_positions
from ...analysis.values.uniform import is_always
from ...authoring import NewNode, RewriteContext
from ...declarative import rule
from ..kernels import require_kernel

_NO_BUCKET = "the rows are not buckets of distances"
#: the bucket of a large distance r, a logarithm; WavLM adds the first one before the Cast
_RATIO = "ratio = Log(Cast(r, to=1) / e) / c * m; added = ratio + first"
_BUCKET = "Where(r < near, r, Min(Cast(ratio, to=7) + first | Cast(added, to=7), last))"
_RESULT = """bias = Gather(table, rows, axis=0); moved = Transpose(bias, perm=[2, 0, 1])
    y = Unsqueeze(moved, *_, **_); y"""


@rule(
    "onnxruntime",
    f"r = Abs(d); {_RATIO}; rows = Cast(d > 0, to=7) * side + {_BUCKET}; {_RESULT}",
    f"r = -Min(d, zeros); {_RATIO}; rows = {_BUCKET}; {_RESULT}",
    precision="rounding",
    sole_use=False,
)
def relative_position_bias(
    g: RewriteContext,
    d: str,
    bias: str,
    moved: str,
    y: str,
    table: str,
    added: str | None,
    zeros: str | None,
    last: str,
    near: float,
    first: float,
    e: float,
    c: float,
    m: float,
    side: float | None,
) -> dict[str, NewNode]:
    """Unsqueeze(Transpose(Gather(table, buckets))) -> com.microsoft.RelativePositionBias, on CUDA.

    1. the buckets of T5: one for each small distance, then a logarithm of it, for int64 positions
       0, 1, 2, ... of as many queries as keys;
    2. with buckets for the keys after the query, or not;
    3. the operator puts each distance in the bucket of the model, logarithms being those of numpy.

    The operator never ran on a device: the tests use the formula of its kernel, in numpy. The
    kernel does not accept an empty sequence.
    """
    g.require(axes_of(g, g.before(y)) in ((0,), (-4,)), "the heads do not come first")
    g.require_sole_use("the bias is used before the heads come first", bias, moved)
    require_kernel(g, "RelativePositionBias", table)
    rows, columns = g.static_shape(table, "the table is not static") or (0, 0)
    count = rows if side is None else rows // 2
    exact = count // 2
    known = exact > 0 and near == first == exact and side in (None, count)
    known = known and (zeros is None or is_always(g, zeros, 0)) and is_always(g, last, count - 1)
    g.require(known, _NO_BUCKET)
    distance = _distance(g, (e, c, m), exact, count, added is not None)
    length = g.op.Unsqueeze(_positions(g, d), axes=[0])
    by_head = g.op.Reshape(g.op.Transpose(table, perm=[1, 0]), [rows, columns])
    options = {"is_bidirectional": int(side is not None), "max_distance": distance}
    return {y: NewNode("RelativePositionBias", [by_head, length, length], options, MICROSOFT)}


def _positions(g: RewriteContext, difference: str) -> str:
    """The number of queries, and of keys, a scalar."""
    sub = g.before(difference, "Sub")
    columns, rows = sub.input
    g.require(causal_positions(g, columns, rows) == 0, "the positions are not 0, 1, 2, ...")
    limits = []
    for name in (columns, rows):
        unsqueeze = g.before_or_none(name, "Unsqueeze")
        limits.append(g.before(unsqueeze or name, "Range").input[1])
    g.require(limits[0] == limits[1], "there are not as many keys as queries")
    return str(limits[0])


def _distance(
    g: RewriteContext, numbers: Sequence[float], exact: int, count: int, is_float: bool
) -> int:
    """The distance of the last bucket; refuses unless the formula and the operator put each
    distance in the same one.

    :param numbers: e, c and m in the formula
    :param exact: number of distances with a bucket of their own
    :param count: number of buckets
    :param is_float: the logarithm is added to *exact* in float
    """
    e, c, m = map(np.float32, numbers)
    distance = int(np.rint(exact * np.exp(np.float64(c)))) if 0 < c < 20 else 0
    g.require(distance > exact, _NO_BUCKET)
    distances = np.arange(exact, distance + 1).astype(np.float32)
    ours = np.log(distances / e) / c * m
    if is_float:
        ours = ours + np.float32(exact) - np.float32(exact)
    log = np.log(np.float32(distance) / np.float32(exact))
    kernel = np.log(distances / np.float32(exact)) / log * np.float32(count - exact)
    g.require(_same_buckets(ours, kernel, count - 1 - exact), "distances have another bucket")
    return distance


def _same_buckets(first: np.ndarray, second: np.ndarray, last: int) -> bool:
    """Whether logarithms are rounded to the same buckets."""
    a, b = (np.minimum(np.nan_to_num(x, nan=-1).astype(np.int64), last) for x in (first, second))
    return bool(np.array_equal(a, b) and a[-1] == last)
