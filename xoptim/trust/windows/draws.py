"""The values given to the inputs of a window: usual ones, ties, special ones, integers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx.helper as oh
from onnx import TensorProto

from xbuilder.dims import Constraints
from xbuilder.facts.facts import ResultFacts
from xbuilder.operators.op_traits import FLOATS, HALF_FLOATS

from .roles import Role
from .sessions import CannotRunError
from .sizes import axis_names, size_of

#: kinds of draws
USUAL, SMALL, TIES, SPECIAL, WHOLE, APART = "usual", "small", "ties", "special", "whole", "apart"
#: values that are drawn more often than chance would
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0)
#: number of floats drawn for one input, a prime number; larger inputs repeat them
_BLOCK = 65521
#: number of floats above which they come from a block that is drawn once
_MANY = 1 << 12
#: number of small inputs whose values are kept for the next windows
_KEPT = 1 << 10
#: number of different floats of :data:`APART`: all the integers up to it are floats
MOST_APART = 1 << 24
#: largest number of elements of one input, and of all of them
LARGEST, LARGEST_SUM = 1 << 24, 1 << 25


class Draw(NamedTuple):
    """The way the values of a window are drawn.

    :param kind: one of the kinds above; *small* is *usual* nearer to zero, where deviations are
        below one and bounds are not reached; the floats of *apart* differ from each other, those of
        all the inputs, as long as there are no more than :data:`MOST_APART`
    :param seed: same seed, same values
    :param high: bound of the indices, excluded
    :param low: least index
    :param rank: rank of the inputs whose rank is not known
    :param bits: integers of :data:`WHOLE` are below two to this power
    """

    kind: str = USUAL
    seed: int = 0
    high: int = 10
    low: int = 0
    rank: int = 2
    bits: int = 8


def draw_window_inputs(
    facts: Mapping[str, ResultFacts],
    roles: Mapping[str, Role],
    sizes: Mapping[str, int],
    constraints: Constraints,
    draw: Draw,
) -> dict[str, Any]:
    """Values for the inputs of a window.

    :param facts: facts of the inputs
    :param roles: roles of the integers
    :param sizes: sizes by symbol, :func:`axis_names` included
    :param constraints: what is known of the dimensions
    :param draw: the kind of values
    :return: an array by input, a list of them for a sequence
    :raises CannotRunError: a type is not known, a shape is impossible or too large
    """
    found: dict[str, Any] = {}
    total = 0
    for i, (name, fact) in enumerate(facts.items()):
        content = _known_content(fact, sizes, constraints)
        if content is not None:
            found[name] = content
            continue
        role = roles.get(name, Role.ANY)
        kind = fact if fact.sequence is None else fact.sequence
        if not kind.type:
            raise CannotRunError(f"the type of {name!r} is not known")
        shape = _shape(name, kind, sizes, constraints, draw.rank)
        if fact.sequence is not None:
            found[name] = [_array(kind.type, shape, role, draw, (i, j)) for j in range(2)]
            continue
        if draw.kind == APART and fact.type in FLOATS:
            value = _counted(kind.type, shape, total)
        else:
            value = _array(kind.type, shape, role, draw, (i,))
        found[name] = value
        total += value.size
        if total > LARGEST_SUM:
            raise CannotRunError(f"its inputs have more than {LARGEST_SUM} elements")
    return found


def _known_content(
    facts: ResultFacts, sizes: Mapping[str, int], constraints: Constraints
) -> np.ndarray | None:
    """The content of a small tensor of integers, when the facts give it."""
    value = facts.value
    if value is None or not facts.type:
        return None
    items = value if isinstance(value, tuple) else (value,)
    numbers = [size_of(item, sizes, constraints) for item in items]
    if None in numbers:
        return None
    dtype = oh.tensor_dtype_to_np_dtype(facts.type)
    return np.array(numbers if isinstance(value, tuple) else numbers[0], dtype=dtype)


def _shape(
    name: str,
    facts: ResultFacts,
    sizes: Mapping[str, int],
    constraints: Constraints,
    rank: int,
) -> tuple[int, ...]:
    known = facts.known_rank()
    dims = axis_names(rank if known is None else known) if facts.shape is None else facts.shape
    found = [size_of(dim, sizes, constraints) for dim in dims]
    shape = tuple(d for d in found if d is not None)
    if len(shape) != len(found) or min(shape, default=0) < 0:
        raise CannotRunError(f"{name!r} has no size for {list(dims)}")
    if math.prod(max(d, 1) for d in shape) > LARGEST:
        raise CannotRunError(f"{name!r} would have shape {list(shape)}")
    return shape


def _counted(elem_type: int, shape: tuple[int, ...], first: int) -> np.ndarray:
    """Consecutive integers that are floats, from the one that follows the previous input's."""
    numbers = np.arange(first + 1, first + 1 + math.prod(shape))
    return numbers.astype(oh.tensor_dtype_to_np_dtype(elem_type)).reshape(shape)


def _array(
    elem_type: int, shape: tuple[int, ...], role: Role, draw: Draw, place: tuple[int, ...]
) -> np.ndarray:
    """The values of one input, read-only: those of small ones are drawn once.

    :param place: the rank of the input, then the one of the element in a sequence
    """
    drawn = _drawn if math.prod(shape) <= _MANY else _drawn.__wrapped__
    found: np.ndarray = drawn(elem_type, shape, role, draw, place)
    return found


@functools.lru_cache(_KEPT)
def _drawn(
    elem_type: int, shape: tuple[int, ...], role: Role, draw: Draw, place: tuple[int, ...]
) -> np.ndarray:
    found = _values(elem_type, shape, role, draw, place)
    found.setflags(write=False)
    return found


def _values(
    elem_type: int, shape: tuple[int, ...], role: Role, draw: Draw, place: tuple[int, ...]
) -> np.ndarray:
    rng = np.random.default_rng((draw.seed, *place))
    if elem_type == TensorProto.STRING:
        words = rng.integers(0, 5, shape)
        text = np.array([f"w{k}" for k in words.ravel()], dtype=object)
        return text.reshape(shape)
    if elem_type == TensorProto.BOOL:
        if math.prod(shape) == 1:  # both branches of an If, in turn
            return np.full(shape, (draw.seed + place[0]) % 2 == 0)
        return _booleans(shape, draw, rng)
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return _integers(dtype, shape, role, draw, rng)
    if elem_type in FLOATS or dtype.kind in "fc" or dtype.name.startswith("float"):
        return _floats(elem_type, dtype, shape, draw, rng)
    raise CannotRunError(f"no value can be drawn for {dtype}")


def _booleans(shape: tuple[int, ...], draw: Draw, rng: np.random.Generator) -> np.ndarray:
    """Fair coins; special ones have a row of False and a row of True."""
    values = np.asarray(rng.integers(0, 2, shape), dtype=np.bool_)
    if draw.kind == SPECIAL and values.size:
        rows = values.reshape(-1, shape[-1])
        rows[-1], rows[0] = True, False
    return values


def _floats(
    elem_type: int, dtype: Any, shape: tuple[int, ...], draw: Draw, rng: np.random.Generator
) -> np.ndarray:
    if draw.kind == WHOLE:
        bound = 1 << draw.bits
        return rng.integers(-bound, bound + 1, shape).astype(np.float64)
    if draw.kind == TIES:
        return _tied(rng.integers(-3, 4, shape)).astype(dtype)
    size = math.prod(shape)
    most = 3.0 if elem_type in HALF_FLOATS else 8.0
    if size < _MANY:
        drawn = _usual(size, most, rng)
    else:
        start = int(rng.integers(_BLOCK))
        drawn = np.roll(_usual_block(most), start)[: min(size, _BLOCK)]
    values: np.ndarray = np.resize(drawn.astype(dtype), shape) if size else np.zeros(shape, dtype)
    if draw.kind == SMALL:
        return np.asarray(values * dtype.type(0.125 if elem_type in HALF_FLOATS else 2.0**-6))
    if draw.kind == USUAL and len(shape) > 1 and values.size:
        rows = values.reshape(-1, shape[-1])
        rows[-1] = (rows[-1].astype(np.float64) * 1e-3).astype(dtype)  # an epsilon counts
    if draw.kind == SPECIAL and values.size:
        pool = np.array([*_SPECIAL, float(smallest(elem_type))]).astype(dtype)
        places = _places(values.size, len(pool), rng)
        values.ravel()[places] = pool[np.arange(len(places)) % len(pool)]
    return values


def _tied(values: np.ndarray) -> np.ndarray:
    """Gives the least number of each line to the next one in order, the largest to the one before
    it, along every axis: small inputs have few equal numbers by chance."""
    for axis, count in enumerate(values.shape if 0 < values.size <= _MANY else ()):
        order = np.argsort(values, axis)
        for first, next_one in ((0, 1),) * (count > 3) + ((-1, -2),) * (count > 1):
            extreme = np.take_along_axis(values, np.take(order, [first], axis), axis)
            np.put_along_axis(values, np.take(order, [next_one], axis), extreme, axis)
    return values


def _usual(size: int, most: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers around zero, some smaller, some larger."""
    drawn: np.ndarray = rng.standard_normal(size) * rng.choice([0.25, 1.0, most], size)
    return drawn


@functools.cache
def _usual_block(most: float) -> np.ndarray:
    """The numbers that large inputs take, each from another place on."""
    return _usual(_BLOCK, most, np.random.default_rng(_BLOCK))


def _places(size: int, kinds: int, rng: np.random.Generator) -> np.ndarray:
    """The places of special values: a sixth of all of them, one of each kind at least."""
    count = min(size, max(kinds, size // 6))
    if size <= _BLOCK:
        return rng.choice(size, count, replace=False)
    return np.arange(int(rng.integers(6)), size, 6)


def smallest(elem_type: int) -> float:
    """A denormal number of a type of floats, 0 for other types."""
    if elem_type not in FLOATS:
        return 0.0
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    info: Any = ml_dtypes.finfo  # without types
    return float(info(dtype).smallest_subnormal) * 4


def _integers(
    dtype: Any, shape: Sequence[int], role: Role, draw: Draw, rng: np.random.Generator
) -> np.ndarray:
    limits: Any = ml_dtypes.iinfo  # without types
    least, most = int(limits(dtype).min), int(limits(dtype).max)
    if role is Role.LENGTH:
        low, high = 0, min(5, draw.high)
    elif role is Role.DISTINCT:
        count = math.prod(shape)
        places = rng.permutation(max(draw.high, 1)) if count <= draw.high else np.arange(count)
        chosen: np.ndarray = np.asarray(places[:count] % draw.high).reshape(tuple(shape))
        return chosen.astype(dtype)
    elif role is Role.INDEX:
        low, high = max(draw.low, least), draw.high
    elif role is Role.DIVISOR:
        low, high = 1, 10
    elif most < 1 << 16:
        low, high = least, most + 1
    else:
        low, high = max(-20, least), 21
    values = np.asarray(rng.integers(low, min(high, most + 1), tuple(shape)))
    if draw.kind == TIES and role is Role.ANY:
        values = _tied(values)
    if low < 0 and role is Role.INDEX and values.size:
        values.ravel()[0] = -1
    if draw.kind == SPECIAL and role is Role.ANY and values.size:
        values = values.astype(np.int64 if least < 0 else np.uint64)
        pool = np.array([least, most, 0, 1, most - 1, least + 1], dtype=values.dtype)
        places = _places(values.size, len(pool), rng)
        values.ravel()[places] = pool[np.arange(len(places)) % len(pool)]
    return values.astype(dtype)
