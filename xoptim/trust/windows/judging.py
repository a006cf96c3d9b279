"""Judges the results of both sides of a window, by what the rewrite declares."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from xbuilder.operators.op_traits import HALF_FLOATS

from .differences import Difference, difference, nan_count
from .doubles import as_wide
from .runs import DOUBLE, EITHER, REFERENCE, REFERENCE_DOUBLE, RUNTIME, Runner, run_both
from .sessions import CannotRunError

#: the beginning of the reason when one side runs and the other one does not
FAILS = "the nodes written do not run"
#: by type of floats: the rounding of its constants, which is all that doubles show; the bound of
#: results computed with the type alone, and their bound when doubles agree
_BOUNDS: dict[int, tuple[float, float, float]] = {
    TensorProto.DOUBLE: (1e-9, 1e-9, 1e-6),
    TensorProto.FLOAT: (2e-5, 1e-4, 1e-2),
    TensorProto.FLOAT16: (5e-3, 2e-2, 1e-1),
    TensorProto.BFLOAT16: (5e-2, 1e-1, 3e-1),
}
#: bounds of an exact rewrite whose kernels add in another order, in the runtime, with doubles
_LAST_BITS: dict[int, float] = {
    TensorProto.DOUBLE: 1e-14,
    TensorProto.FLOAT: 2e-6,
    TensorProto.FLOAT16: 2e-3,
    TensorProto.BFLOAT16: 1.6e-2,
}
_NEARLY = 1e-12
#: bound of an approximate rewrite
_APPROXIMATE = 5e-2


class Judge:
    """Compares the sides of a window on some inputs.

    A difference counts when every way to run both sides shows it: what onnxruntime alone shows is
    a difference of its kernels, and is noted.

    :param before: runs the removed nodes
    :param after: runs the nodes written
    :param precision: what the rewrite declares
    :param tolerance: likewise
    :param results: names of the results
    :param types: types of floats of the window
    :param hasty: the differences of the runtime count, whatever the reference evaluator gives
    """

    def __init__(
        self,
        before: Runner,
        after: Runner,
        precision: str,
        tolerance: float,
        results: Sequence[str],
        types: Collection[int],
        hasty: bool = False,
    ):
        self.before, self.after = before, after
        self.precision, self.tolerance, self.results = precision, tolerance, results
        self.hasty = hasty
        rows = [_BOUNDS[t] for t in types if t in _BOUNDS] or [_BOUNDS[TensorProto.FLOAT]]
        self.constants, self.alone, self.loose = (max(v, tolerance) for v in max(rows))
        self.last_bits = max([v for t, v in _LAST_BITS.items() if t in types] or [2e-6])
        self.has_halves = not HALF_FLOATS.isdisjoint(types)
        self.methods: dict[str, None] = {}
        self.max_abs = self.max_rel = 0.0
        self.rounds = False
        self.noise = ""

    def judge(
        self, way: str, feeds: Mapping[str, Any], expected: Sequence[Any]
    ) -> Difference | None:
        """Compares both sides.

        :param way: how the removed nodes were run
        :param feeds: inputs
        :param expected: their results
        :return: the difference, None or false if there is none
        """
        if self.precision == "exact":
            return self._judge_exact(way, feeds, expected)
        if self.precision == "approximate":
            bound = max(_APPROXIMATE, self.tolerance)
            return self._again(way, feeds, self._compare(way, feeds, expected, bound), bound)
        if not self.has_halves and not self._compare(way, feeds, expected, self.constants):
            self.methods["float32"] = None  # as close as doubles would have to be
            return None
        doubles = self._doubles(feeds, expected)
        if doubles:
            return doubles
        bound = self.alone if doubles is None else self.loose
        found = self._again(way, feeds, self._compare(way, feeds, expected, bound), bound)
        if found and self.has_halves and doubles is not None and self._is_closer(way, feeds):
            self.noise = f"{found.reason}, the nodes written are closer to doubles"
            return None
        if found or not self.has_halves:
            return found
        # onnxruntime computes halves with floats, and may never round in between
        halves = self._both(REFERENCE, feeds, self.loose)
        if not halves or halves.reason.startswith("type "):
            return found
        return halves if self._is_trusted(REFERENCE, feeds, expected) else found

    def _judge_exact(
        self, way: str, feeds: Mapping[str, Any], expected: Sequence[Any]
    ) -> Difference | None:
        found = self._compare(way, feeds, expected, 0.0)
        if not found:
            self.methods["values" if found.signs else "bits"] = None
            return None
        if way == EITHER and found.max_rel <= self.last_bits:
            self.methods["float32"], self.rounds = None, True
            return None
        again = self._again(way, feeds, found, 0.0)
        if not again or found.max_rel > self.last_bits:
            return again
        doubles = self._doubles(feeds, expected, _NEARLY)
        if doubles is None or doubles:
            return doubles or found
        self.rounds = True
        return None

    def _doubles(
        self, feeds: Mapping[str, Any], expected: Sequence[Any], bound: float = 0.0
    ) -> Difference | None:
        """The difference with doubles, None if no way to run them is known, or if what it gives for
        the removed nodes is not what onnxruntime does."""
        first: Difference | None = None
        for way in (DOUBLE, REFERENCE_DOUBLE):
            found = self._both(way, feeds, bound or self.constants)
            if found is not None and not found:
                if self._is_lost(way, feeds):
                    continue
                self.methods["float64"] = None
                return found
            if found is not None and self._is_trusted(way, feeds, expected):
                first = first or found
        return first

    def _is_trusted(self, way: str, feeds: Mapping[str, Any], expected: Sequence[Any]) -> bool:
        """Whether a way to run the removed nodes agrees with the usual one."""
        others = self.before.run(way, feeds)
        rows = zip(self.results, expected, others, strict=True)
        return not any(difference(n, as_wide(a), as_wide(b), self.loose) for n, a, b in rows)

    def _is_lost(self, way: str, feeds: Mapping[str, Any]) -> bool:
        """Whether a way to run the removed nodes gives mostly NaN where the runtime gives numbers:
        it agrees with anything. Some NaN are those of the inputs, which runtimes may ignore."""
        try:
            usual = self.before.run(RUNTIME, feeds)
        except CannotRunError:
            return False
        rows = zip(usual, self.before.run(way, feeds), strict=True)
        return any(2 * nan_count(b) > np.size(b) + nan_count(a) for a, b in rows)

    def _is_closer(self, way: str, feeds: Mapping[str, Any]) -> bool:
        """Whether what the nodes written give is at least as close to the results of doubles as
        what the removed ones do: a place that is rounded in another way may choose another pixel.
        """
        for wide in (DOUBLE, REFERENCE_DOUBLE):
            try:
                exact = self.before.run(wide, feeds)
                sides = [side.run(way, feeds) for side in (self.before, self.after)]
            except CannotRunError:
                continue
            rows = zip(exact, *sides, strict=True)
            gaps = [(self._distance(e, a), self._distance(e, b)) for e, a, b in rows]
            return all(after <= before and after < math.inf for before, after in gaps)
        return False

    @staticmethod
    def _distance(a: Any, b: Any) -> float:
        """The largest absolute difference, with the types of floats left out."""
        return difference("", as_wide(a), as_wide(b), 1.0).max_abs

    def _again(
        self, way: str, feeds: Mapping[str, Any], found: Difference, bound: float = _APPROXIMATE
    ) -> Difference | None:
        """A difference of the runtime, unless the reference evaluator has none."""
        if not found or way != RUNTIME or self.hasty:
            if not found:
                self.methods["float32" if bound else "bits"] = None
            return found
        other = self._both(REFERENCE, feeds, bound)
        if other is None or other or self._is_lost(REFERENCE, feeds):
            return found
        self.methods["reference"] = None
        self.noise = found.reason
        return None

    def _both(self, way: str, feeds: Mapping[str, Any], bound: float) -> Difference | None:
        try:
            expected = run_both(self.before, self.after, way, feeds)
        except CannotRunError:
            return None
        if not self.after.loads(way):
            return None
        return self._compare(way, feeds, expected, bound)

    def _compare(
        self, way: str, feeds: Mapping[str, Any], expected: Sequence[Any], bound: float
    ) -> Difference:
        try:
            got = self.after.run(way, feeds)
        except CannotRunError as e:
            inf = float("inf")
            return Difference(self.results[0], inf, inf, reason=f"{FAILS}: {e}")
        rows = zip(self.results, expected, got, strict=True)
        found = [difference(name, a, b, bound) for name, a, b in rows]
        worst = max(found, key=lambda d: (bool(d), d.max_rel))
        if not worst:
            self.max_abs = max(self.max_abs, worst.max_abs)
            self.max_rel = max(self.max_rel, worst.max_rel)
        return worst
