"""Two operators of arithmetic in one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_cuda.cuda_ops import (
    check,
    check_refused,
    cuda_rewrite_tests,
    only_on_cuda_test,
    parsed,
    spelled,
)

from xoptim.catalogue.registry import all_patterns
from xoptim.testing import make_feeds

SAME = "g (float[a, b] x, float[a, b] y, float[a, b] z) => (float[a, b] r)"
ENDS = "g (float[4] x, float[1, 4] y, float[3, 4] z) => (float[3, 4] r)"
TWO = SAME.replace("] r)", "] r, float[a, b] s)")

#: pattern -> case -> the operators, what they become
CASES = {
    "AddAddMulMul": {
        "additions": ("t = Add(x, y) r = Add(t, z)", "r = cuda.AddAdd(x, y, z)"),
        "products, the other order": ("t = Mul(x, y) r = Mul(z, t)", "r = cuda.MulMul(x, y, z)"),
    },
    "AddMul": {
        "sum first": ("t = Add(x, y) r = Mul(t, z)", "r = cuda.AddMul(x, y, z)"),
        "product first": ("t = Mul(x, y) r = Add(z, t)", "r = cuda.MulAdd(x, y, z)"),
    },
    "SubMul": {
        "difference first": ("t = Sub(x, y) r = Mul(z, t)", "r = cuda.SubMul(x, y, z)"),
        "product first": ("t = Mul(x, y) r = Sub(t, z)", "r = cuda.MulSub(x, y, z)"),
        "product second": (
            "t = Mul(x, y) r = Sub(z, t)",
            "r = cuda.MulSub <negative = 1> (x, y, z)",
        ),
    },
    "AddMulSharedInput": {
        "additions": ("r = Add(x, y) s = Add(x, z)", "r, s = cuda.AddSharedInput(x, y, z)"),
        "products": ("r = Mul(y, x) s = Mul(z, x)", "r, s = cuda.MulSharedInput(x, y, z)"),
    },
}


def _pair(pattern: str, head: str, case: tuple[str, str]) -> tuple[str, str]:
    if "Shared" in pattern:
        head = head.replace("] r)", "] r, float[3, 4] s)" if "3" in head else "] r, float[a, b] s)")
    return f"{head} {{ {case[0]} }}", spelled(f"{head} {{ {case[1]} }}")


MODELS = {
    f"{pattern}{end}": {name: _pair(pattern, head, case) for name, case in cases.items()}
    for pattern, cases in CASES.items()
    for end, head in (("", SAME), ("Broadcast", ENDS))
}
# two sums which share the operand that is repeated, or not
MODELS["AddMulSharedInputBroadcast"] = {
    name: _pair("Shared", SAME.replace("a, b", "3, 4").replace("float[3, 4] x", "float[4] x"), case)
    for name, case in CASES["AddMulSharedInput"].items()
}
MIDDLE = (
    "g (float[a, b, c, 2] x, float[a, b, c, 2] y, float[a, b, c, 2] z) => (float[a, c, b, 2] r)"
)
_TURNED = "<perm = [0, 2, 1, 3]>"
MODELS["AddMulTranspose"] = {
    name: (
        spelled(f"{MIDDLE} {{ t = cuda.{name}(x, y, z) r = Transpose {_TURNED} (t) }}"),
        spelled(f"{MIDDLE} {{ r = cuda.{name} <transposeMiddle = 1> (x, y, z) }}"),
    )
    for name in ("AddMul", "MulAdd")
}
SIZES = ({"a": 3, "b": 4, "c": 2}, {"a": 1, "b": 5, "c": 1}, {"a": 2, "b": 0, "c": 3})
test_rewrites = cuda_rewrite_tests(
    MODELS, lambda pattern, name, before: [make_feeds(parsed(before), s) for s in SIZES]
)

FUSED = [f"{p}{end}" for p in ("AddAddMulMul", "AddMul", "SubMul") for end in ("", "Broadcast")]
SHARED = ["AddMulSharedInput", "AddMulSharedInputBroadcast"]


test_only_on_cuda = only_on_cuda_test(MODELS)


@pytest.mark.parametrize("pattern", FUSED + SHARED)
def test_integers(pattern: str) -> None:
    before = next(iter(MODELS[pattern].values()))[0].replace("float", "int64")
    check_refused(before, pattern, "the type is not float nor float16")


@pytest.mark.parametrize("pattern", FUSED)
def test_refuses(pattern: str) -> None:
    """Inner result needed, operand that a kernel would repeat in another order."""
    before = next(iter(MODELS[pattern].values()))[0].replace("a, b", "3, 4")
    needed = before.replace("] r)", "] r, float[3, 4] t)")
    check_refused(needed, pattern, "an inner result is used elsewhere")
    columns = before.replace("float[3, 4] z", "float[3, 1] z").replace(
        "float[4] x", "float[3, 4] x"
    )
    check_refused(columns, pattern, "the kernel may not broadcast these shapes")
    unknown = before.replace("float[3, 4] z", "float[c, d] z")
    check_refused(unknown, pattern, "the kernel may not broadcast these shapes")


def test_no_operand_has_the_shape_of_the_result() -> None:
    before = f"{SAME} {{ t = Add(x, y) r = Mul(t, z) }}"
    before = before.replace("float[a, b] x", "float[1, b] x").replace("float[a, b] z", "float[b] z")
    before = before.replace("float[a, b] y", "float[a, 1] y")
    for name, size in (("[a,", "[3,"), (" b]", " 4]"), ("[b]", "[4]")):
        before = before.replace(name, size)
    check_refused(before, "AddMulBroadcast", "the kernel may not broadcast these shapes")


def test_a_dimension_that_may_be_null() -> None:
    """The biggest operand would not be the one with the shape of the result."""
    before = f"{ENDS} {{ t = Add(x, y) r = Mul(t, z) }}".replace("3, 4", "a, 4")
    check_refused(before, "AddMulBroadcast", "the kernel may not broadcast these shapes")


def test_repeated_operands_need_the_broadcast_form() -> None:
    before = f"{ENDS} {{ t = Add(x, y) r = Mul(t, z) }}"
    check_refused(before, "AddMul", "the kernel may not broadcast these shapes")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("r = Add(x, y) s = Mul(x, z)", "no other operator on the same operand"),
        # the second sum needs the first one: one kernel cannot give both
        ("r = Add(x, y) s = Add(x, r)", "no other operator on the same operand"),
        ("r = Add(x, y) n = Neg(r) s = Add(x, n)", "no other operator on the same operand"),
    ],
)
def test_shared_input_refuses(body: str, reason: str) -> None:
    check_refused(f"{TWO} {{ {body} }}", "AddMulSharedInput", reason)


def test_results_of_two_shapes() -> None:
    text = f"{TWO} {{ r = Add(x, y) s = Add(x, z) }}".replace("float[a, b] x", "float[b] x")
    text = text.replace("float[a, b] z", "float[c, b] z").replace("float[a, b] s", "float[c, b] s")
    for pattern in SHARED:
        check_refused(text, pattern, "the results may not have the same shape")


MISSES = {
    "another permutation": (
        "{ t = cuda.AddMul(x, y, z) r = Transpose <perm = [0, 1, 3, 2]> (t) }",
        "the permutation is not",
    ),
    "transposed already": (
        f"{{ t = cuda.AddMul <transposeMiddle = 1> (x, y, z) r = Transpose {_TURNED} (t) }}",
        "the kernel transposes already",
    ),
}


@pytest.mark.parametrize("name", MISSES)
def test_transpose_refuses(name: str) -> None:
    body, reason = MISSES[name]
    check_refused(f"{MIDDLE} {body}", "AddMulTranspose", reason)


def test_one_kernel_by_operators() -> None:
    """Priorities: the same shapes first, then those that are repeated."""
    patterns = all_patterns()
    for name in [*CASES, "AddMulTranspose"]:
        assert patterns[name].tags[0] == "experimental"
    for name in CASES:
        assert (patterns[name].priority, patterns[f"{name}Broadcast"].priority) == (3, 4)


SHAPES = ("A, B", "B", "1, B", "1", "1, 1", "")


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(CASES)),
    st.integers(0, 3),
    st.tuples(*[st.sampled_from(SHAPES)] * 3),
    st.sampled_from((("2", "3"), ("1", "1"), ("1", "4"), ("a", "b"))),
)
def test_repeated_as_broadcast(
    pattern: str, case: int, shapes: tuple[str, ...], sizes: tuple[str, str]
) -> None:
    """The kernel repeats the operand that is broadcast, for all shapes; null dimensions have
    operands of one shape."""
    rows = list(CASES[pattern].values())
    shapes = ("A, B", *shapes[1:]) if "Shared" in pattern else (*shapes[:2], "A, B")
    if sizes == ("a", "b"):
        shapes = ("A, B",) * 3
    head = (SAME if "Shared" not in pattern else TWO).replace("a, b", "A, B")
    for name, shape in zip("xyz", shapes, strict=True):
        head = head.replace(f"float[A, B] {name}", f"float[{shape}] {name}")
    text = f"{head} {{ {rows[case % len(rows)][0]} }}".replace("float[] ", "float ")
    text = text.replace("A,", f"{sizes[0]},").replace("B]", f"{sizes[1]}]")
    feeds = make_feeds(parsed(text), {"a": 2, "b": 0})
    feeds = {k: np.round(v * 4) for k, v in feeds.items()}
    check(text, None, pattern if sizes == ("a", "b") else f"{pattern}Broadcast", [feeds])
