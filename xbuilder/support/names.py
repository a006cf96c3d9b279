"""One allocator of names for a model, its subgraphs included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: a generated name with more characters gives its last part only to the names derived from it
_LONG = 256


def result_prefix(op_type: str, inputs: Sequence[str]) -> str:
    """Beginning of the name of the result of a new node: the operator, then its first input.

    A rewrite that moves along a chain derives names from the ones it made at the step before: they
    do not grow with the chain.

    >>> result_prefix("Exp", ["x"])
    '_onx_exp_x'
    """
    source = inputs[0] if inputs else ""
    if len(source) > _LONG and source.startswith("_onx_"):
        source = source[source.rindex("_onx_") :].rstrip("0123456789")
    return f"_onx_{op_type.lower()}_{source}"


class NameAllocator:
    """Allocates names that nothing uses yet.

    Invariant: a name returned by :meth:`unique` was never reserved before, in any graph sharing
    this allocator, or was released since; a generated name can neither collide nor shadow. Cost:
    O(1) amortised.
    """

    __slots__ = ("_counters", "_names")

    def __init__(self, names: Iterable[str] = ()):
        self._names: set[str] = set(names)
        self._counters: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def reserve(self, name: str) -> None:
        """Marks a name as taken."""
        self._names.add(name)

    def reserve_all(self, names: Iterable[str]) -> None:
        """Marks several names as taken."""
        self._names.update(names)

    def give_back(self, name: str) -> None:
        """Releases a name nothing uses any more. It may be allocated again."""
        self._names.discard(name)

    def unique(self, prefix: str) -> str:
        """Reserves *prefix* if it is free, else the prefix followed by a number, and returns it."""
        if prefix and prefix not in self._names:
            self._names.add(prefix)
            return prefix
        prefix = prefix or "_r"
        i = self._counters.get(prefix, 1)
        while f"{prefix}{i}" in self._names:
            i += 1
        self._counters[prefix] = i + 1
        name = f"{prefix}{i}"
        self._names.add(name)
        return name
