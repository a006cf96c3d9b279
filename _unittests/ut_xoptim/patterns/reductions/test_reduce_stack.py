"""Sums and means of stacked tensors."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests


def stack(
    body: str = "",
    *,
    reduction: str = "ReduceMean<keepdims = 0>(c, k)",
    inputs: str = "float[a, 4] x, float[a, 4] z",
    outputs: str = "float[a, 4] y",
    axis: int = 1,
    operands: str = "u, v",
) -> str:
    """The reduction of a stack of x and z, then other nodes."""
    return f"""g ({inputs}) => ({outputs}) <int64[1] k = {{{axis}}}, int64[1] other = {{0}}> {{
        u = Unsqueeze(x, k)
        v = Unsqueeze(z, k)
        c = Concat<axis = {axis}>({operands})
        y = {reduction}
        {body}
    }}"""


_GIVEN = "g (float[a, 4] x, float[a, 4] z) => "
#: pattern -> case -> (before, after)
MODELS = {
    "ReduceStack": {
        "a mean": (stack(), _GIVEN + "(float[a, 4] y) { y = Mean(x, z) }"),
        "the last axis, from the end": (
            stack(axis=-1),
            _GIVEN + "(float[a, 4] y) { y = Mean(x, z) }",
        ),
        "a sum of three, one twice": (
            stack(reduction="ReduceSum<keepdims = 0>(c, k)", axis=0, operands="u, v, u"),
            _GIVEN + "(float[a, 4] y) { y = Sum(x, z, x) }",
        ),
        "the Concat proves that a is b": (
            stack(inputs="float[a, 4] x, float[b, 4] z"),
            "g (float[a, 4] x, float[b, 4] z) => (float[a, 4] y) { y = Mean(x, z) }",
            {"sizes": ({"a": 2, "b": 2}, {"a": 0, "b": 0})},
        ),
        "the dimensions are kept": (
            stack(reduction="ReduceSum(c, k)", outputs="float[a, 1, 4] y"),
            _GIVEN
            + """(float[a, 1, 4] y) <int64[1] k = {1}> {
                s = Sum(x, z)
                y = Unsqueeze(s, k)
            }""",
        ),
    },
}
REFUSED = {
    "ReduceStack": [
        (stack("w = Neg(c)", outputs="float[a, 4] y, float[a, 2, 4] w"), "used elsewhere"),
        (
            stack(reduction="ReduceMean<keepdims = 0>(c, other)", outputs="float[b, 4] y"),
            "the reduction has other axes",
        ),
        (
            stack(reduction="ReduceMean<keepdims = 0>(c)", outputs="float y"),
            "the reduction has other axes",
        ),
        (
            stack(
                reduction="ReduceSum<keepdims = 0>(c, k)",
                inputs="int64[a, 4] x, int64[a, 4] z",
                outputs="int64[a, 4] y",
            ),
            "the type is not a float",
        ),
        (
            stack(
                inputs="float[a, 4] x, float[a, 4] z, float[a, 2, 4] w",
                operands="u, v, w",
            ),
            "an operand has no Unsqueeze of this axis",
        ),
        (
            stack()
            .replace("Concat<axis = 1>", "Concat<axis = 0>")
            .replace("(c, k)", "(c, other)")
            .replace("float[a, 4] y", "float[1, 4] y")
            .replace("float[a, 4]", "float[1, 4]"),
            "an operand has no Unsqueeze of this axis",
        ),
    ],
}

test_rewrites = rewrite_tests(MODELS)
test_refusals = refusal_tests(REFUSED)
