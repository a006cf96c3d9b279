"""Reads a node as an affine function of one input, `x * scale + shift` for each channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC

from ...authoring import RewriteContext
from ..arguments import other_input
from ..values.rounding_sums import ROUNDS, rounds

#: operators that may be an :class:`Affine`
AFFINE = (*ARITHMETIC, "BatchNormalization", "Neg")
#: those that multiply, so that the weight changes
SCALING = ("BatchNormalization", "Div", "Mul", "Neg")


class Channels(NamedTuple):
    """The channels of a tensor of known rank: their axis and their number."""

    rank: int
    axis: int
    size: int


class Affine(NamedTuple):
    """`x * scale + shift`, where each is one number (shape `()`) or one for each channel (shape
    `(C,)`).

    Both are finite, in float64, or longer for double models: the new constants are rounded once.
    """

    scale: np.ndarray
    shift: np.ndarray

    @property
    def scales(self) -> bool:
        """Whether it multiplies by something else than 1."""
        return bool((self.scale != 1).any())

    @property
    def shifts(self) -> bool:
        """Whether it adds something else than 0."""
        return bool((self.shift != 0).any())

    @property
    def is_uniform(self) -> bool:
        """Whether it is the same for every channel."""
        return self.scale.ndim == 0 and self.shift.ndim == 0


def wide(value: np.ndarray) -> np.ndarray:
    """The values in a wider type, so that constants computed from them are rounded once."""
    return value.astype(np.longdouble if value.dtype == np.float64 else np.float64)


def one_per_channel(shape: tuple[int, ...], channels: Channels) -> bool:
    """Whether a constant broadcasts along every dimension but the channels."""
    shift = channels.rank - len(shape)
    if shift < 0:
        return False
    pairs = enumerate(shape, start=shift)
    return all(d == 1 or (i == channels.axis and d == channels.size) for i, d in pairs)


def affine_of(g: RewriteContext, node: NodeProto, x: str, channels: Channels) -> Affine:
    """Reads a node as a function of one of its inputs; refuses if it is not an affine one.

    :param node: one of :data:`AFFINE`
    :param x: the input
    :param channels: the channels of the *result*; the caller checks that x is not broadcast
    """
    if node.op_type == "BatchNormalization":
        return normalization_of(g, node, x, channels)
    if node.op_type == "Neg":
        return Affine(-_ONE, np.zeros(()))
    other = other_input(node, x)
    shape = g.known(g.get_constant_shape(other), "the other operand is not constant")
    fits = one_per_channel(shape, channels)
    g.require(fits, "the other operand does not have one value for each channel")
    value = wide(g.constant_of(other, "the other operand is not constant"))
    g.require(np.isfinite(value).all(), "the other operand is not finite")
    g.require(not rounds(g, node), ROUNDS)
    value = value.reshape(() if value.size == 1 else -1)
    return _READ[node.op_type](g, value, node.input[0] == x)


def shift_name(node: NodeProto, x: str) -> str:
    """The constant an affine node adds or multiplies by, an empty name for Neg.

    :param node: one of :data:`AFFINE`
    :param x: its operand
    """
    if node.op_type in ARITHMETIC:
        return other_input(node, x)
    return node.input[2] if node.op_type == "BatchNormalization" else ""


def affine_operand(g: RewriteContext, node: NodeProto) -> str:
    """The operand of an affine node that is not constant, or the first one."""
    first, *others = g.inputs(node)
    two = node.op_type in ARITHMETIC
    return others[0] if two and g.is_constant(first) else first


def _divided(g: RewriteContext, value: np.ndarray, first: bool) -> Affine:
    g.require(first, "a constant is divided by the result")
    g.require((value != 0).all(), "the result is divided by zero")
    return Affine(1 / value, np.zeros_like(value))


_ONE = np.ones(())
#: operator -> its affine function; the last argument is true if the constant is the second input
_READ: dict[str, Callable[[RewriteContext, np.ndarray, bool], Affine]] = {
    "Add": lambda _, c, first: Affine(_ONE, c),
    "Div": _divided,
    "Mul": lambda _, c, first: Affine(c, np.zeros(())),
    "Sub": lambda _, c, first: Affine(_ONE, -c) if first else Affine(-_ONE, c),
}


def require_inference(g: RewriteContext, node: NodeProto) -> None:
    """Refuses a BatchNormalization in training mode, or with one scale for each element."""
    training = g.get_attribute_with_default(node, "training_mode", 0) or any(node.output[1:])
    g.require(not training, "BatchNormalization is training")
    spatial = g.get_attribute_with_default(node, "spatial", 1)
    g.require(spatial, "BatchNormalization has one scale for each element")


def normalization_of(g: RewriteContext, node: NodeProto, x: str, channels: Channels) -> Affine:
    """Reads a BatchNormalization in inference mode as an affine function; refuses if a parameter is
    not constant."""
    require_inference(g, node)
    g.require(node.input[0] == x, "the result is a parameter of BatchNormalization")
    same = channels.axis == 1 and channels.rank >= 2
    g.require(same, "BatchNormalization has channels of its own")
    scale, bias, mean, variance = (parameter(g, name) for name in node.input[1:])
    g.require(scale.shape == (channels.size,), "BatchNormalization has channels of its own")
    deviation = deviation_of(g, node, variance)
    factor = scale / deviation
    return Affine(factor, bias - mean * factor)


def deviation_of(g: RewriteContext, node: NodeProto, variance: np.ndarray) -> np.ndarray:
    """The standard deviation a BatchNormalization divides by; refuses unless it is positive."""
    variance = variance + g.get_attribute_with_default(node, "epsilon", 1e-5)
    g.require((variance > 0).all(), "a variance is not positive")
    found: np.ndarray = np.sqrt(variance)
    return found


def parameter(g: RewriteContext, name: str) -> np.ndarray:
    """A vector of parameters in a wider type; refuses if it is not constant or not finite."""
    value = wide(g.constant_of(name, "a parameter of BatchNormalization is not constant"))
    g.require(np.isfinite(value).all(), "a parameter of BatchNormalization is not finite")
    return value


def affine_before(g: RewriteContext, node: NodeProto, x: str, channels: Channels) -> Affine:
    """Reads a node as a function of one of its inputs, that what reads its result may absorb.

    Refuses a node that changes the shape of its operand, and the last factor of a Gelu,
    `0.5 * (y * (1 + Erf(...)))`, because runtimes have one kernel for the whole formula.

    :param node: one of :data:`AFFINE`
    :param x: the input
    :param channels: the channels of the result
    """
    affine = affine_of(g, node, x, channels)
    if node.op_type in ARITHMETIC:
        _require_not_broadcast(g, node, x, affine, channels)
    if affine.is_uniform and affine.scale == 0.5:
        require_not_gelu(g, x)
    return affine


def _require_not_broadcast(
    g: RewriteContext, node: NodeProto, x: str, affine: Affine, channels: Channels
) -> None:
    other = g.get_constant_shape(other_input(node, x)) or ()
    rank = g.rank_or_none(x)
    same = not other or rank == channels.rank
    g.require(same, "the rank of the operand is not known, or the constant changes it")
    if not affine.is_uniform:
        dims = g.shape_of(x, "the number of channels of the operand is not known")
        size = dims[channels.axis]
        g.require(size == channels.size, "the number of channels of the operand is not known")


def require_not_gelu(g: RewriteContext, x: str) -> None:
    """Refuses to remove the half of a Gelu, because runtimes have one kernel for the formula.

    :param x: the result that is multiplied by 0.5
    """
    product = g.producer_or_none(x, "Mul")
    sums = [] if product is None else [g.producer_or_none(name, "Add") for name in product.input]
    terms = [name for node in sums if node is not None for name in node.input]
    curved = any(g.producer_or_none(name, "Erf", "Tanh") is not None for name in terms)
    g.require(not curved, "it is a part of a Gelu")
