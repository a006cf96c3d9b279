"""Moves Squeeze or Unsqueeze from the operands of a binary operator to its result."""

from __future__ import annotations

from ...analysis.axes import moved_axes
from ...analysis.constants import Ints
from ...authoring import RewriteContext
from ...declarative import rule


def _equations(move: str, operator: str) -> tuple[str, str]:
    """move(a) op move(b) -> move(a op b), and the same when one node produces both operands."""
    right = f"{move}(a {operator} b, axes=axes)"
    one = f"p = {move}(a, *_, **_); p {operator} p -> {right.replace('b', 'a')}"
    return f"p = {move}(a, *_, **_); q = {move}(b, *_, **_); p {operator} q -> {right}", one


@rule(
    "default",
    *_equations("Squeeze", "+"),
    *_equations("Unsqueeze", "*"),
    priority="first",
    min_opset=7,
    aliases="MulUnsqueezeUnsqueeze",
)
def squeeze_add(g: RewriteContext, a: str, p: str, b: str | None, q: str | None) -> dict[str, Ints]:
    """Add(Squeeze(a, axes), Squeeze(b, axes)) -> Squeeze(Add(a, b), axes).

    1. The same for Mul(Unsqueeze(a, axes), Unsqueeze(b, axes)).
    2. a and b have the same rank, the axes are equal once negative ones are counted from the start.
    """
    differ = "the ranks differ, or are not known"
    g.require(g.rank_of(a, differ) == g.rank_or_none(b or a), differ)
    found = {moved_axes(g, g.before(name)) for name in (p, q or p)}
    g.require(len(found) == 1 and () not in found, "the axes differ, or are not known")
    return {"axes": found.pop()}
