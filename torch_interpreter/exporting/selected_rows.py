"""Runs the loops on what a mask selects for all its positions.

A mixture of experts loops on the experts that a token chose: ``for e in counts.nonzero()``. The
number of rounds depends on the data. A round of an expert that nobody chose adds nothing: the loop
may run on all the experts, each on the tokens that chose it, which may be none. The model tells if
it is so: its results are the same when it runs that way.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Collection, Iterator
from typing import Any

import torch

from ..checking.validation import compare
from ..patches.attributes import patched
from .known_buffers import Export, has_data, is_undecided, run_apart

#: largest number of rounds of a loop
_ROUNDS = 512
_TOLERANCE = 1e-5
pytree = torch.utils._pytree
_UNTYPED: Any = torch


class _Rounds:
    """The loops on selected positions.

    :param shorter: the lengths of the masks whose last position is left out
    """

    def __init__(self, shorter: Collection[int]) -> None:
        #: number of rounds on positions that are not selected
        self.added = 0
        #: the length of the mask whose last position runs
        self.last: int | None = None
        self._shorter = shorter
        self._masks: dict[int, tuple[Any, int]] = {}

    def select(self, found: torch.Tensor, mask: Any) -> None:
        """Remembers the mask some positions come from.

        :param found: the positions
        :param mask: the mask
        """
        if isinstance(mask, torch.Tensor) and mask.ndim == 1 and isinstance(mask.shape[0], int):
            self._masks[id(found)] = weakref.ref(found), mask.shape[0]

    def rows(self, found: torch.Tensor) -> Iterator[torch.Tensor] | None:
        """All the positions of the mask, None for another tensor.

        :param found: the positions, or another tensor
        """
        known, count = self._masks.get(id(found), (lambda: None, 0))
        if known() is not found or count > _ROUNDS or found.ndim != 2:
            return None
        if isinstance(found.shape[0], int):
            self.added += count - found.shape[0]
        return self._positions(count, found.device)

    def _positions(self, count: int, device: torch.device) -> Iterator[torch.Tensor]:
        for i in range(count - (count in self._shorter)):
            self.last = count if i == count - 1 else None
            yield torch.tensor([i], device=device)
        self.last = None


@contextlib.contextmanager
def _all_rows(shorter: Collection[int]) -> Iterator[_Rounds]:
    """Makes the loops on the rows of ``mask.nonzero()`` run on all positions in this context,
    without the last one for masks of some lengths. No round is skipped because nothing chose its
    position: a list of indices always has elements."""
    rounds = _Rounds(shorter)
    before = {name: getattr(torch.Tensor, name) for name in ("nonzero", "numel", "__iter__")}

    def nonzero(x: Any, *args: Any, **kwargs: Any) -> Any:
        found = before["nonzero"](x, *args, **kwargs)
        if isinstance(found, torch.Tensor):
            rounds.select(found, x)
        return found

    def iterate(x: Any) -> Any:
        rows = rounds.rows(x)
        return before["__iter__"](x) if rows is None else rows

    def numel(x: Any) -> Any:
        count = before["numel"](x)
        is_index = x.ndim == 1 and x.dtype == torch.int64
        return _UNTYPED.sym_max(count, 1) if is_index else count

    changes = {"nonzero": nonzero, "numel": numel, "__iter__": iterate}
    with patched(torch.Tensor, changes), patched(torch, {"nonzero": nonzero}):
        yield rounds


def loop_on_all_rows(
    export: Export, mod: torch.nn.Module, given: tuple[tuple[Any, ...], dict[str, Any]]
) -> torch.export.ExportedProgram:
    """Exports a model again with loops on all the positions of a mask, if it depends on the data,
    and if the model gives the same results with these loops.

    :param export: exports the model
    :param mod: the model
    :param given: positional and named arguments
    :raises GuardOnDataDependentSymNode: the model depends on the data in another way
    """
    try:
        return export()
    except Exception as e:
        shorter = _refused_rows(mod, given) if is_undecided(e) and has_data(mod, given) else None
        if shorter is None:
            raise
        with _all_rows(shorter):
            return export()


def _refused_rows(mod: torch.nn.Module, given: Any) -> Collection[int] | None:
    """The lengths of the masks whose last position a model refuses, whoever selects it: DBRX gives
    more classes to ``one_hot`` than it has experts. None if all other rounds may not be run.

    The tensors of the arguments are constant in a second trial: they select fewer positions.
    """
    added, shorter = 0, list[int]()
    for values in (given, pytree.tree_map_only(torch.Tensor, _constant, given)):
        try:
            expected, _ = run_apart(mod, values)
            got, rounds = _run_all_rows(mod, values, shorter)
        except Exception:  # the model refuses the values of the second trial
            return None
        if compare(expected, got, _TOLERANCE):
            return None
        added += rounds.added
    return shorter if added > 0 else None


def _run_all_rows(
    mod: torch.nn.Module, given: Any, shorter: list[int]
) -> tuple[list[Any], _Rounds]:
    """The results of a model with loops on all positions, except those it refuses, which are
    added to *shorter*."""
    with _all_rows(shorter) as rounds:
        try:
            return run_apart(mod, given)[0], rounds
        except IndexError:
            if rounds.last is None or rounds.last in shorter:
                raise
            shorter.append(rounds.last)
    return _run_all_rows(mod, given, shorter)


def _constant(value: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements are all the first one."""
    return value.reshape(-1)[:1].expand(value.numel()).reshape(value.shape).clone()
