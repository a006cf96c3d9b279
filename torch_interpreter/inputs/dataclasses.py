"""Dataclasses of the user among the arguments or the results of a model.

torch.export takes the containers torch knows how to flatten. A dataclass is one of them during a
conversion, torch forgets it afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

pytree = torch.utils._pytree


@contextlib.contextmanager
def flattened_dataclasses(mod: Any, values: Any) -> Iterator[None]:
    """Makes torch flatten the dataclasses of some arguments and those a model returns.

    :param mod: a module
    :param values: its arguments

    >>> import dataclasses, torch
    >>> @dataclasses.dataclass
    ... class Pair:
    ...     first: torch.Tensor
    ...     second: torch.Tensor
    >>> pair = Pair(torch.ones(2), torch.zeros(2))
    >>> with flattened_dataclasses(torch.nn.Identity(), pair):
    ...     print(len(torch.utils._pytree.tree_leaves(pair)))
    2
    >>> len(torch.utils._pytree.tree_leaves(pair))
    1
    """
    registered: list[type] = []

    def look(module: Any, args: Any, output: Any) -> None:
        # strict mode goes through the bytecode of this hook
        if not torch.compiler.is_dynamo_compiling():
            _register(output, registered)

    with contextlib.ExitStack() as stack:
        if isinstance(mod, torch.nn.Module) and not isinstance(mod, torch.jit.ScriptModule):
            stack.callback(mod.register_forward_hook(look).remove)
        try:
            _register(values, registered)
            yield
        finally:
            for found in registered:
                pytree._deregister_pytree_node(found)


def _register(value: Any, registered: list[type]) -> None:
    """Registers the dataclasses in a value, those torch flattens already excepted."""
    found, known = type(value), pytree.SUPPORTED_NODES
    if dataclasses.is_dataclass(found) and found not in known:
        if any(not f.init for f in dataclasses.fields(found)) or isinstance(value, torch.nn.Module):
            return
        # two local classes may have the same name
        name = f"{found.__module__}.{found.__qualname__}.{id(found)}"
        torch.export.register_dataclass(found, serialized_type_name=name)
        registered.append(found)
    kind = known.get(pytree._get_node_type(value))
    for child in kind.flatten_fn(value)[0] if kind is not None else ():
        _register(child, registered)
