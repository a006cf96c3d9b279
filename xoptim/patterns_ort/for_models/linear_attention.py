"""One step of linear attention, which updates a state and reads it: LinearAttention."""

from __future__ import annotations

from typing import NamedTuple

from onnx import NodeProto

from xbuilder.dims import Dim, Shape
from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import other_input
from ...analysis.axes import axes_of
from ...analysis.same_elements import source_of_reshapes
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel


class Sizes(NamedTuple):
    """Dimensions of a state.

    :param batch: any dimension
    :param heads: number of heads
    :param keys: length of the keys
    :param values: length of the values
    """

    batch: Dim
    heads: int
    keys: int
    values: int


class Update(NamedTuple):
    """The update of a state.

    :param past: the state before
    :param key: the key
    :param value: the value
    :param beta: the part of the difference that is written, empty if the value is written whole
    """

    past: str
    key: str
    value: str
    beta: str = ""


@rewrite("onnxruntime", "model", root="ReduceSum", after="Mul", precision="rounding")
def linear_attention(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """T = S * exp(g), U = T + k * (v - k @ T) * b, q @ U -> com.microsoft.LinearAttention.

    1. one step: S and U have the shape (batch, heads, length of the keys, length of the values),
       the others are vectors of each head, written with dimensions 1; both products are a
       ReduceSum that removes its axis, or keeps it;
    2. exp(g) may be missing, and so may the difference with b: the four rules of the operator;
    3. g has one number for each head, or for each element of the keys.

    `Qwen3NextGatedDeltaNet` of transformers generates a token this way.
    """
    read, kept = _reduced(g, node), _kept(g, node)
    pairs = g.either_order(read)
    found = next((p for p in pairs if g.producer_or_none(p[0], "Add") is not None), None)
    state, query = g.known(found, "no state is updated before")
    sizes = _sizes(g, state)
    g.require(_has_shape(g, query, (*sizes[:3], 1)), "the query is not a vector of each head")
    update = _update(g, g.before(state, "Add"), sizes)
    past, decay, width = _decay(g, update.past, sizes)
    require_kernel(g, "LinearAttention", past)
    rule = "_".join(["gated"] * bool(decay) + ["delta"] * bool(update.beta)) or "linear"
    batch, heads, keys, values = sizes
    inputs: list[Operand] = [
        _row(g, query, batch, heads * keys),
        _row(g, update.key, batch, heads * keys),
        _row(g, update.value, batch, heads * values),
        past,
    ]
    if decay or update.beta:
        inputs.append(_row(g, decay, batch, width) if decay else None)
    if update.beta:
        inputs.append(_row(g, update.beta, batch, heads))
    options = {"q_num_heads": heads, "kv_num_heads": heads, "scale": 1.0, "update_rule": rule}
    new = NewNode("LinearAttention", inputs, options, MICROSOFT, outputs=2)
    return {node.output[0]: g.op.Reshape(new[0], [0, heads, *kept, values]), state: new[1]}


def _reduced(g: RewriteContext, node: NodeProto) -> NodeProto:
    """The product of a vector by a state that a ReduceSum sums over the elements of the keys."""
    g.require(axes_of(g, node) in ((2,), (-2,)), "the sum is not along the keys")
    return g.before(node, "Mul")


def _kept(g: RewriteContext, node: NodeProto) -> tuple[int, ...]:
    """The dimension that a sum keeps along its axis, if it does."""
    return (1,) if g.get_attribute_with_default(node, "keepdims", 1) else ()


def _sizes(g: RewriteContext, state: str) -> Sizes:
    shape = g.shape_of(state)
    g.require(len(shape) == 4, "the state does not have four dimensions")
    batch, heads, keys, values = shape
    static = isinstance(heads, int) and isinstance(keys, int) and isinstance(values, int)
    g.require(static, "the dimensions of the heads are not known")
    return Sizes(batch, int(heads), int(keys), int(values))


def _has_shape(g: RewriteContext, name: str, shape: Shape) -> bool:
    found = g.shape_or_none(name)
    return found is not None and proven_equal(g, found, shape)


def _update(g: RewriteContext, add: NodeProto, sizes: Sizes) -> Update:
    """The previous state, and its update."""
    for past, term in g.either_order(add):
        product = g.producer_or_none(term, "Mul")
        if product is None or not _has_shape(g, past, sizes):
            continue
        for key, value in g.either_order(product):
            vectors = _has_shape(g, key, (*sizes[:3], 1))
            if vectors and _has_shape(g, value, (*sizes[:2], 1, sizes.values)):
                g.look_at(product)
                plain = Update(past, key, value)
                return _difference(g, plain, sizes) or plain
    return g.refuse("no product of a key and of a value is added")


def _difference(g: RewriteContext, update: Update, sizes: Sizes) -> Update | None:
    """The delta rule: the written value is (value - key @ past) * beta."""
    product = g.producer_or_none(source_of_reshapes(g, update.value), "Mul")
    if product is None:
        return None
    for name, beta in g.either_order(product):
        sub = g.producer_or_none(name, "Sub")
        total = g.producer_or_none(sub.input[1], "ReduceSum") if sub is not None else None
        if sub is None or total is None:
            continue
        kept = _kept(g, total)
        if not _has_shape(g, beta, (*sizes[:2], *kept, 1)):
            continue
        key = other_input(_reduced(g, total), update.past)
        same = source_of_reshapes(g, key) == source_of_reshapes(g, update.key)
        g.require(same and _has_shape(g, key, (*sizes[:3], 1)), "another key is read")
        value = sub.input[0]
        whole = _has_shape(g, value, (*sizes[:2], *kept, sizes.values))
        g.require(whole, "the value is not a vector of each head")
        g.look_at(product, sub, total)
        return Update(update.past, update.key, value, beta)
    return None


def _decay(g: RewriteContext, name: str, sizes: Sizes) -> tuple[str, str, int]:
    """The state before its decay, the logarithm of the decay, and the count of its numbers for each
    element of the batch."""
    product = g.producer_or_none(name, "Mul")
    pairs = () if product is None else g.either_order(product)
    for past, factor in pairs:
        for keys in (1, sizes.keys):
            exponential = g.producer_or_none(source_of_reshapes(g, factor), "Exp")
            vectors = _has_shape(g, factor, (*sizes[:2], keys, 1))
            if exponential is not None and vectors and _has_shape(g, past, sizes):
                g.look_at(product, exponential)
                return past, exponential.input[0], sizes.heads * keys
    return name, "", 0


def _row(g: RewriteContext, name: str, batch: Dim, width: int) -> NewNode:
    """The vectors of the heads, side by side."""
    first = g.shape_of(name)[:1]
    g.require(proven_equal(g, first, (batch,)), "a vector does not have the batch first")
    return g.op.Reshape(name, [0, 1, width])
