"""Losses."""

from __future__ import annotations

from ..common.types import is_float
from ..writing.graph_writer import GraphWriter
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import dim_of, first_integers, int_vector, scalar0d
from .operands import INT64, cast, const, float_type, same_type
from .reduce import mean_of, reduce

_REDUCTIONS = ("none", "mean", "sum")


def _reduced(g: GraphWriter, x: str, reduction: int) -> str:
    """Reduces a loss: 0 is none, 1 is mean, 2 is sum."""
    if reduction == 0:
        return x
    if reduction == 1:
        return mean_of(g, x, None, False)
    return reduce(g, "ReduceSum", x, None, False)


@aten("aten.mse_loss.default")
def mse_loss(g: GraphWriter, x: str, target: str, reduction: int = 1) -> str:
    """(x - target)^2."""
    gap = g.op.Sub(*same_type(g, x, target))
    return _reduced(g, g.op.Mul(gap, gap), reduction)


@aten("aten.l1_loss.default")
def l1_loss(g: GraphWriter, x: str, target: str, reduction: int = 1) -> str:
    """|x - target|."""
    gap = g.op.Abs(g.op.Sub(*same_type(g, x, target)))
    return _reduced(g, gap, reduction)


@aten("aten.smooth_l1_loss.default")
def smooth_l1_loss(
    g: GraphWriter, x: str, target: str, reduction: int = 1, beta: float = 1.0
) -> str:
    """Quadratic below beta, linear above."""
    itype = float_type(g, x, target)
    gap = g.op.Abs(g.op.Sub(*same_type(g, x, target, itype=itype)))
    if beta == 0:
        return _reduced(g, gap, reduction)
    small = g.op.Mul(g.op.Mul(gap, gap), const(0.5 / beta, itype))
    large = g.op.Sub(gap, const(0.5 * beta, itype))
    loss = g.op.Where(g.op.Less(gap, const(beta, itype)), small, large)
    return _reduced(g, loss, reduction)


@aten("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(
    g: GraphWriter,
    x: str,
    target: str,
    weight: str | None,
    reduction: int,
    ignore_index: int,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str | None]:
    """NegativeLogLikelihoodLoss, then the sum of the weights of the targets, for the gradient."""
    loss = nll_loss(g, x, target, weight, reduction, ignore_index)
    if not expected.is_used(1):
        return [loss, None]
    itype = g.get_type(x)
    if reduction == 0:
        return [loss, g.op.Identity(const(0, itype))]
    target = cast(g, target, INT64)
    ignored = g.op.Equal(target, const(ignore_index, INT64))
    counted = _weights_of(g, target, ignored, weight, itype)
    return [loss, reduce(g, "ReduceSum", counted, None, False)]


@aten("aten.nll_loss.default", "aten.nll_loss_nd.default")
def nll_loss(
    g: GraphWriter,
    x: str,
    target: str,
    weight: str | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> str:
    """NegativeLogLikelihoodLoss."""
    is_single = g.get_rank(x) == 1
    if is_single:
        x, target = (g.op.UnsqueezeAnyOpset(v, int_vector([0])) for v in (x, target))
    loss = g.op.NegativeLogLikelihoodLoss(
        x,
        cast(g, target, INT64),
        *([] if weight is None else [weight]),
        reduction=_REDUCTIONS[reduction],
        ignore_index=ignore_index,
    )
    return g.op.SqueezeAnyOpset(loss, int_vector([0])) if is_single and reduction == 0 else loss


@aten("aten.cross_entropy_loss.default")
def cross_entropy_loss(
    g: GraphWriter,
    x: str,
    target: str,
    weight: str | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> str:
    """A log softmax, then the likelihood of the target: a class or probabilities of the classes.

    Label smoothing takes a part of every target and shares it between the classes.
    """
    axis = min(g.get_rank(x) - 1, 1)
    logs = g.op.LogSoftmax(x, axis=axis)
    if is_float(g.get_type(target)):
        return _of_probabilities(g, logs, target, weight, reduction, label_smoothing)
    loss = nll_loss(g, logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss
    itype = g.get_type(x)
    shared = _shared_loss(g, logs, cast(g, target, INT64), weight, reduction, ignore_index)
    classes = scalar0d(g, dim_of(g, x, axis), itype)
    shared = g.op.Div(g.op.Mul(shared, const(label_smoothing, itype)), classes)
    return g.op.Add(g.op.Mul(loss, const(1 - label_smoothing, itype)), shared)


def _by_class(g: GraphWriter, logs: str, weight: str | None) -> str:
    """The logarithms times the weights of the classes."""
    if weight is None:
        return logs
    after = max(g.get_rank(logs) - 2, 0)
    return g.op.Mul(logs, g.op.Reshape(weight, int_vector([-1] + [1] * after)))


def _of_probabilities(
    g: GraphWriter, logs: str, target: str, weight: str | None, reduction: int, smoothing: float
) -> str:
    """-sum(target * logs), averaged over every dimension except the classes."""
    rank, itype = g.get_rank(logs), g.get_type(logs)
    axis = min(rank - 1, 1)
    target = cast(g, target, itype)
    if smoothing:
        classes = scalar0d(g, dim_of(g, logs, axis), itype)
        rest = g.op.Mul(target, const(1 - smoothing, itype))
        target = g.op.Add(rest, g.op.Div(const(smoothing, itype), classes))
    products = g.op.Mul(_by_class(g, logs, weight), target)
    loss = g.op.Neg(reduce(g, "ReduceSum", products, axis, False))
    return _reduced(g, loss, reduction)


def _shared_loss(
    g: GraphWriter,
    logs: str,
    target: str,
    weight: str | None,
    reduction: int,
    ignore_index: int,
) -> str:
    """The loss summed over every class; its mean is divided by the weights of the targets."""
    itype = g.get_type(logs)
    ignored = g.op.Equal(target, const(ignore_index, INT64))
    total = reduce(g, "ReduceSum", _by_class(g, logs, weight), min(g.get_rank(logs) - 1, 1), False)
    loss = g.op.Where(ignored, const(0, itype), g.op.Neg(total))
    if reduction != 1:
        return _reduced(g, loss, reduction)
    counted = _weights_of(g, target, ignored, weight, itype)
    return g.op.Div(*(reduce(g, "ReduceSum", v, None, False) for v in (loss, counted)))


def _weights_of(g: GraphWriter, target: str, ignored: str, weight: str | None, itype: int) -> str:
    """The weight of each target: 1 without weights, 0 for an ignored target."""
    if weight is None:
        return g.op.Cast(g.op.Not(ignored), to=itype)
    weights = g.op.Gather(weight, g.op.Where(ignored, const(0, INT64), target), axis=0)
    return g.op.Where(ignored, const(0, itype), weights)


@aten("aten.binary_cross_entropy.default")
def binary_cross_entropy(
    g: GraphWriter, x: str, target: str, weight: str | None = None, reduction: int = 1
) -> str:
    """-(y * log(x) + (1 - y) * log(1 - x)), the logarithms are not lower than -100."""
    itype = g.get_type(x)
    one, low = const(1, itype), const(-100, itype)
    log_x = g.op.Max(g.op.Log(x), low)
    log_not = g.op.Max(g.op.Log(g.op.Sub(one, x)), low)
    positive = g.op.Mul(target, log_x)
    negative = g.op.Mul(g.op.Sub(one, target), log_not)
    loss = g.op.Neg(g.op.Add(positive, negative))
    loss = loss if weight is None else g.op.Mul(loss, weight)
    return _reduced(g, loss, reduction)


@aten("aten.binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    g: GraphWriter,
    x: str,
    target: str,
    weight: str | None = None,
    pos_weight: str | None = None,
    reduction: int = 1,
) -> str:
    """(1 - y) * x + (1 + (p - 1) * y) * softplus(-x)."""
    one = const(1, g.get_type(x))
    soft = g.op.Softplus(g.op.Neg(x))
    if pos_weight is not None:
        factor = g.op.Add(g.op.Mul(g.op.Sub(pos_weight, one), target), one)
        soft = g.op.Mul(factor, soft)
    loss = g.op.Add(g.op.Mul(g.op.Sub(one, target), x), soft)
    loss = loss if weight is None else g.op.Mul(loss, weight)
    return _reduced(g, loss, reduction)


@aten("aten.multilabel_margin_loss.default")
def multilabel_margin_loss(g: GraphWriter, x: str, target: str, reduction: int = 1) -> str:
    """The mean over classes i, the sum over targets j, of max(0, 1 - x[j] + x[i]), i not a target.

    The targets of a row end at the first -1, while torch's own decomposition adds later ones.
    """
    itype = g.get_type(x)
    if g.get_rank(x) < 2:
        x, target = (g.op.Reshape(v, int_vector([1, -1])) for v in (x, target))
    size = dim_of(g, x, 1)
    one, last, wide = const(1, itype), int_vector([2]), int_vector([1])
    ended = g.op.Cast(g.op.Equal(target, const(-1, INT64)), to=INT64)
    valid = g.op.Equal(g.op.CumSum(ended, const(1, INT64)), const(0, INT64))
    known = g.op.Where(valid, target, const(-1, INT64))
    classes = first_integers(g, size)
    hits = g.op.Cast(g.op.Equal(g.op.UnsqueezeAnyOpset(known, last), classes), to=INT64)
    others = g.op.Equal(reduce(g, "ReduceSum", hits, 1, True), const(0, INT64))
    picked = g.op.GatherElements(x, g.op.Where(valid, target, const(0, INT64)), axis=1)
    gap = g.op.Sub(one, g.op.UnsqueezeAnyOpset(picked, last))
    gap = g.op.Relu(g.op.Add(gap, g.op.UnsqueezeAnyOpset(x, wide)))
    counted = g.op.And(g.op.UnsqueezeAnyOpset(valid, last), others)
    total = reduce(g, "ReduceSum", g.op.Where(counted, gap, const(0, itype)), [1, 2], False)
    return _reduced(g, g.op.Div(total, scalar0d(g, size, itype)), reduction)
