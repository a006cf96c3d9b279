"""Rows of a table read at a function of integers."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.analysis.values import integer_functions
from xoptim.patterns.for_models import gather_table
from xoptim.testing import check_no_match, refusal_tests, rewrite_tests

TABLE = np.arange(12, dtype=np.float32) ** 2 - 7


def model(
    body: str,
    kind: str = "int64",
    table: str = "",
    read: str = "Gather(table, i)",
    outputs: str = "",
    inputs: str = "",
    shape: str = "[a, b]",
) -> str:
    """A function *i* of the integers n, which reads rows of a table."""
    numbers = ", ".join(f"{kind} k{v} = {{{v}}}" for v in (0, 1, 2, 3, 5, 9))
    values = ", ".join(f"{v:g}" for v in TABLE)
    return f"""g ({kind}[a, b] n{inputs}) => (float{shape} y{outputs}) <
        {table or f"float[12] table = {{{values}}}"}, {numbers}, {kind} k70 = {{70}},
        {kind} k5000 = {{5000}}, float two = {{2}}, float three = {{3}}, double half = {{0.5}}> {{
        {body} y = {read}
    }}"""


def made(low: int, high: int, *rows: int, kind: str = "int64") -> str:
    """The same with the rows of 0, 1, 2, ..., then those of the negative integers."""
    values = ", ".join(f"{TABLE[r]:g}" for r in rows)
    return f"""g ({kind}[a, b] n) => (float[a, b] y) <float[{len(rows)}] table = {{{values}}},
        {kind} low = {{{low}}}, {kind} high = {{{high}}}> {{
        i = Clip(n, low, high) y = Gather(table, i)
    }}"""


def integers(kind: type = np.int64, far: int = 200) -> dict[str, object]:
    """Every integer around 0, some far ones, none."""
    limits = np.iinfo(kind)
    rows = [np.arange(-far, far), [limits.min + 1, limits.max, limits.max - 1, 0], []]
    return {"feeds": [{"n": np.array([row], dtype=kind)} for row in rows]}


BOTH = "u = Min(n, k5) v = Max(u, k0) i = Add(v, k1)"
#: the buckets of T5, for small distances and large ones, on both sides
BUCKETS = """
    after = Greater(n, k0) side = Cast<to = 7>(after) part = Mul(side, k5)
    d = Abs(n) near = Less(d, k2)
    f = Cast<to = 1>(d) r = Div(f, two) l = Log(r) s = Mul(l, three) t = Cast<to = 7>(s)
    far = Add(t, k2) last = Min(far, k5) bucket = Where(near, d, last) i = Add(part, bucket)
"""


def bucket(distance: int) -> int:
    """The bucket of a distance."""
    d = abs(distance)
    far = 2 + int(np.log(d / 2) * 3) if d > 1 else d
    return min(far, 5) + (5 if distance > 0 else 0)


MODELS = {
    "GatherTable": {
        "bounds and a shift": (model(BOTH), made(0, 5, 1, 2, 3, 4, 5, 6), integers()),
        "int32": (
            model(BOTH, "int32"),
            made(0, 5, 1, 2, 3, 4, 5, 6, kind="int32"),
            integers(np.int32),
        ),
        "the opposite": (
            model("u = Min(n, k5) v = Max(u, k0) w = Neg(v) i = Add(w, k9)"),
            made(0, 5, 9, 8, 7, 6, 5, 4),
            integers(),
        ),
        "negative rows": (
            model("u = Min(n, k2) v = Max(u, k0) i = Sub(v, k3)"),
            made(0, 2, 9, 10, 11),
            integers(),
        ),
        "conditions": (
            model(
                "a = GreaterOrEqual(n, k1) b = LessOrEqual(n, k5) c = And(a, b) d = Not(c) "
                "e = Or(d, d) i = Where(e, k9, k2)"
            ),
            made(0, 6, 9, 2, 2, 2, 2, 2, 9),
            integers(),
        ),
        "floats": (
            model(
                "a = Cast<to = 11>(n) b = Mul(a, half) c = Ceil(b) d = Floor(c) e = Sign(d) "
                "f = Cast<to = 7>(e) i = Add(f, k1)"
            ),
            made(-2, 1, 1, 2, 0, 1),
            integers(),
        ),
        "the buckets of T5": (
            model(BUCKETS),
            made(-6, 6, *(bucket(d) for d in (*range(7), *range(-6, 0)))),
            integers(),
        ),
        "rows of several elements": (
            model(
                BOTH,
                table="float[6, 2] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}",
                shape="[a, b, 2]",
            ).replace("Min(n, k5)", "Min(n, k2)"),
            """g (int64[a, b] n) => (float[a, b, 2] y) <int64 low = {0}, int64 high = {2},
                float[3, 2] table = {2, 3, 4, 5, 6, 7}> {
                i = Clip(n, low, high) y = Gather(table, i)
            }""",
            integers(),
        ),
        "what is before is read elsewhere": (
            model(
                f"p = Add(n, k1) {BOTH}".replace("(n, k5)", "(p, k5)"), outputs=", int64[a, b] p"
            ),
            """g (int64[a, b] n) => (float[a, b] y, int64[a, b] p) <int64 k1 = {1},
                int64 low = {0}, int64 high = {5}, float[6] table = {-6, -3, 2, 9, 18, 29}> {
                p = Add(n, k1) i = Clip(p, low, high) y = Gather(table, i)
            }""",
            integers(),
        ),
    },
}

NO_FUNCTION = "the rows are not at a function of integers, constant far from 0"
REFUSED = {
    "GatherTable": {
        "a table that is an input": (
            model(BOTH, table="int64 other = {0}", inputs=", float[12] table"),
            "the table is not constant",
        ),
        "columns": (
            model(
                BOTH,
                table="float[2, 6] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}",
                read="Gather<axis = 1>(table, i)",
                shape="[2, a, b]",
            ),
            "the rows are not read",
        ),
        "two operators": (model("u = Min(n, k5) i = Max(u, k0)"), NO_FUNCTION),
        "no upper bound": (model("u = Max(n, k0) v = Add(u, k1) i = Sub(v, k1)"), NO_FUNCTION),
        "no lower bound": (model("u = Min(n, k5) v = Add(u, k1) i = Sub(v, k1)"), NO_FUNCTION),
        "a bound that is too far": (
            model("u = Min(n, k5000) v = Max(u, k0) w = Sub(v, k1) i = Add(w, k1)"),
            NO_FUNCTION,
        ),
        "an overflow": (
            model("u = Add(n, k1) v = Min(u, k5) i = Max(v, k0)"),
            NO_FUNCTION,
        ),
        "the lowest integer has another row": (
            model("u = Abs(n) v = Min(u, k5) i = Max(v, k0)"),
            NO_FUNCTION,
        ),
        "the lowest integer has no opposite": (
            model("u = Neg(n) v = Min(u, k2) i = Max(v, k0)"),
            NO_FUNCTION,
        ),
        "a float no integer holds": (
            model(
                "a = Max(n, k0) f = Cast<to = 1>(a) l = Log(f) m = Cast<to = 7>(l) i = Min(m, k5)"
            ),
            NO_FUNCTION,
        ),
        "a row that is not in the table": (model(BOTH.replace("k5", "k70")), NO_FUNCTION),
        "two sources": (
            model(BOTH.replace("(v, k1)", "(v, m)"), inputs=", int64[a, b] m"),
            NO_FUNCTION,
        ),
        "numbers that differ": (
            model(
                BOTH.replace("k5", "many"),
                table="float[12] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "
                "int64[2] many = {3, 5}",
            ).replace("[a, b]", "[a, 2]"),
            NO_FUNCTION,
        ),
        "an inner result is read": (model(BOTH, outputs=", int64[a, b] v"), NO_FUNCTION),
        "the rows are read": (model(BOTH, outputs=", int64[a, b] i"), NO_FUNCTION),
        "a division of integers": (
            model("u = Min(n, k5) v = Max(u, k0) i = Div(v, k2)"),
            NO_FUNCTION,
        ),
        "int8": (
            model(
                f"m = Cast<to = 3>(n) {BOTH} j = Cast<to = 7>(i)".replace("n, k5", "m, k5"),
                read="Gather(table, j)",
            )
            .replace("int64 k", "int8 k")
            .replace("int8 k70 = {70}", "int8 k70 = {7}")
            .replace("int8 k5000 = {5000}", "int8 k500 = {5}"),
            NO_FUNCTION,
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)

test_refuses = refusal_tests(REFUSED)


def test_the_new_table_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather_table, "_BYTES", 16)
    check_no_match(model(BOTH), "GatherTable", "the new table is too big")


def test_no_rounding_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A distance is in the same bucket whatever computes the logarithm."""
    monkeypatch.setattr(integer_functions, "_LOGS", (lambda x: np.log(x) * 0.9,))
    check_no_match(model(BUCKETS), "GatherTable", NO_FUNCTION)
