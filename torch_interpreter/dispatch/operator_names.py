"""The names users may give to the operators of torch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import torch

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

_COND = torch.ops.higher_order.cond
#: modules of Python whose functions torch.export keeps in its graphs
_PYTHON = ("operator.", "math.", "builtins.", "torch.sym_")
#: libraries of torch, whose operators may have the name of another one: theirs is always needed
_NAMESPACES = (
    *("aten", "prims", "quantized", "_quantized", "quantized_decomposed"),
    *("sparse", "mkldnn", "onednn"),
)


def checked_operators(names: Collection[Any], known: Collection[str], option: str) -> set[Any]:
    """The operators an option names; ``torch.cond`` is that of its graphs.

    :param names: operators of torch, or their names
    :param known: other names that are right
    :param option: name of the option, for the message
    :raises OptionError: torch has no operator with this name

    >>> sorted(checked_operators({"aten::add.Tensor", "torch.cond"}, (), "names"))
    ['aten::add.Tensor', 'higher_order.cond']
    >>> checked_operators({"aten.adds"}, (), "names")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    xbuilder.errors.OptionError: names: torch has no operator 'aten.adds'. Did you mean aten.add...
    """
    found = {"higher_order.cond" if n in (torch.cond, "torch.cond") else n for n in names}
    unknown = [n for n in found if n not in known and not _is_operator(n)]
    if not unknown:
        return found
    existing = {form for name in _registered() for form in _forms(name)}
    unknown = [n for n in unknown if n not in existing]
    if not unknown:
        return found
    name = sorted(map(_text, unknown))[0]
    full = [f"{namespace}.{name.split('.')[-1]}" for namespace in _NAMESPACES]
    meant = [n for n in full if n in existing][:1] or closest_names(
        name, sorted(n for n in existing if n.count(".") == 1 and ":" not in n)
    )
    hint = f"Did you mean {' or '.join(meant)}?" if meant else "A name is aten.add.Tensor."
    raise OptionError(f"{option}: torch has no operator {name!r}. {hint}")


def _is_operator(value: Any) -> bool:
    """Whether a value is an operator, or the name of a function of Python."""
    if isinstance(value, str):
        return value.startswith(_PYTHON)
    kinds = torch._ops.OpOverload | torch._ops.OpOverloadPacket | torch._ops.HigherOrderOperator
    return isinstance(value, kinds)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"torch.{getattr(value, '__name__', value)}"


def _registered() -> Iterator[str]:
    """The operators of torch and of the libraries that are loaded."""
    yield from torch._C._dispatch_get_all_op_names()
    yield from (f"higher_order::{name}" for name in torch._ops._higher_order_ops)


def _forms(name: str) -> Iterator[str]:
    """Every text that a user may write for an operator.

    :param name: ``aten::add.Tensor``
    """
    namespace, _, full = name.partition("::")
    op, _, overload = full.partition(".")
    if namespace == "higher_order":
        yield from (op, f"higher_order.{op}", f"torch.ops.higher_order.{op}")
        return
    for text in (f"{op}.{overload or 'default'}", f"{op}_{overload or 'default'}", op):
        if namespace not in _NAMESPACES:
            yield text
        yield from (f"{namespace}{sign}{text}" for sign in (".", "::", "_"))
