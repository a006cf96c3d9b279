"""Makes random inputs for a model from the declared types and shapes of its inputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto

from xbuilder.dims import Dim, evaluate, normalize, symbols
from xbuilder.errors import InvalidModelError, OptionError, XoptimError
from xbuilder.tensors.bits import element_type

#: default sizes of the dimensions a model leaves open, one after the other
DEFAULT_SIZES = (2, 3, 5, 4)
#: sizes of the open dimensions and bounds of the integers, tried until the model accepts one
_ATTEMPTS = ((None, 10), (None, 2), (None, 1), (4, 2), (16, 2), (32, 2), (64, 2), (224, 2))
#: larger sizes are first tried with a small batch
_SIDE, _BATCH = 4, 2
#: number of dimensions above which no sum of two of them is tried
_MOST_SUMMED = 6
#: lengths of a signal that models of sounds accept
_LENGTHS = (4096, 16000)
#: largest number of elements of an input, as more may not fit in memory
LARGEST_INPUT = 2**28
#: bits of the integers that take every value of their type
_FEW_BITS = 16


def required_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs a user has to give: those without an initializer as default value.

    :return: declarations of the inputs, in order
    """
    defaults = {i.name for i in model.graph.initializer}
    defaults.update(i.values.name for i in model.graph.sparse_initializer)
    return [i for i in model.graph.input if i.name not in defaults]


def open_dimensions(model: ModelProto) -> list[str]:
    """The dimensions of the inputs that have no size in the model, in order.

    A dimension without a name is called after its input and its position: `x[0]`. A dimension
    given by an expression (`2*seq`) counts for the symbols it contains.

    :return: names, each of them once
    """
    names: dict[str, None] = {}
    for value in required_inputs(model):
        names.update(_open_names(dimensions_of(value)))
    return list(names)


def _open_names(dims: Iterable[Dim]) -> dict[str, None]:
    """The names of the dimensions that are not integers, in order."""
    names = (sorted(symbols(d)) or [str(d)] for d in dims if not isinstance(d, int))
    return dict.fromkeys(itertools.chain.from_iterable(names))


def sizes_fixed_by(model: ModelProto, others: Iterable[ModelProto]) -> dict[str, int]:
    """The sizes that other models give to dimensions a model leaves open, such as a batch of 1.

    :param model: the model
    :param others: models whose inputs have the same names
    :return: sizes by name of dimension, those of the first model that has one

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[batch, 3] x) => (float[batch, 3] y) { y = Abs(x) }"
        >>> fixed = text.replace("batch", "1")
        >>> sizes_fixed_by(model_from_text(text), [model_from_text(fixed)])
        {'batch': 1}
    """
    known = {value.name: list(dimensions_of(value)) for value in required_inputs(model)}
    wanted = set(open_dimensions(model))
    found: dict[str, int] = {}
    for other in others:
        for value in required_inputs(other):
            for dim, size in zip(known.get(value.name, ()), dimensions_of(value), strict=False):
                if dim in wanted and isinstance(size, int):
                    found.setdefault(str(dim), size)
    return found


def lengths(model: ModelProto) -> list[str]:
    """The open dimensions that may be the length of a signal: the last one of an input made of
    floats.

    :return: names, each of them once

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[batch, 1, time] x) => (float[1] y) { y = ReduceSum(x) }"
        >>> lengths(model_from_text(text))
        ['time']
    """
    names: dict[str, None] = {}
    for value in required_inputs(model):
        tensor = tensor_type(value.type)
        if tensor is not None and _is_float(tensor.elem_type):
            names.update(_open_names(list(dimensions_of(value))[-1:]))
    return list(names)


def batches(model: ModelProto) -> list[str]:
    """The open dimensions that may be a batch of images: the first one of inputs of three
    dimensions or more, and of no input another one.

    :return: names, each of them once

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[n, 3, side, side] x) => (float[1] y) { y = ReduceSum(x) }"
        >>> batches(model_from_text(text))
        ['n']
    """
    first, others = dict[str, None](), dict[str, None]()
    for dims in map(list, map(dimensions_of, required_inputs(model))):
        (first if len(dims) > 2 else others).update(_open_names(dims[:1]))
        others.update(_open_names(dims[1:]))
    return [name for name in first if name not in others]


def complete_sizes(
    model: ModelProto, sizes: Mapping[str, int] | None = None, default: int | None = None
) -> dict[str, int]:
    """Gives a size to every open dimension of the inputs.

    :param model: any model
    :param sizes: sizes of some dimensions, by name
    :param default: size of the others, None to take different ones
    :return: size of every open dimension, by name
    :raises OptionError: if `sizes` names a dimension that does not exist or has a negative size
    """
    given = dict(sizes or {})
    dimensions = open_dimensions(model)
    for name, size in given.items():
        if name not in dimensions:
            raise OptionError(
                f"there is no dimension {name!r} in the inputs of the model, "
                f"its dimensions are {', '.join(dimensions) or 'all fixed'}"
            )
        if size < 0:
            raise OptionError(f"the size of dimension {name!r} is {size}, it cannot be negative")
    rest = [name for name in dimensions if name not in given]
    chosen = {
        name: DEFAULT_SIZES[i % len(DEFAULT_SIZES)] if default is None else default
        for i, name in enumerate(rest)
    }
    return {**chosen, **given}


def candidate_sizes(
    model: ModelProto, sizes: Mapping[str, int] | None
) -> Iterator[tuple[dict[str, int], int]]:
    """Enumerates the sizes a model may accept, the most likely first.

    :param model: any model
    :param sizes: sizes of some dimensions, by name
    :return: sizes of the open dimensions, upper bound of the integers
    """
    settled = set(open_dimensions(model)) <= set(sizes or {})
    few = {**dict.fromkeys(batches(model), _BATCH), **(sizes or {})}
    for default, high in _ATTEMPTS:
        if default is not None and default > _SIDE and not settled and len(few) > len(sizes or {}):
            yield complete_sizes(model, few, default), high
        if default is None or not settled:
            yield complete_sizes(model, sizes, default), high
    yield from ((chosen, 2) for chosen in _sums(model, sizes or {}))
    # two dimensions that have no name may have to be equal
    for default in () if settled else dict.fromkeys((*(sizes or {}).values(), 1)):
        yield complete_sizes(model, sizes, default), 2
    free = [name for name in lengths(model) if name not in (sizes or {})]
    for length in _LENGTHS if free else ():
        yield complete_sizes(model, {**dict.fromkeys(free, length), **(sizes or {})}, 1), 2


def _sums(model: ModelProto, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes where one dimension is the sum of two others: the mask of a decoder covers the tokens
    of its cache and the new ones."""
    chosen = complete_sizes(model, sizes)
    for total in (n for n in chosen if n not in sizes and len(chosen) <= _MOST_SUMMED):
        others = [name for name in chosen if name != total]
        for first, second in itertools.combinations(others, 2):
            yield {**chosen, total: chosen[first] + chosen[second]}


def random_inputs(
    model: ModelProto,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    integer_high: int = 10,
    pools: Mapping[str, Sequence[Any]] | None = None,
    scale: float = 1.0,
    empty: Container[str] = (),
) -> dict[str, Any]:
    """Makes random inputs for a model.

    Floats follow a normal law, booleans are fair coins, integers of 16 bits and less take every
    value of their type (images, quantized tensors), larger integers are in `[0, integer_high)`
    since they usually are indices or counts. Optional inputs hold a value. Inputs with a default
    value are left to it.

    :param model: any model
    :param sizes: sizes of the dimensions the model leaves open, by name (`x[0]` for a dimension
        without a name); the others are chosen
    :param seed: same seed, same inputs
    :param integer_high: upper bound, excluded, of 32- and 64-bit integers
    :param pools: values of some inputs, by name, each element is one of them
    :param scale: factor of the floats
    :param empty: the optional inputs that hold nothing
    :return: one numpy array by input, a list of two arrays for a sequence, None for an optional
        that holds nothing
    :raises OptionError: if `sizes` does not fit the model
    :raises XoptimError: if an input has a type that cannot be made, or too many numbers

    .. code-block:: python

        feeds = random_inputs(model, sizes={"batch": 4}, seed=1)
    """
    law = _Law(np.random.default_rng(seed), complete_sizes(model, sizes), integer_high, scale)
    pools = pools or {}
    feeds: dict[str, Any] = {}
    for value in required_inputs(model):
        if value.name in empty:
            feeds[value.name] = None
        else:
            feeds[value.name] = _value(value.name, value.type, law, pools.get(value.name))
    return feeds


def optional_inputs(model: ModelProto) -> list[str]:
    """The inputs that may hold nothing."""
    return [v.name for v in required_inputs(model) if v.type.HasField("optional_type")]


def _value(name: str, kind: TypeProto, law: _Law, pool: Sequence[Any] | None) -> Any:
    if kind.HasField("optional_type"):
        return _value(name, kind.optional_type.elem_type, law, pool)
    if kind.HasField("sequence_type"):
        return [_value(name, kind.sequence_type.elem_type, law, pool) for _ in range(2)]
    return _tensor(name, kind, law, pool)


def tensor_type(kind: TypeProto) -> TypeProto.Tensor | None:
    """The type of a tensor, or of those a sequence or an optional holds; None for another type.

    :param kind: the type of an input
    """
    for container in ("sequence_type", "optional_type"):
        if kind.HasField(container):
            return tensor_type(getattr(kind, container).elem_type)
    return kind.tensor_type if kind.HasField("tensor_type") else None


def dimensions_of(value: ValueInfoProto) -> Iterator[Dim]:
    """The dimensions of an input, named after it and their position if they have no name.

    :param value: declaration of the input

    Example::

        >>> from onnx import helper
        >>> list(dimensions_of(helper.make_tensor_value_info("x", 1, ["batch", 3, None])))
        ['batch', 3, 'x[2]']
    """
    tensor = tensor_type(value.type)
    if tensor is not None:
        yield from _tensor_dimensions(value.name, tensor)


def elem_type_of(value: ValueInfoProto) -> int:
    """The element type of an input, 0 if it is no tensor.

    :param value: declaration of the input

    >>> from onnx import TensorProto, helper
    >>> elem_type_of(helper.make_tensor_value_info("x", TensorProto.INT64, ["n"]))
    7
    """
    return int(value.type.tensor_type.elem_type) if value.type.HasField("tensor_type") else 0


def _tensor_dimensions(name: str, tensor: TypeProto.Tensor) -> Iterator[Dim]:
    for i, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            yield dim.dim_value
        else:
            # some exporters write -1 or ? for a dimension they know nothing about
            yield f"{name}[{i}]" if dim.dim_param in {"", "?"} else normalize(dim.dim_param)


class _Law(NamedTuple):
    """The distribution of the values, see :func:`random_inputs`."""

    rng: np.random.Generator
    sizes: Mapping[str, int]
    integer_high: int
    scale: float


def _tensor(name: str, kind: TypeProto, law: _Law, pool: Sequence[Any] | None = None) -> Any:
    tensor = tensor_type(kind)
    if tensor is None:
        raise XoptimError(f"input {name!r} is not a tensor, no random value can be made for it")
    shape = tuple(
        dim
        if isinstance(dim, int)
        else law.sizes[dim]
        if dim in law.sizes
        else evaluate(dim, law.sizes)
        for dim in _tensor_dimensions(name, tensor)
    )
    if min(shape, default=0) < 0:
        raise XoptimError(f"input {name!r} would have shape {shape}: give other sizes")
    # numpy refuses an empty array whose other dimensions are too large
    if math.prod(max(dim, 1) for dim in shape) > LARGEST_INPUT:
        raise XoptimError(
            f"input {name!r} would have shape {shape}, more than {LARGEST_INPUT} numbers: "
            f"give other sizes or real inputs"
        )
    return _random_array(name, tensor.elem_type, shape, law, pool)


def _random_array(
    name: str, elem_type: int, shape: tuple[int, ...], law: _Law, pool: Sequence[Any] | None
) -> np.ndarray:
    rng = law.rng
    if elem_type == TensorProto.STRING and pool:
        return np.asarray(rng.choice(np.array(pool, dtype=object), shape), dtype=object)
    if elem_type == TensorProto.STRING:
        words = rng.integers(0, 100, shape)
        return np.array([f"w{i}" for i in words.ravel()], dtype=object).reshape(shape)
    if elem_type == TensorProto.BOOL and pool:
        return np.asarray(rng.choice(np.array(pool), shape)).astype(np.bool_)
    if elem_type == TensorProto.BOOL:
        return np.asarray(rng.integers(0, 2, shape), dtype=np.bool_)
    try:
        dtype, bits = element_type(elem_type)
    except InvalidModelError as e:
        text = _name_of(elem_type) if elem_type else "unknown"
        raise XoptimError(
            f"input {name!r} has type {text}, random values cannot be made for it"
        ) from e
    if pool:
        return np.asarray(rng.choice(np.array(pool), shape)).astype(dtype)
    if _is_float(elem_type):
        return np.asarray(law.scale * rng.standard_normal(shape)).astype(dtype)
    if _name_of(elem_type).startswith("COMPLEX"):
        parts = law.scale * rng.standard_normal((2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
    if bits > _FEW_BITS:
        return np.asarray(rng.integers(0, law.integer_high, shape)).astype(dtype)
    lowest = 0 if _name_of(elem_type).startswith("U") else -(2 ** (bits - 1))
    return np.asarray(rng.integers(lowest, lowest + 2**bits, shape)).astype(dtype)


def _name_of(elem_type: int) -> str:
    """The name of an element type, its number if onnx does not know it."""
    names = {number: text for text, number in TensorProto.DataType.items()}
    return str(names.get(elem_type, elem_type))


def _is_float(elem_type: int) -> bool:
    return _name_of(elem_type).startswith(("FLOAT", "DOUBLE", "BFLOAT"))
