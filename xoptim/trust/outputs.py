"""Compares two versions of one output: an array, a sequence, a map, an optional."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from xbuilder.tensors.closeness import MOST_ROUNDING, Criterion, Gap

from .windows.differences import map_columns


@dataclass
class OutputDifference:
    """The difference between two versions of one output.

    :param output: name of the output
    :param dtype: element type in the first model
    :param shape: shape in the first model
    :param max_abs: largest absolute difference
    :param max_rel: largest difference relative to the expected value; values smaller than the
        mean magnitude of the output count for that mean
    :param ok: the difference is accepted
    :param reason: reason of the refusal, or a remark; empty otherwise
    :param where: index of the largest relative difference; in a sequence, the position of the
        element comes first
    :param values: the two values there, as text
    """

    output: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    max_rel: float
    ok: bool
    reason: str = ""
    where: tuple[int, ...] = ()
    values: tuple[str, str] = ("", "")

    @property
    def is_rounding(self) -> bool:
        """Whether the difference is refused, and may be the rounding of a noisy model."""
        rounded = self.dtype.startswith(("float", "bfloat", "complex", "sequence"))
        return rounded and not self.ok and 0 < self.max_rel <= MOST_ROUNDING

    def to_row(self) -> dict[str, Any]:
        """The difference as a dictionary json accepts."""
        row = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in row.items()}


def compare_outputs(
    name: str,
    expected: Any,
    got: Any,
    criterion: Criterion | None = None,
    random: bool = False,
    noisy: Sequence[Any] = (),
) -> OutputDifference:
    """Compares two versions of one output.

    :param name: name of the output
    :param expected: array, list of arrays (sequence), dictionary (map), or None (optional)
    :param got: the other version
    :param criterion: the accepted difference, the default one if None
    :param random: compares types and shapes only
    :param noisy: the expected output with other roundings
    :return: the difference
    """
    criterion = criterion or Criterion()
    if isinstance(expected, dict) and isinstance(got, dict):
        others = [map_columns(value) for value in noisy if isinstance(value, dict)]
        columns = map_columns(expected), map_columns(got)
        return compare_outputs(name, *columns, criterion, random, others)
    if isinstance(expected, list) and isinstance(got, list):
        return _compare_sequences(name, expected, got, criterion, random, noisy)
    if expected is None or got is None:
        same = expected is None and got is None
        reason = "" if same else "one is empty and not the other"
        gap = 0.0 if same else math.inf
        return OutputDifference(name, "optional", (), gap, gap, same, reason)
    a, b = np.asarray(expected), np.asarray(got)
    if random and a.dtype == b.dtype and a.shape == b.shape:
        return OutputDifference(name, str(a.dtype), a.shape, 0, 0, True, "random, shape only")
    arrays = [value for value in noisy if isinstance(value, np.ndarray)]
    return _row(name, str(a.dtype), a.shape, criterion.compare(a, b, arrays))


def _row(name: str, dtype: str, shape: tuple[int, ...], gap: Gap) -> OutputDifference:
    reason = gap.reason or gap.remark
    return OutputDifference(
        name, dtype, shape, gap.max_abs, gap.max_rel, gap.ok, reason, gap.where, gap.values
    )


def _compare_sequences(
    name: str,
    expected: list[Any],
    got: list[Any],
    criterion: Criterion,
    random: bool,
    noisy: Sequence[Any],
) -> OutputDifference:
    row = OutputDifference(name, "sequence", (len(expected),), 0.0, 0.0, True)
    if len(expected) != len(got):
        row.max_abs, row.max_rel, row.ok = math.inf, math.inf, False
        row.reason = f"{len(expected)} elements became {len(got)}"
        return row
    others = [n for n in noisy if isinstance(n, list) and len(n) == len(expected)]
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        element = compare_outputs(name, a, b, criterion, random, [n[i] for n in others])
        if row.ok and (element.max_rel > row.max_rel or not element.ok):
            row.where, row.values = (i, *element.where), element.values
            row.reason = f"element {i}: {element.reason}" if element.reason else row.reason
        row.max_abs = max(row.max_abs, element.max_abs)
        row.max_rel = max(row.max_rel, element.max_rel)
        row.ok = row.ok and element.ok
    return row
