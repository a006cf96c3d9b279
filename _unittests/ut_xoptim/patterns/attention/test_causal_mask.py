"""Functions for causal masks."""

from __future__ import annotations

from ut_xoptim.prepared import prepared_tests

from xoptim.testing import refusal_tests


def positions(body: str, out: str = "bool[1, 1, s, t] y", step: str = "1", start: str = "0") -> str:
    """Positions of queries and keys, 0, 1, 2, ..."""
    return f"""agraph (float[s] a, float[t] b, float[p] past) => ({out}) <
    int64[3] rowAxes = {{0, 1, 3}}, int64[3] columnAxes = {{0, 1, 2}}, int64[1] zero = {{0}},
    int64 start = {{{start}}}, int64 step = {{{step}}}, int64 seven = {{7}}
> {{
    sa = Shape(a) na = Squeeze(sa, zero) r = Range(start, na, step)
    sb = Shape(b) nb = Squeeze(sb, zero) k = Range(start, nb, step)
    {body}
}}"""


AXES = "rows = Unsqueeze(r, rowAxes) columns = Unsqueeze(k, columnAxes) "
SHIFT = "sp = Shape(past) shifted = Add(r, sp) "
SHIFTED = SHIFT + AXES.replace("(r,", "(shifted,")
CALL = "y = intermediate.CausalMask<hidden = 0>(columns, rows)"
#: what the documentation draws: name -> (before, after)
MODELS = {
    "FunctionCausalMask": (
        positions(AXES + "y = LessOrEqual(columns, rows)"),
        positions(AXES + CALL),
    ),
    "FunctionCausalMaskMulAdd": (
        positions(AXES + "m = Mul(rows, seven) y = Add(m, columns)", "int64[1, 1, s, t] y"),
        positions(
            AXES + "y = intermediate.CausalMaskMulAdd(rows, seven, columns)", "int64[1, 1, s, t] y"
        ),
    ),
}
test_functions = prepared_tests(MODELS)
test_hidden = prepared_tests(
    {
        "FunctionCausalMask": (
            positions(AXES + "y = Greater(columns, rows)"),
            positions(AXES + CALL.replace("hidden = 0", "hidden = 1")),
        )
    }
)
test_shifted = prepared_tests(
    {
        "FunctionCausalMask": (
            positions(SHIFTED + "y = LessOrEqual(columns, rows)"),
            positions(SHIFTED + CALL.replace("Causal", "ShiftedCausal")),
        )
    }
)
test_order_of_factors = prepared_tests(
    {
        "FunctionCausalMaskMulAdd": (
            positions(AXES + "m = Mul(seven, rows) y = Add(columns, m)", "int64[1, 1, s, t] y"),
            MODELS["FunctionCausalMaskMulAdd"][1],
        )
    }
)
COMPARED = AXES + "y = LessOrEqual(columns, rows)"
ADDED = AXES + "m = Mul(rows, seven) y = Add(m, columns)"
INTEGERS = "int64[1, 1, s, t] y"
#: pattern -> name -> (model, reason)
REFUSED = {
    "FunctionCausalMask": {
        "another step": (positions(COMPARED, step="2"), "not positions"),
        "another start": (positions(COMPARED, start="1"), "not positions"),
        "other axes": (
            positions(
                COMPARED.replace("rowAxes", "other").replace("columnAxes", "rowAxes").replace(
                    "other", "columnAxes"
                ),
                "bool[1, 1, t, s] y",
            ),
            "not positions",
        ),
        "columns are shifted": (
            positions(
                SHIFT + "rows = Unsqueeze(k, rowAxes) columns = Unsqueeze(shifted, columnAxes) "
                "y = LessOrEqual(columns, rows)",
                "bool[1, 1, t, s] y",
            ),
            "not positions",
        ),
        "vectors": (positions("y = LessOrEqual(r, r)", "bool[s] y"), "not positions"),
    },
    "FunctionCausalMaskMulAdd": {
        "another step": (positions(ADDED, INTEGERS, step="2"), "not positions"),
        "another start": (positions(ADDED, INTEGERS, start="3"), "not positions"),
        "a product of positions": (
            positions(ADDED.replace("seven", "columns"), INTEGERS), "not positions",
        ),
        "something else is added": (
            positions(ADDED.replace("(m, columns)", "(m, seven)"), "int64[1, 1, s, 1] y"),
            "not positions",
        ),
    },
}  # fmt: skip
test_refuses = refusal_tests(REFUSED)
