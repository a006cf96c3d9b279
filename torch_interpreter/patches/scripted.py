"""Runs the Python code of the parts of a model that ``torch.jit.script`` compiled.

TorchScript gives integers for the sizes: torch.export makes them constants, or fails. The scripted
modules know the class they come from, and the functions the function.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .attributes import patched

_JIT: Any = torch.jit
_INTERNAL = ("training", "_is_full_backward_hook")


@contextlib.contextmanager
def in_python(mod: torch.nn.Module) -> Iterator[None]:
    """Replaces the scripted parts of a model by their Python code in this context.

    A module that was traced or loaded stays: its code is not known.

    :param mod: the model, its weights are shared

    >>> import torch
    >>> model = torch.nn.Sequential(torch.jit.script(torch.nn.Linear(2, 2)))
    >>> with in_python(model):
    ...     print(type(model[0]).__name__)
    Linear
    >>> type(model[0]).__name__
    'RecursiveScriptModule'
    """
    scripted = [
        (module, name, child)
        for module in mod.modules()
        for name, child in module._modules.items()
        if not isinstance(module, torch.jit.ScriptModule) and _source(child) is not None
    ]
    call = _JIT.ScriptFunction.__call__

    def run(function: Any, *args: Any, **kwargs: Any) -> Any:
        source = getattr(function, "_torchdynamo_inline", None)
        return call(function, *args, **kwargs) if source is None else source(*args, **kwargs)

    with patched(_JIT.ScriptFunction, {"__call__": run}):
        try:
            for module, name, child in scripted:
                module._modules[name] = _python_module(child)
            yield
        finally:
            for module, name, child in scripted:
                module._modules[name] = child


def _source(module: Any) -> Any:
    """The description of the class of a scripted module, None for any other module."""
    if not isinstance(module, _JIT.RecursiveScriptModule):
        return None
    if isinstance(module, _JIT.TopLevelTracedModule):
        return None
    kind = getattr(module, "_concrete_type", None)
    return kind if isinstance(getattr(kind, "py_class", None), type) else None


def _python_module(scripted: Any) -> Any:
    """A module of the class a scripted module comes from, with its weights and attributes."""
    kind = _source(scripted)
    if kind is None:
        return scripted
    module = kind.py_class.__new__(kind.py_class)
    torch.nn.Module.__init__(module)
    module.training = scripted.training
    for name, parameter in scripted.named_parameters(recurse=False, remove_duplicate=False):
        module.register_parameter(name, parameter)
    for name, buffer in scripted.named_buffers(recurse=False, remove_duplicate=False):
        module.register_buffer(name, buffer)
    for name, child in scripted.named_children():
        module.add_module(name, _python_module(child))
    for name in (*kind.get_constants(), *kind.get_attributes()):
        if name not in _INTERNAL and not hasattr(module, name):
            setattr(module, name, getattr(scripted, name))
    return module
