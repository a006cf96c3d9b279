"""The inputs of a conversion: arguments, names, and the feeds of an ONNX runtime."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from xbuilder.errors import OptionError
from xbuilder.support.argument_types import PATH, check_type

from ..common.types import is_symbolic, to_numpy_type, to_onnx_type


def split_arguments(
    args: Sequence[Any] | Mapping[str, Any] | torch.Tensor | None,
    kwargs: Mapping[str, Any] | None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Splits arguments into positional and named ones; a dictionary is all named.

    :raises OptionError: an argument is given twice, or *args* or *kwargs* has another type
    """
    if isinstance(kwargs, PATH):
        raise OptionError(
            f"kwargs expects a dictionary of named arguments, not {str(kwargs)!r}: a file is "
            f"to_onnx(..., filename={str(kwargs)!r})."
        )
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


def without_wrapper(mod: Any) -> Any:
    """The module inside ``torch.compile`` or ``DataParallel``, whose arguments have names.

    A wrapper with hooks stays, they change the results.

    :param mod: anything :func:`to_onnx` accepts
    """
    from torch._dynamo import OptimizedModule

    kinds = (OptimizedModule, torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while isinstance(mod, kinds) and not (mod._forward_hooks or mod._forward_pre_hooks):
        mod = mod._orig_mod if isinstance(mod, OptimizedModule) else mod.module
    return mod


def distinct_tensors(values: Any) -> Any:
    """Copies tensors given several times, since torch.export would see only one input, and those
    that are not contiguous: the inputs of an ONNX model are, and a model may ask.

    :param values: any nested python structure
    """
    seen: set[int] = set()

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in seen:
            return value.detach().clone(memory_format=torch.contiguous_format)
        seen.add(id(value))
        is_dense = value.layout is torch.strided and not value.is_nested
        return value.detach().contiguous() if is_dense and not value.is_contiguous() else value

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
    if isinstance(fake, torch.Tensor):
        return True
    return is_symbolic(fake) and not fake.node.expr.is_number


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
    """Associates the names of the inputs of a graph with the arguments and the weights of a model.

    :param model: a module or a function
    :param names: names of the inputs to return, in order: those of the signature, of the weights
        (``linear.weight``), those torch.export (``p_linear_weight``, ``b_linear_buffer``) or
        torch.compile (``L_x_``, ``L_self_modules_linear_parameters_weight_``) give to both
    :param args: positional arguments
    :param kwargs: named arguments; without any argument, only weights have a value
    :return: a value for each name which has one
    :raises OptionError: the arguments do not fit the signature

    ::

        match_input_parameters(model, ["x", "p_linear_weight"], (x,))
    """
    fct: Callable[..., Any] = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        signature = inspect.signature(fct)
        bound = (
            signature.bind(*(args or ()), **kwargs) if args or kwargs else signature.bind_partial()
        )
    except TypeError as e:
        raise OptionError(f"The arguments do not fit {fct}: {e}") from e
    bound.apply_defaults()
    named = dict(bound.arguments)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named.update(named.pop(parameter.name))
    known = {f"L_{name}_": value for name, value in named.items()}
    if isinstance(model, torch.nn.Module):
        known.update(_named_weights(model))
    known.update(named)
    known.update({k.replace("L_", "l_", 1): v for k, v in known.items() if k.startswith("L_")})
    return {name: known[name] for name in names if name in known}


def _named_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The weights of a model by their names in the model, and in a graph of torch.export or
    torch.compile. A name that stands for two weights is left out."""
    found: dict[str, list[torch.Tensor]] = {}
    for kind in ("parameters", "buffers"):
        for name, value in getattr(model, f"named_{kind}")(remove_duplicate=False):
            *modules, last = name.split(".")
            path = "".join(f"modules_{m}_" for m in modules)
            exported = f"{kind[0]}_{name.replace('.', '_').lower()}"
            for key in (name, exported, f"L_self_{path}{kind}_{last}_"):
                found.setdefault(key, []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}
