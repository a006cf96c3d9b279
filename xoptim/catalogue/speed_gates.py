"""Speed gates: measured speedups of patterns decide whether a set applies them.

`xoptim tune --gates` writes the measures in `xoptim/data/gates.csv`. A row says whether a pattern
saves time on a processor of a vendor, with its instructions and a version of onnxruntime. A set
does not apply a pattern there when its row says no.
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
from xbuilder.runtimes.processors import VENDORS, measured_features

#: the measures that come with the package
#:
#: :meta hide-value:
GATES = Path(__file__).resolve().parents[1] / "data" / "gates.csv"
COLUMNS = ("pattern", "processor", "onnxruntime", "features", "ratio", "kept")
#: a pattern is not kept above this ratio: one percent is the error of a measure
LIMIT = 1.01


class SpeedGate(NamedTuple):
    """One measure: time with a pattern over time without, on one processor and one onnxruntime.

    :param pattern: as a selection writes it, `"MultiHeadAttention3D(with_mask=True)"`
    :param processor: `"CPU"` or `"CUDA"`
    :param onnxruntime: version that was measured
    :param features: vendor and instructions of the CPU, or capability and name of the GPU
    :param ratio: time with the pattern over time without, a geometric mean
    """

    pattern: str
    processor: str
    onnxruntime: str
    features: str
    ratio: float

    @property
    def kept(self) -> bool:
        """Whether the pattern saves time, or at least costs none."""
        return self.ratio <= LIMIT

    def to_row(self) -> dict[str, str]:
        """This measure as a row of the file."""
        kept = "yes" if self.kept else "no"
        values = (self.pattern, self.processor, self.onnxruntime, self.features)
        return dict(zip(COLUMNS, (*values, f"{self.ratio:.3f}", kept), strict=True))


def read_gates(path: Path = GATES) -> list[SpeedGate]:
    """Reads a file of measures.

    :raises OptionError: a row is malformed, or contradicts its ratio
    """
    gates = []
    with path.open(encoding="utf-8", newline="") as stream:
        for line, row in enumerate(csv.DictReader(stream), 2):
            try:
                pattern, processor, version, features, ratio, kept = (row[c] for c in COLUMNS)
                gate = SpeedGate(pattern, processor, version, features, float(ratio))
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


def merged_gates(known: Iterable[SpeedGate], new: Iterable[SpeedGate]) -> list[SpeedGate]:
    """Merges measures: a new one replaces a known one of the same pattern, processor, version and
    features."""
    found = {(g.pattern, g.processor, g.onnxruntime, g.features): g for g in (*known, *new)}
    return [found[key] for key in sorted(found)]


@cache
def find_speed_gate(pattern: str, processor: str, target: str) -> SpeedGate | None:
    """The measure that applies to a model, see :func:`closest_gate`.

    :param pattern: as in :class:`SpeedGate`
    :param processor: as in :class:`SpeedGate`
    :param target: processors the model is meant for, the value of option `processor`
    :return: None if nothing was measured
    """
    version, features = installed_version(), measured_features(processor, target)
    return closest_gate(read_gates(), pattern, processor, version, features)


def closest_gate(
    gates: Iterable[SpeedGate], pattern: str, processor: str, version: str, features: str
) -> SpeedGate | None:
    """The measure made on the closest processor; among those, the latest one whose version of
    onnxruntime is not newer than the given one, or the oldest one if all are newer.

    :param gates: the measures
    :param pattern: as in :class:`SpeedGate`
    :param processor: as in :class:`SpeedGate`
    :param version: the onnxruntime that runs the model
    :param features: vendor and instructions of the processor that runs it
    """
    rows = [g for g in gates if (g.pattern, g.processor) == (pattern, processor)]
    closest = min((_distance(g.features, features) for g in rows), default=None)
    rows = [g for g in rows if _distance(g.features, features) == closest]
    rows.sort(key=lambda g: _numbers(g.onnxruntime))
    older = [g for g in rows if _numbers(g.onnxruntime) <= _numbers(version)]
    return older[-1] if older else next(iter(rows), None)


def _distance(a: str, b: str) -> tuple[bool, int, int]:
    """Distance between two processors. Those of one vendor are the closest, because they are slow
    or not on the same numbers; then those with most instructions in common; then those with fewest
    instructions that only one has."""
    first, second = set(a.split()), set(b.split())
    same_maker = first.intersection(VENDORS) == second.intersection(VENDORS)
    return not same_maker, -len(first & second), len(first ^ second)


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)[:3]]
