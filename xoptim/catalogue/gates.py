"""What was measured of the patterns: `xoptim/data/gates.csv`, which `xoptim tune --gates` writes.

A row says if a pattern saves time on a processor, of a maker, with its instructions and a version
of onnxruntime. A pattern whose row says no is not written there by a set.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from xbuilder.errors import OptionError
from xbuilder.runtimes.installed import installed_version
from xbuilder.runtimes.processors import VENDORS, features_of

#: the measures that come with the package
GATES = Path(__file__).resolve().parents[1] / "data" / "gates.csv"
COLUMNS = ("pattern", "processor", "onnxruntime", "features", "ratio", "kept")
#: a pattern whose ratio is above it is not kept: one percent is what a measure may be wrong by
LIMIT = 1.01


class Gate(NamedTuple):
    """A measure that decides.

    :param pattern: as a selection writes it, `"MultiHeadAttention3D(with_mask=True)"`
    :param processor: `"CPU"` or `"CUDA"`
    :param onnxruntime: version that was measured
    :param features: what the processor was
    :param ratio: time with the pattern over time without, a geometric mean
    """

    pattern: str
    processor: str
    onnxruntime: str
    features: str
    ratio: float

    @property
    def kept(self) -> bool:
        """Tells if the pattern saves time, or costs none."""
        return self.ratio <= LIMIT

    def to_row(self) -> dict[str, str]:
        """The row of the file."""
        kept = "yes" if self.kept else "no"
        values = (self.pattern, self.processor, self.onnxruntime, self.features)
        return dict(zip(COLUMNS, (*values, f"{self.ratio:.3f}", kept), strict=True))


def read_gates(path: Path = GATES) -> list[Gate]:
    """Reads a file of measures.

    :param path: the file
    :raises OptionError: a row is not one, or says the contrary of its ratio
    """
    gates = []
    with path.open(encoding="utf-8", newline="") as stream:
        for line, row in enumerate(csv.DictReader(stream), 2):
            try:
                pattern, processor, version, features, ratio, kept = (row[c] for c in COLUMNS)
                gate = Gate(pattern, processor, version, features, float(ratio))
            except (KeyError, TypeError, ValueError) as e:
                raise OptionError(
                    f"Line {line} of {str(path)!r} is no measure: expected the columns "
                    f"{', '.join(COLUMNS)}, found {row}."
                ) from e
            if gate.to_row()["kept"] != kept:
                raise OptionError(
                    f"Line {line} of {str(path)!r} has ratio {gate.ratio} and column kept says "
                    f"{kept!r}: a pattern is kept up to {LIMIT}."
                )
            gates.append(gate)
    return gates


def merged_gates(known: Iterable[Gate], new: Iterable[Gate]) -> list[Gate]:
    """Both, the new ones instead of those of the same pattern, processor, version, features."""
    found = {(g.pattern, g.processor, g.onnxruntime, g.features): g for g in (*known, *new)}
    return [found[key] for key in sorted(found)]


@cache
def find_gate(pattern: str, processor: str, target: str) -> Gate | None:
    """The measure that decides for a model: see :func:`chosen_gate`.

    :param pattern: as in :class:`Gate`
    :param processor: idem
    :param target: what the model is meant for, as the option `processor` tells it
    :return: None if nothing was measured
    """
    version, features = installed_version(), features_of(target)
    return chosen_gate(read_gates(), pattern, processor, version, features)


def chosen_gate(
    gates: Iterable[Gate], pattern: str, processor: str, version: str, features: str
) -> Gate | None:
    """The measure made on the closest processor; among them, the last one made with a version of
    onnxruntime or an older one, the first one if all are more recent.

    :param gates: what was measured
    :param pattern: as in :class:`Gate`
    :param processor: idem
    :param version: the onnxruntime that runs the model
    :param features: what the processor that runs it is
    """
    rows = [g for g in gates if (g.pattern, g.processor) == (pattern, processor)]
    closest = min((_distance(g.features, features) for g in rows), default=None)
    rows = [g for g in rows if _distance(g.features, features) == closest]
    rows.sort(key=lambda g: _numbers(g.onnxruntime))
    older = [g for g in rows if _numbers(g.onnxruntime) <= _numbers(version)]
    return older[-1] if older else next(iter(rows), None)


def _distance(a: str, b: str) -> tuple[bool, int, int]:
    """The smallest one for the processors of the same maker, which is slow or not with the same
    numbers; then for most instructions in common, then for fewest that one only has."""
    first, second = set(a.split()), set(b.split())
    same_maker = first.intersection(VENDORS) == second.intersection(VENDORS)
    return not same_maker, -len(first & second), len(first ^ second)


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)[:3]]
