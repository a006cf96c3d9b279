"""Bounds the bytes constant folding may add to the file of a model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..options import DEFAULT_CONSTANT_SIZE

#: all the folds of a model add at most this number of times the option `constant_size`
TIMES = 64
#: or the size of the weights divided by this number, if the option has its default value
SHARE = 100
#: the metadata entry that records the bytes spent, when a fold was refused
METADATA = "xoptim.folding_budget"

#: the pass that folds, in the statistics
FOLDING = "constant_folding"
TOO_BIG = "the model would grow"
SPENT = "the total budget is spent"


@dataclass(slots=True)
class GrowthBudget:
    """Bytes the folds of a model may add to its file, shared by all its graphs.

    When a fold is refused, the bytes spent are recorded in the metadata of the optimized model.
    Optimizing it again starts from there, otherwise each run would fold a little more.

    :param spent: bytes the folds added
    :param total: bytes all of them may add, None before it is needed
    :param one: bytes one of them may add
    :param is_tight: a fold was refused that a little more would have allowed
    """

    spent: int = 0
    total: int | None = None
    one: int = 0
    is_tight: bool = False

    def start(self, constant_size: int, weights: int, metadata: str = "") -> None:
        """Sets the totals that may be spent.

        :param constant_size: the option; with its default value, one fold may spend everything
        :param weights: bytes of the constants of the model
        :param metadata: the entry an earlier run wrote in the model
        """
        known = re.fullmatch(r"(\d{1,18})/(\d{1,18})", metadata)
        if known is not None:
            self.spent += int(known[1])
        self.one, self.total = constant_size, TIMES * constant_size
        if constant_size == DEFAULT_CONSTANT_SIZE:
            more = weights // SHARE if known is None else int(known[2])
            self.one = self.total = max(self.total, more)

    def refusal(self, growth: int) -> str:
        """The reason why a fold exceeds the budget, an empty string if it does not.

        :param growth: bytes it would add
        """
        total = self.total or 0
        if growth > self.one:
            self.is_tight |= total > TIMES * DEFAULT_CONSTANT_SIZE and growth < 2 * total
            return TOO_BIG
        if growth > 0 and self.spent + growth > total:
            self.is_tight = True
            return SPENT
        return ""

    def spend(self, growth: int) -> None:
        """Counts a fold."""
        self.spent += max(growth, 0)

    @property
    def metadata(self) -> str:
        """The metadata entry for the next run, an empty string if none is needed."""
        return f"{self.spent}/{self.total}" if self.is_tight else ""
