"""The certificate of one rewrite: how its window was checked, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .checking import Outcome

#: verdicts
RIGHT, ROUNDS, WRONG, UNCHECKED = "right", "rounds", "wrong", "not checked"


@dataclass
class Certificate:
    """The check of one rewrite.

    :param pattern: name of the rewrite
    :param result: first result of the nodes it removed
    :param verdict: `right`; `rounds`, right but for the last bits although the rewrite says it is
        exact; `wrong`; `not checked`
    :param methods: how the results were compared: `bits` (equal to the last bit), `values` (the
        same but for the sign of zeros), `float64`, `float32` (within the rounding of the type),
        `reference` (equal for the reference evaluator, when the kernels of onnxruntime differ),
        `integers` (equal polynomials at random integers), `unused` (nothing reads the results),
        `nodes` (the same nodes read the same results, nothing was run);
        with `rows`, only a few rows of the large weights and inputs were taken; with `alike`, one
        size and one draw were run, because a window that only has other weights or sizes is right
    :param sizes: sizes of the symbolic dimensions that were run
    :param draws: number of draws
    :param max_abs: largest absolute difference
    :param max_rel: largest relative difference
    :param chance: bound of the probability that the window is wrong when it is a polynomial, 0 when
        elements that all differ went to the same places
    :param nodes: number of nodes removed and written
    :param around: number of nodes before them that had to be added
    :param repeated: an equal window was checked before
    :param seconds: time spent
    :param reason: why it is wrong or not checked; the difference of the kernels of the runtime
    """

    pattern: str
    result: str
    verdict: str = UNCHECKED
    methods: Sequence[str] = ()
    sizes: Sequence[dict[str, int]] = ()
    draws: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    chance: float | None = None
    nodes: tuple[int, int] = (0, 0)
    around: int = 0
    repeated: bool = False
    seconds: float = 0.0
    reason: str = ""

    def take(self, outcome: Outcome) -> None:
        """Copies the outcome of the check."""
        self.methods, self.sizes = list(outcome.methods), outcome.sizes
        self.draws, self.chance = outcome.draws, outcome.chance
        self.max_abs, self.max_rel = outcome.max_abs, outcome.max_rel
        self.reason = outcome.noise and f"in onnxruntime, {outcome.noise}"

    def text(self) -> str:
        """The certificate in one line."""
        if self.verdict == UNCHECKED:
            return f"not checked: {self.reason}"
        rows = [f"{self.verdict} ({', '.join(self.methods)})"]
        if len(self.sizes) > 1 or any(self.sizes):
            tried = (",".join(f"{k}={v}" for k, v in s.items()) for s in self.sizes)
            rows.append(f"sizes {' '.join(tried)}")
        rows.append(f"{self.draws} draws")
        if self.max_rel:
            rows.append(f"largest relative difference {self.max_rel:.3g}")
        if self.chance == 0:
            rows.append("elements that all differ go to the same places")
        elif self.chance is not None:
            rows.append(f"a polynomial, wrong with a probability below {self.chance:.2g}")
        return "; ".join(rows)

    def columns(self) -> dict[str, Any]:
        """The columns of the statistics."""
        return {
            "verdict": self.verdict,
            "checked_by": ", ".join(self.methods),
            "max_abs": self.max_abs,
            "max_rel": self.max_rel,
            "checking": self.seconds,
            "certificate": self.text(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Every field, with values json accepts."""
        return {
            **vars(self),
            "methods": list(self.methods),
            "sizes": [dict(s) for s in self.sizes],
            "nodes": list(self.nodes),
        }


@dataclass
class Summary:
    """The certificates of all the rewrites of a model.

    :param certificates: one by rewrite, in order
    """

    certificates: list[Certificate] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Time spent on all of them."""
        return sum(c.seconds for c in self.certificates)

    def counts(self) -> dict[str, int]:
        """Number of rewrites by verdict, the verdicts nobody got left out."""
        verdicts = [c.verdict for c in self.certificates]
        return {v: n for v in (RIGHT, ROUNDS, WRONG, UNCHECKED) if (n := verdicts.count(v))}

    def text(self) -> str:
        """The counts in words."""
        counts = self.counts()
        rows = [f"{n} {verdict}" for verdict, n in counts.items()]
        return ", ".join(rows) or "no rewrite"

    def rows(self) -> list[dict[str, Any]]:
        """One row by rewrite and by kind of answer: counts, methods, largest difference, reason."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for c in self.certificates:
            key = c.pattern, c.verdict, c.reason if c.verdict == UNCHECKED else ""
            row = found.setdefault(
                key,
                {
                    "pattern": c.pattern,
                    "verdict": c.verdict,
                    "instances": 0,
                    "windows": 0,
                    "methods": [],
                    "max_rel": 0.0,
                    "reason": c.reason,
                },
            )
            row["instances"] += 1
            row["windows"] += not c.repeated
            row["methods"] = list(dict.fromkeys([*row["methods"], *c.methods]))
            row["max_rel"] = max(row["max_rel"], c.max_rel)
        return sorted(found.values(), key=lambda r: (r["verdict"] == RIGHT, r["pattern"]))

    def to_dict(self) -> dict[str, Any]:
        """The counts and every certificate, with values json accepts."""
        return {
            "counts": self.counts(),
            "seconds": self.seconds,
            "rewrites": [c.to_dict() for c in self.certificates],
        }
