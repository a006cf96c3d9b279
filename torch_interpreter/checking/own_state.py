"""Models that keep a state in their attributes: a call depends on the calls before it."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ..patches.fake_tensors import has_no_data
from .changing_lines import changing_line
from .held_values import OF_PYTHON, held_values
from .own_attributes import restored_attributes
from .validation import clone_arguments, compare

_ASSIGNED = re.compile(r"The tensor attributes? (.*) (?:was|were) assigned during export")
#: the weights of a recurrent layer, which torch itself assigns
_WEIGHT = re.compile(r"(^|\.)_flat_weights\[\d+\]$")
#: how many attributes a message names
_LISTED = 3
_TOLERANCE = 1e-6
#: how many calls are compared with the first one if the model draws numbers of Python
_DRAWS = 8
#: most values that are compared at each line of a model
_WATCHED = 1 << 12
pytree = torch.utils._pytree


@contextlib.contextmanager
def assigned_attributes() -> Iterator[list[str]]:
    """Collects the attributes that torch sees a model assign in this context, in place of its
    warning; other warnings are shown at the end.

    ::

        with assigned_attributes() as names:
            torch.export.export(model, args)
        print(names)
    """
    names = list[str]()
    caught = list[warnings.WarningMessage]()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", message=_ASSIGNED.pattern)
            yield names
    finally:
        for warning in caught:
            found = _ASSIGNED.match(str(warning.message))
            if found is None:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
            else:
                new = (n for n in found[1].split(", ") if not _WEIGHT.search(n))
                names.extend(n for n in new if n not in names)  # an export may start again


def state_message(
    mod: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    names: Sequence[str],
    changed: Sequence[str] = (),
) -> str:
    """A warning about a model that does not give the same results when it is called again, or that
    assigns tensors and does not run; empty if what it assigns is no state.

    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    :param names: the tensors that it assigns
    :param changed: the buffers and the values of Python that it changes
    """
    if not names and not changed:
        return ""
    is_drawn = any(name.startswith(OF_PYTHON) for name in changed)
    repeated = _is_repeated(mod, args, kwargs, _DRAWS if is_drawn else 1)
    if repeated or (repeated is None and not names):
        return ""
    others = (n for n in changed if not any(_is_in(name, n) for name in names))
    names = list(dict.fromkeys([*names, *others]))
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    place = "" if repeated is None else _place(mod, args, kwargs, names)
    listed = ", ".join(names[:_LISTED]) + more
    reason = (
        "it does not run here a second time, which would tell whether its results depend on it"
        if repeated is None
        else "its results depend on it: the same arguments give other results the next time"
    )
    return (
        f"The model changes {listed} when it is called, and {reason}. The graph computes the first "
        "call: make such a state an argument and a result of forward."
        + (f" It changes at {place}." if place else "")
    )


def _is_in(name: str, owner: str) -> bool:
    """Whether a name is another one, or the one of an item of it: ``self.seen[0]``."""
    return name == owner or name.startswith((f"{owner}[", f"{owner}."))


def _place(
    mod: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str]
) -> str:
    """The line of a model that changes one of its values first, empty if it is not known, or if
    there are many values to compare at each line."""
    with _copied_tensors(mod), torch.no_grad():
        watched = [h for h in held_values(mod) if any(n.startswith(h.owner) for n in names)]
        if sum(len(held.before) for held in watched) > _WATCHED:
            return ""
        buffers = {f"self.{name}": b for name, b in mod.named_buffers() if f"self.{name}" in names}
        versions = _versions(buffers)

        def is_changed() -> bool:
            changed = (c for held in watched for c in held.changes())
            return _versions(buffers) != versions or any(
                _is_in(n, c) for c in changed for n in names
            )

        arguments = clone_arguments((tuple(args), dict(kwargs)))
        return changing_line(lambda: _called(mod, *arguments), is_changed)


def _versions(tensors: Mapping[str, torch.Tensor]) -> list[int]:
    """The number of times tensors were changed."""
    return [t._version for t in tensors.values()]


def _is_repeated(
    mod: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], count: int
) -> bool | None:
    """Whether other calls with the same arguments and the same random numbers of torch give the
    results of the first one; None if the model does not run. The model is left as it was."""
    given = (tuple(args), dict(kwargs))
    tensors = (*pytree.tree_leaves(given), *mod.parameters(), *mod.buffers())
    if any(map(has_no_data, tensors)):
        return None
    try:
        with _copied_tensors(mod), torch.no_grad():
            first = _called(mod, *clone_arguments(given))
            others = (_called(mod, *clone_arguments(given)) for _ in range(count))
            return not any(compare(first, other, _TOLERANCE) for other in others)
    except Exception:  # a model may fail in any way, or return what is not compared
        return None


def _called(mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The results of a call, always with the same random numbers."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(0)
        leaves: list[Any] = clone_arguments(pytree.tree_leaves(mod(*args, **kwargs)))
    return leaves


@contextlib.contextmanager
def _copied_tensors(mod: torch.nn.Module) -> Iterator[None]:
    """Gives a model copies of its buffers and of the tensors among its attributes, which it may
    change in this context."""
    with restored_attributes(mod):
        before = [(own, dict(own)) for m in mod.modules() for own in (m._buffers, vars(m))]
        tensors = {id(v): v for _, own in before for v in own.values() if _is_tensor(v)}
        copies = {key: tensor.detach().clone() for key, tensor in tensors.items()}
        for own, values in before:
            own.update({name: copies.get(id(value), value) for name, value in values.items()})
        try:
            yield
        finally:
            for own, values in before:
                own.clear()
                own.update(values)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
