"""The inputs of a conversion: arguments, names, and the feeds of an ONNX runtime."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from xbuilder.errors import OptionError
from xbuilder.support.argument_types import check_type

from ..common.types import to_numpy_type, to_onnx_type


def split_arguments(
    args: Sequence[Any] | Mapping[str, Any] | torch.Tensor | None,
    kwargs: Mapping[str, Any] | None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Splits arguments into positional and named ones; a dictionary is all named.

    :raises OptionError: an argument is given twice, or *args* or *kwargs* has another type
    """
    check_type("kwargs", kwargs, Mapping, "a dictionary of named arguments", optional=True)
    kinds = (Sequence, Mapping, torch.Tensor)
    check_type("args", args, kinds, "a tuple of arguments, or a dictionary", optional=True)
    named = dict(kwargs or {})
    if isinstance(args, Mapping):
        both = sorted(set(args) & set(named))
        if both:
            raise OptionError(f"Arguments {both} are both in args and in kwargs.")
        return (), {**args, **named}
    if isinstance(args, torch.Tensor):
        return (args,), named
    return tuple(args or ()), named


def distinct_tensors(values: Any) -> Any:
    """Copies tensors given several times, since torch.export would see only one input.

    :param values: any nested python structure
    """
    seen: set[int] = set()

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or id(value) not in seen:
            seen.add(id(value))
            return value
        return value.detach().clone()

    return torch.utils._pytree.tree_map(copy, values)


@dataclass(slots=True, eq=False)
class ModelInput:
    """One leaf of the arguments.

    :param name: name of the placeholder
    :param fake: its fake value in torch, None or a python value when it is not an input
    :param node: the placeholder
    :param onnx_name: name in the model, None if torch kept the value as a constant
    """

    name: str
    fake: Any
    node: torch.fx.Node
    onnx_name: str | None = None


def is_model_input(fake: Any) -> bool:
    """Whether a leaf is an input of the model: a tensor or a symbolic number.

    None and python values are constants.
    """
    return isinstance(fake, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool) and not (
        not isinstance(fake, torch.Tensor) and fake.node.expr.is_number
    )


def name_inputs(inputs: Sequence[ModelInput], input_names: Sequence[str] | None) -> None:
    """Names the inputs after the user's names, or after the arguments when there are none.

    :param inputs: all leaves of the arguments, in order
    :param input_names: one name for each input of the model, or one for each leaf
    :raises OptionError: wrong number of names or duplicates
    """
    kept = [i for i in inputs if is_model_input(i.fake)]
    names = [i.name for i in kept]
    if input_names:
        if len(input_names) == len(inputs):
            names = [n for n, i in zip(input_names, inputs, strict=True) if i in kept]
        elif len(input_names) == len(kept):
            names = list(input_names)
        else:
            raise OptionError(
                f"input_names has {len(input_names)} names, the model has {len(kept)} inputs: "
                f"{[i.name for i in kept]}."
            )
    duplicates = sorted({n for n in names if names.count(n) > 1})
    if duplicates:
        raise OptionError(f"input_names has duplicates: {duplicates}.")
    for model_input, name in zip(kept, names, strict=True):
        model_input.onnx_name = name


def to_numpy(value: Any) -> np.ndarray:
    """Converts a tensor or a python number into an array for an ONNX runtime."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().contiguous().resolve_conj().resolve_neg()
        if tensor.dtype == torch.bfloat16:
            return tensor.view(torch.uint16).numpy().view(to_numpy_type(to_onnx_type(value.dtype)))
        return tensor.numpy()
    if isinstance(value, np.ndarray):
        return value
    return np.array(value, dtype=to_numpy_type(to_onnx_type(type(value))))


def match_input_parameters(
    model: Any, names: Sequence[str], args: tuple[Any, ...] | None = None, **kwargs: Any
) -> dict[str, Any]:
    """Associates the names of the parameters of a model or a function with values.

    :param model: a module or a function
    :param names: names of the inputs to return, in order
    :param args: positional arguments
    :param kwargs: named arguments
    :return: a value for each name which has one
    :raises OptionError: the arguments do not fit the signature

    ::

        match_input_parameters(model, ["x", "mask"], (x,), mask=m)  # {"x": x, "mask": m}
    """
    fct: Callable[..., Any] = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        bound = inspect.signature(fct).bind(*(args or ()), **kwargs)
    except TypeError as e:
        raise OptionError(f"The arguments do not fit {fct}: {e}") from e
    bound.apply_defaults()
    named = dict(bound.arguments)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named.update(named.pop(parameter.name))
    return {name: named[name] for name in names if name in named}
