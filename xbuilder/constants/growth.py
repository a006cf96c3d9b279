"""What the folds of a whole model may add to its file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..options import DEFAULT_CONSTANT_SIZE

#: all the folds of a model add at most this number of times the option `constant_size`
TIMES = 64
#: or the size of the weights divided by this number, if the option has its default value
SHARE = 100
#: the entry of the metadata of a model that tells what was spent, when something was refused
METADATA = "xoptim.folding_budget"

TOO_BIG = "the model would grow"
SPENT = "the total budget is spent"


@dataclass(slots=True)
class GrowthBudget:
    """Bytes the folds of a model may add to its file; all its graphs share them.

    A model that was optimized, and where a fold was refused, says in its metadata what was spent:
    optimizing it again starts from there, otherwise each run would fold a little more.

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
        """Decides what may be spent.

        :param constant_size: the option; with its default value, one fold may spend everything
        :param weights: bytes of the constants of the model
        :param metadata: what an earlier run wrote in the model
        """
        known = re.fullmatch(r"(\d{1,18})/(\d{1,18})", metadata)
        if known is not None:
            self.spent += int(known[1])
        self.one, self.total = constant_size, TIMES * constant_size
        if constant_size == DEFAULT_CONSTANT_SIZE:
            more = weights // SHARE if known is None else int(known[2])
            self.one = self.total = max(self.total, more)

    def refusal(self, growth: int) -> str:
        """Tells why a fold is too much, an empty string if it is not.

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
        """What the next run has to know, an empty string if there is nothing."""
        return f"{self.spent}/{self.total}" if self.is_tight else ""
