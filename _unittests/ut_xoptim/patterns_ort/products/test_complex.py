"""Products of complex numbers."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.cuda_reference import check

from xoptim.testing import refusal_tests

SIZES = ({},)
SPLIT = "ar, ai = Split<axis = -1>(a, ones) br, bi = Split<axis = -1>(b, ones) "
GATHER = " ".join(
    f"{x}{p} = Gather<axis = -1>({x}, {i})"
    for x in "ab"
    for p, i in (("r", "first"), ("i", "last"))
)
REAL = "p = Mul(ar, br) q = Mul(ai, bi) re = Sub(p, q) "
IMAGINARY = "t = Mul(ar, bi) u = Mul(ai, br) im = Add(t, u) "
JOIN = "y = Concat<axis = -1>(re, im)"
STACK = " r1 = Unsqueeze(re, end) i1 = Unsqueeze(im, end) y = Concat<axis = -1>(r1, i1)"
CONJUGATE = (
    "p = Mul(ar, br) q = Mul(ai, bi) re = Add(p, q) t = Mul(ai, br) u = Mul(ar, bi) im = Sub(t, u) "
)


def model(body: str, b: str = "", kind: str = "float", length: str = "2", count: str = "1") -> str:
    """Two complex numbers."""
    dims = f"1, {count}, {length}"
    b = b or dims
    return f"""g ({kind}[{dims}] a, {kind}[{b}] b) => ({kind}[{dims}] y) <
        int64[2] ones = {{1, 1}}, int64 first = {{0}}, int64 last = {{-1}}, int64[1] end = {{-1}}
    > {{ {body} }}"""


def written(name: str) -> str:
    dims = "float[1, 1, 2]"
    return f"g ({dims} a, {dims} b) => ({dims} y) {{ y = com.microsoft.{name} }}"


#: what the documentation draws: name -> (before, after)
MODELS = {
    "ComplexMul": (model(SPLIT + REAL + IMAGINARY + JOIN), written("ComplexMul(a, b)")),
    "ComplexMulConj": (model(SPLIT + CONJUGATE + JOIN), written("ComplexMulConj(a, b)")),
}


@pytest.mark.parametrize("pattern", MODELS)
def test_rewrites(pattern: str) -> None:
    check(*MODELS[pattern], pattern, SIZES)


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (GATHER + REAL + IMAGINARY + STACK, "ComplexMul(a, b)"),
        (SPLIT + REAL + IMAGINARY.replace("(t, u)", "(u, t)") + JOIN, "ComplexMul(a, b)"),
        (SPLIT + REAL.replace("ai, bi", "bi, ai") + IMAGINARY + JOIN, "ComplexMul(a, b)"),
        (GATHER + CONJUGATE + STACK, "ComplexMulConj(a, b)"),
        (
            SPLIT + CONJUGATE.replace("Sub(t, u)", "Sub(u, t)") + JOIN,
            "ComplexMulConj(b, a)",
        ),
    ],
)
def test_orders(body: str, result: str) -> None:
    check(model(body), written(result), result.split("(")[0], SIZES)


@pytest.mark.parametrize("name", ["ComplexMul", "ComplexMulConj"])
def test_square(name: str) -> None:
    """Both operands are the same number."""
    body = (SPLIT + (REAL + IMAGINARY if name == "ComplexMul" else CONJUGATE) + JOIN).replace(
        "(b, ones)", "(a, ones)"
    )
    check(model(body), written(f"{name}(a, a)"), name, SIZES)


ALL = SPLIT + REAL + IMAGINARY + JOIN
REFUSED = {
    "the difference is the other one": (
        model(ALL.replace("Sub(p, q)", "Sub(q, p)")), "the factors are not",
    ),
    "a factor twice": (model(ALL.replace("Mul(ai, br)", "Mul(ai, bi)")), "cannot be 'b0'"),
    "the parts exchanged": (model(ALL.replace("ar, ai = S", "ai, ar = S")), "the factors are not"),
    "broadcast": (model(ALL, count="4", b="1, 1, 2"), "the shapes are not the same"),
    "several": (model(ALL, count="4"), "the kernel is wrong for several numbers"),
    "an unknown number": (model(ALL, count="n"), "the kernel is wrong for several numbers"),
    "longer": (
        model(ALL.replace("(b, ones)", "(a, ones)"), length="3", b="1, 1, 2")
        .replace("{1, 1}", "{1, 2}"),
        "the last dimension is not 2",
    ),
    "parts of another axis": (
        model(ALL.replace("Split<axis = -1>", "Split<axis = 1>"), count="4")
        .replace("{1, 1}", "{2, 2}").replace("4, 2] y", "2, 4] y"),
        "the parts are not on the last axis",
    ),
    "a part without element": (
        model(ALL.replace("ar, ai = Split<axis = -1>(a, ones)", "az, ar, ai = Split<axis = -1>(a, three)"))
        .replace("int64 first", "int64[3] three = {0, 1, 1}, int64 first"),
        "the parts are not those of complex numbers",
    ),
    "another axis": (
        model(ALL.replace("axis = -1>(re", "axis = 1>(re")).replace("float[1, 1, 2] y", "float[1, 2, 1] y"),
        "not joined on the last axis",
    ),
    "other factors": (model("n0 = Neg(a) " + ALL.replace("(a, ones)", "(n0, ones)")
        .replace("Mul(ar, bi)", "Mul(br, bi)")), "cannot be 'b0'"),
    "type": (model(ALL, kind="double"), "no ComplexMul for this type"),
    "on CPU": (model(ALL), "no ComplexMul for this type", {"processor": "CPU"}),
}  # fmt: skip
CONJUGATES = {
    "no conjugate": (
        model(SPLIT + CONJUGATE.replace("Mul(ai, br)", "Mul(ar, br)") + JOIN), "cannot be 'b0'",
    ),
    "on CPU": (
        model(SPLIT + CONJUGATE + JOIN), "no ComplexMulConj for this type", {"processor": "CPU"},
    ),
}  # fmt: skip

test_refuses = refusal_tests(
    {"ComplexMul": REFUSED, "ComplexMulConj": CONJUGATES}, processor="CUDA"
)
