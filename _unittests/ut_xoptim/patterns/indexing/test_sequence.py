"""Sequences that are made, then read at known positions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

H = "g (float[a, 4] x, float[a, 4] z) => (float[a, 4] y)"
S = "g (float[6, b] x) => (float[n, b] y, float[m, b] t)"
C = (
    "int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 last = {-1}, int64 ten = {10},"
    " int64[3] sizes = {1, 2, 3}"
)


def model(nodes: str, header: str = H) -> str:
    """A model with positions."""
    return f"{header} <{C}> {{ {nodes} }}"


def cut(node: str, header: str = S) -> str:
    """Reads the first two pieces."""
    return model(f"s = {node} y = SequenceAt(s, zero) t = SequenceAt(s, one)", header)


SQUEEZED = S.replace("n, b", "b").replace("m, b", "b")
ONES = "int64[6] o = {1, 1, 1, 1, 1, 1}"

#: pattern -> case -> (before, after)
MODELS = {
    "SequenceConstructAt": {
        "one": (
            model("s = SequenceConstruct(x, z) e = SequenceAt(s, one) y = Relu(e)"),
            f"{H} {{ y = Relu(z) }}",
        ),
        "from the end": (
            model("s = SequenceConstruct(x, z, x) e = SequenceAt(s, last) y = Relu(e)"),
            f"{H} {{ y = Relu(x) }}",
        ),
        "two": (
            model(
                "s = SequenceConstruct(x, z) e = SequenceAt(s, zero) f = SequenceAt(s, one)"
                " y = Sub(e, f)"
            ),
            f"{H} {{ y = Sub(x, z) }}",
        ),
        "the sequence is read elsewhere": (
            model(
                "s = SequenceConstruct(x, z) e = SequenceAt(s, one) c = ConcatFromSequence"
                "<axis = 0>(s) y = Relu(e) t = Relu(c)",
                H.replace("[a, 4] y", "[a, 4] y, float[c, 4] t"),
            ),
            model(
                "s = SequenceConstruct(x, z) c = ConcatFromSequence<axis = 0>(s) y = Relu(z)"
                " t = Relu(c)",
                H.replace("[a, 4] y", "[a, 4] y, float[c, 4] t"),
            ),
            {"reference": False},
        ),
    },
    "SplitToSequenceSequenceAt": {
        "sizes": (
            cut("SplitToSequence(x, sizes)"),
            f"{S} <{C}> {{ y, t, u = Split<axis = 0>(x, sizes) }}",
        ),
        "one size": (
            cut("SplitToSequence(x, two)"),
            f"{S} <int64[3] p = {{2, 2, 2}}> {{ y, t, u = Split<axis = 0>(x, p) }}",
        ),
        "one element": (
            cut("SplitToSequence(x)"),
            f"{S} <{ONES}> {{ y, t, u, v, w, k = Split<axis = 0>(x, o) }}",
        ),
        "squeezed": (
            cut("SplitToSequence<keepdims = 0>(x)", SQUEEZED),
            f"{SQUEEZED} <{ONES}, int64[1] i = {{0}}> {{"
            "p, q, u, v, w, k = Split<axis = 0>(x, o) y = Squeeze(p, i) t = Squeeze(q, i) }",
        ),
        "another axis": (
            cut(
                "SplitToSequence<axis = -1, keepdims = 0>(x, sizes)",
                "g (float[b, 6] x) => (float[b, n] y, float[b, m] t)",
            ),
            "g (float[b, 6] x) => (float[b, n] y, float[b, m] t)"
            f" <{C}> {{ y, t, u = Split<axis = 1>(x, sizes) }}",
        ),
        "twice": (
            model(
                "s = SplitToSequence(x, sizes) e = SequenceAt(s, two) f = SequenceAt(s, last)"
                " y = Add(e, f)",
                "g (float[6, b] x) => (float[3, b] y)",
            ),
            "g (float[6, b] x) => (float[3, b] y)"
            f" <{C}> {{ u, v, e = Split<axis = 0>(x, sizes) y = Add(e, e) }}",
        ),
    },
}

REFUSED = {
    "SequenceConstructAt": {
        "a position that is an input": (
            model(
                "s = SequenceConstruct(x, z) y = SequenceAt(s, i)",
                H.replace("float[a, 4] z)", "float[a, 4] z, int64 i)"),
            ),
            "the position is not constant",
        ),
        "out of the sequence": (
            model("s = SequenceConstruct(x, z) y = SequenceAt(s, two)"),
            "the position is not in the sequence",
        ),
        "another sequence": (
            model("s = SplitToSequence(x) y = SequenceAt(s, one)"),
            "no SequenceConstruct before",
        ),
    },
    "SplitToSequenceSequenceAt": {
        "another use": (
            model(
                "s = SplitToSequence(x, sizes) e = SequenceAt(s, one)"
                " y = ConcatFromSequence<axis = 0>(s) t = Relu(e)",
                S,
            ),
            "something else than SequenceAt",
        ),
        "nothing reads it": (
            model("s = SplitToSequence(x, sizes) y = Relu(x)", "g (float[6] x) => (float[6] y)"),
            "something else than SequenceAt",
        ),
        "an unknown dimension": (
            cut("SplitToSequence(x, two)", S.replace("[6, b]", "[a, b]")),
            "the dimension is not known",
        ),
        "no size, an unknown dimension": (
            cut("SplitToSequence(x)", S.replace("[6, b]", "[a, b]")),
            "the dimension is not known",
        ),
        "sizes that are an input": (
            cut("SplitToSequence(x, p)", S.replace("x)", "x, int64[3] p)", 1)),
            "the sizes are not constant",
        ),
        "a position that is an input": (
            model(
                "s = SplitToSequence(x, sizes) y = SequenceAt(s, i)",
                "g (float[6, b] x, int64 i) => (float[n, b] y)",
            ),
            "a position is not constant",
        ),
        "out of the sequence": (
            model(
                "s = SplitToSequence(x, sizes) y = SequenceAt(s, ten)",
                "g (float[6, b] x) => (float[n, b] y)",
            ),
            "not in the sequence",
        ),
        "a null size": (cut("SplitToSequence(x, zero)"), "the sizes are not positive"),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


@settings(max_examples=25, deadline=None)
@given(
    dim=st.integers(1, 7),
    size=st.integers(0, 8),
    keepdims=st.booleans(),
    negative=st.booleans(),
    axis=st.integers(-2, 1),
    data=st.data(),
)
def test_any_split(
    dim: int, size: int, keepdims: bool, negative: bool, axis: int, data: st.DataObject
) -> None:
    """Any size of the pieces, 0 when there is none, positions from both ends. Given a size,
    keepdims is ignored, onnxruntime fails."""
    n = -(-dim // (size or 1))
    index = data.draw(st.integers(0, n - 1)) - (n if negative else 0)
    shape = f"{dim}, b" if axis in (0, -2) else f"b, {dim}"
    given_size = ", size" if size else ""
    text = (
        f"g (float[{shape}] x) => (float y) <int64 size = {{{size}}}, int64 i = {{{index}}}> {{"
        f"s = SplitToSequence<axis = {axis}, keepdims = {int(keepdims or size > 0)}>(x{given_size})"
        " e = SequenceAt(s, i) y = ReduceSum<keepdims = 0>(e) }"
    )
    check_pattern(text, None, "SplitToSequenceSequenceAt", sizes=[{"b": 3}, {"b": 1}], atol=1e-6)
