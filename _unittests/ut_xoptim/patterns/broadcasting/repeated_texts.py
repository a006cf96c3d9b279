"""Models that repeat a constant for each element of a batch."""

from __future__ import annotations

#: the batch, as a vector of one element
BATCH = "n = Shape<start = 0, end = 1>(x)"
#: the repeated part: c, and the dimensions (n, 1, ...)
REPEAT = "s = Concat<axis = 0>(n, o) e = Expand(c, s)"
ROWS = "float[1, 2] c = {1, 3}, int64[1] o = {1}"
CUBE = "float[1, 2, 2] c = {1, 2, 3, 4}, int64[2] o = {1, 1}"
#: axes, bounds of a Slice
AXES = "int64[1] a = {1}, int64[1] t = {2}, int64[1] z = {0}"


def graph(result: str, constants: str, body: str, more: str = "") -> str:
    """A graph whose input x gives the batch."""
    known = f"<{constants}>" if constants else ""
    return f"g (float[n, 2] x{more}) => ({result}) {known} {{ {BATCH} {body} }}"


def repeated(shape: str, values: str, kind: str = "float") -> str:
    """The graph that repeats a constant, of dimensions (1, ...)."""
    after = ", ".join(["n", *shape.split(", ")[1:]])
    ones = ", ".join("1" * shape.count(","))
    constants = f"{kind}[{shape}] c = {{{values}}}, int64[{shape.count(',')}] o = {{{ones}}}"
    return graph(f"{kind}[{after}] y", constants, REPEAT.replace("e =", "y ="))
