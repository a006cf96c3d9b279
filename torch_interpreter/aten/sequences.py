"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import Operand, Size, SymScalar, dim_of, vector1d
from .operands import integers
from .resize import pad_tensor
from .view import stack


@aten("aten.pad_sequence.default")
def pad_sequence(
    g: GraphWriter,
    sequences: Sequence[str],
    batch_first: bool = False,
    padding_value: Operand = 0.0,
    padding_side: str = "right",
) -> str:
    """Pads every sequence to the length of the longest and stacks them."""
    lengths = [dim_of(g, x, 0) for x in sequences]
    known = integers(lengths)
    longest: Size
    if known is not None:
        longest = max(known)
    else:
        longest = SymScalar(g.op.Max(*(vector1d(g, n) for n in dict.fromkeys(lengths))))
    padded = [
        pad_tensor(
            g, x, _missing(g, longest, n, g.get_rank(x), padding_side), "constant", padding_value
        )
        for x, n in zip(sequences, lengths, strict=True)
    ]
    return stack(g, padded, 0 if batch_first else 1)


def _missing(g: GraphWriter, longest: Size, length: Size, rank: int, side: str) -> list[Size]:
    """The padding of a sequence in the order of torch: the first dimension comes last."""
    if isinstance(longest, str):
        count: Size = SymScalar(g.op.Sub(longest, vector1d(g, length)))
    else:
        count = longest - int(length)
    both: list[Size] = [count, 0] if side == "left" else [0, count]
    return [*[0] * (2 * rank - 2), *both]
