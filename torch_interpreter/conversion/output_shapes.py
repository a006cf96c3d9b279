"""The names the user gives to the dimensions of the outputs (``output_dynamic_shapes``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from xbuilder.dims import prove_equal
from xbuilder.errors import OptionError

from ..inputs.dynamic_shapes import DimensionNamer, user_name
from ..writing.fx_nodes import fake_value


def name_output_dimensions(
    namer: DimensionNamer, outputs: Sequence[Any], names: Sequence[str], output_dynamic_shapes: Any
) -> dict[str, tuple[int | str, ...]]:
    """Gives the user's names to the dimensions of the outputs.

    A dimension no input has (the result of nonzero) takes the name everywhere. A dimension computed
    from the inputs (``past+seq``) takes it in the declaration of the output.

    :param namer: prints the dimensions, the names of the inputs are known
    :param outputs: outputs of the model, None included
    :param names: names of the outputs which are not None
    :param output_dynamic_shapes: one specification (``{axis: name}``, list of names or None) for
        each output, as a list, a dictionary from the names of the outputs, or nested as the
        outputs of the model are
    :return: the shapes to declare for the outputs with a name for an expression
    :raises OptionError: a name cannot be given: unknown output, wrong axis, constant dimension,
        dimension of an input with another name, name of another dimension

    ::

        to_onnx(model, (x,), output_dynamic_shapes=({0: "count"},))
    """
    if output_dynamic_shapes is None:
        return {}
    kept = [o for o in outputs if o is not None]
    specs = _specifications(output_dynamic_shapes, outputs, names)
    asked = [
        (name, axis, _dimension(output, axis, name), wanted)
        for output, name, spec in zip(kept, names, specs, strict=True)
        for axis, dim in (spec.items() if isinstance(spec, Mapping) else enumerate(spec or ()))
        if (wanted := user_name(dim)) is not None
    ]
    aliases = _give_names(namer, asked)
    shapes: dict[str, tuple[int | str, ...]] = {}
    for output, name in zip(kept, names, strict=True):
        fake = fake_value(output) if isinstance(output, torch.fx.Node) else output
        if isinstance(fake, torch.Tensor):
            shape = namer.shape(fake.shape)
            axes = range(len(shape))
            if any((name, axis) in aliases for axis in axes):
                shapes[name] = tuple(aliases.get((name, axis), shape[axis]) for axis in axes)
    return shapes


def simplest_shape(
    namer: DimensionNamer, output: Any, known: Sequence[int | str]
) -> tuple[int | str, ...] | None:
    """The shape to declare for an output where torch knows a simpler one: an integer, or a
    dimension of an input instead of an expression, right for the sizes the export accepts.

    :param namer: prints the dimensions
    :param output: one output of the model
    :param known: the shape inferred from the nodes, ``("b+min(1,b)-1", 4)``
    :return: None if torch knows nothing simpler
    """
    fake = fake_value(output) if isinstance(output, torch.fx.Node) else output
    if not isinstance(fake, torch.Tensor) or fake.ndim != len(known):
        return None
    simple = {*namer.names.values()}

    def is_simple(dim: int | str) -> bool:
        return isinstance(dim, int) or dim in simple

    shape = tuple(
        named if is_simple(named) and not is_simple(dim) else dim
        for dim, named in zip(known, namer.shape(fake.shape), strict=True)
    )
    return None if shape == tuple(known) else shape


def _specifications(spec: Any, outputs: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """One specification for each output which is not None."""
    if isinstance(spec, Mapping) and spec and set(spec) <= set(names):
        return [spec.get(name) for name in names]
    flat = [spec] if _is_one(spec) else list(_leaves(spec))
    if len(flat) == len(outputs):
        flat = [s for s, o in zip(flat, outputs, strict=True) if o is not None]
    if len(flat) != len(names):
        raise OptionError(
            f"output_dynamic_shapes must describe the {len(names)} outputs {list(names)}, None for "
            f"one without names, or be a dictionary whose keys are some of these names. "
            f"It describes {len(flat)} outputs: {spec}."
        )
    return flat


def _is_one(spec: Any) -> bool:
    """Whether a specification describes a single output."""
    if isinstance(spec, Mapping):
        return all(isinstance(k, int) for k in spec)
    if isinstance(spec, list | tuple):
        return any(d is not None and not isinstance(d, Mapping | list | tuple) for d in spec)
    return spec is None


def _leaves(spec: Any) -> Iterator[Any]:
    if _is_one(spec):
        yield spec
        return
    if not isinstance(spec, Mapping | list | tuple):
        raise OptionError(
            f"output_dynamic_shapes expects dictionaries {{axis: name}} or lists of names, "
            f"not {spec!r}."
        )
    for value in spec.values() if isinstance(spec, Mapping) else spec:
        yield from _leaves(value)


def _where(name: str, axis: Any) -> str:
    return f"output_dynamic_shapes, axis {axis} of output {name!r}"


def _dimension(output: Any, axis: Any, name: str) -> torch.SymInt:
    """The dimension that receives a name."""
    fake = fake_value(output) if isinstance(output, torch.fx.Node) else output
    where = _where(name, axis)
    if not isinstance(fake, torch.Tensor):
        raise OptionError(f"{where}: this output is no tensor, it has no dimension.")
    if not isinstance(axis, int) or not 0 <= axis < fake.ndim:
        raise OptionError(f"{where}: the output has {fake.ndim} dimensions, {tuple(fake.shape)}.")
    dim = fake.shape[axis]
    if not isinstance(dim, torch.SymInt) or dim.node.expr.is_number:
        raise OptionError(f"{where}: this dimension is always {dim}, it cannot have a name.")
    return dim


def _give_names(
    namer: DimensionNamer, asked: Sequence[tuple[str, Any, torch.SymInt, str]]
) -> dict[tuple[str, Any], str]:
    """Names the symbols first, returns the names left for expressions by output and axis."""
    # torch may have several symbols for one name of the user, so texts are compared
    texts = [namer.dim(dim) for _, _, dim, _ in asked]
    owners: dict[str, int | str] = {}
    for (name, axis, dim, wanted), text in zip(asked, texts, strict=True):
        expr = dim.node.expr
        if prove_equal(owners.setdefault(wanted, text), text) is not True:
            raise OptionError(
                f"{_where(name, axis)}: {wanted!r} is already the name of another dimension, "
                f"this one is {text}."
            )
        if expr.is_Symbol and expr.name not in namer.names and wanted not in namer.names.values():
            namer.name_symbol(dim, wanted)
    aliases: dict[tuple[str, Any], str] = {}
    for name, axis, dim, wanted in asked:
        known, expr = namer.dim(dim), dim.node.expr
        if prove_equal(known, wanted) is True:
            continue
        if expr.is_Symbol:
            raise OptionError(
                f"{_where(name, axis)}: this dimension already has the name {known!r}, "
                f"use it instead of {wanted!r}."
            )
        if wanted in namer.names.values():
            raise OptionError(
                f"{_where(name, axis)}: {wanted!r} is the name of another dimension, this one is "
                f"{known}."
            )
        aliases[name, axis] = wanted
    return aliases
