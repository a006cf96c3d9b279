"""Boolean operators."""

from __future__ import annotations

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

B = "g (bool[a] x) => (bool[a] y)"
W = "g (bool[a] c, float[a] u, float[a] v) => (float[a] y)"
E = "g (int64[a, b] x) => (int64[1, a, b] u, bool[1, a, b] y) <int64 c = {1}, int64[1] zero = {0}>"

#: what is always true, whatever the sizes are
TRUE = "e = Expand(yes, s) "
L = "g (bool[a, b] x, float[a, b] u) => (bool[a, b] y) <bool yes = {1}, bool no = {0}>"

MODELS = {
    "NotNot": {
        "twice": (f"{B} {{ i = Not(x) y = Not(i) }}", f"{B} {{ y = Identity(x) }}"),
        "three times": (f"{B} {{ i = Not(x) j = Not(i) y = Not(j) }}", f"{B} {{ y = Not(x) }}"),
        "the inner result is an output": (
            "g (bool[a] x) => (bool[a] i, bool[a] y) { i = Not(x) j = Not(i) y = And(j, x) }",
            "g (bool[a] x) => (bool[a] i, bool[a] y) { i = Not(x) y = And(x, x) }",
        ),
        "the inner result is captured": (
            "g (bool[a] x, bool c) => (bool[a] y) { i = Not(x) j = Not(i) k = If(c) <"
            "  then_branch = g1 () => (bool[a] o1) { o1 = Or(i, i) },"
            "  else_branch = g2 () => (bool[a] o2) { o2 = And(i, i) } > y = And(j, k) }",
            "g (bool[a] x, bool c) => (bool[a] y) { i = Not(x) k = If(c) <"
            "  then_branch = g1 () => (bool[a] o1) { o1 = Or(i, i) },"
            "  else_branch = g2 () => (bool[a] o2) { o2 = And(i, i) } > y = And(x, k) }",
        ),
    },
    "NotWhere": {
        "condition": (f"{W} {{ n = Not(c) y = Where(n, u, v) }}", f"{W} {{ y = Where(c, v, u) }}"),
        "broadcast": (
            "g (bool[a, 1] c, float[b] u, float v) => (float[a, b] y)"
            "{ n = Not(c) y = Where(n, u, v) }",
            "g (bool[a, 1] c, float[b] u, float v) => (float[a, b] y) { y = Where(c, v, u) }",
        ),
        "an output": (
            "g (bool[a] c, float[a] u, float[a] v) => (float[a] y, bool[a] n)"
            "{ n = Not(c) y = Where(n, u, v) }",
            "g (bool[a] c, float[a] u, float[a] v) => (float[a] y, bool[a] n)"
            "{ n = Not(c) y = Where(c, v, u) }",
        ),
        "two consumers": (
            "g (bool[a] c, float[a] u, float[a] v) => (float[a] y, float[a] z)"
            "{ n = Not(c) y = Where(n, u, v) z = Where(n, v, u) }",
            "g (bool[a] c, float[a] u, float[a] v) => (float[a] y, float[a] z)"
            "{ y = Where(c, v, u) z = Where(c, u, v) }",
        ),
    },
    "UselessCondition": {
        "always true": (
            f"{L} {{ s = Shape(u) {TRUE} y = And(x, e) }}",
            f"{L} {{ y = Identity(x) }}",
        ),
        "always true, first": (
            f"{L} {{ s = Shape<start = 1>(u) {TRUE} y = And(e, x) }}",
            f"{L} {{ y = Identity(x) }}",
        ),
        "never": (
            f"{L} {{ s = Shape(u) e = Expand(no, s) y = Or(x, e) }}",
            f"{L} {{ y = Identity(x) }}",
        ),
        "a constant": (f"{L} {{ y = And(x, yes) }}", f"{L} {{ y = Identity(x) }}"),
        "both": (
            f"{L} {{ s = Shape(u) {TRUE} y = And(yes, e) }}",
            f"{L} {{ s = Shape(u) y = Expand(yes, s) }}",
        ),
    },
    "UnsqueezeEqual": {
        "same axes": (
            f"{E} {{ e = Equal(x, c) y = Unsqueeze(e, zero) u = Unsqueeze(x, zero) }}",
            f"{E} {{ u = Unsqueeze(x, zero) y = Equal(u, c) }}",
        ),
        "the constant first, equal axes": (
            f"{E} {{ axis = Constant<value_ints=[0]>()"
            "  u = Unsqueeze(x, axis) e = Equal(c, x) y = Unsqueeze(e, zero) }",
            f"{E} {{ u = Unsqueeze(x, zero) y = Equal(c, u) }}",
        ),
        "a constant of rank 1": (
            f"{E} {{ k = Constant<value_ints=[2]>()"
            "  u = Unsqueeze(x, zero) e = Equal(x, k) y = Unsqueeze(e, zero) }",
            f"{E} {{ k = Constant<value_ints=[2]>() u = Unsqueeze(x, zero) y = Equal(u, k) }}",
        ),
    },
}

NEAR_MISSES = {
    "NotNot": {"once": (f"{B} {{ a = And(x, x) y = Not(a) }}", "no Not before")},
    "NotWhere": {
        "a value": (
            "g (bool[a] c, bool[a] u) => (bool[a] y) { n = Not(c) y = Where(u, n, u) }",
            "no Not before Where",
        ),
    },
    "UselessCondition": {
        "another value": (
            f"{L} {{ s = Shape(u) e = Expand(no, s) y = And(x, e) }}",
            "known to be always True",
        ),
        "not the neutral one": (
            f"{L} {{ s = Shape(u) {TRUE} y = Or(x, e) }}",
            "known to be always False",
        ),
        "unknown": (
            "g (bool[a] x, bool[a] u) => (bool[a] y) { y = And(x, u) }",
            "known to be always True",
        ),
        "broader": (
            "g (bool[a] x, float[b, a] u) => (bool[b, a] y) <bool yes = {1}>"
            f"{{ s = Shape(u) {TRUE} y = And(x, e) }}",
            "the shape may change",
        ),
        "another dimension": (
            "g (bool[a] x, float[b] u) => (bool[c] y) <bool yes = {1}>"
            f"{{ s = Shape(u) {TRUE} y = And(x, e) }}",
            "the shape may change",
        ),
    },
    "UnsqueezeEqual": {
        "no constant": (
            "g (int64[a] x, int64[a] c) => (int64[1, a] u, bool[1, a] y) <int64[1] zero = {0}>"
            "{ e = Equal(x, c) y = Unsqueeze(e, zero) u = Unsqueeze(x, zero) }",
            "no operand is a constant",
        ),
        "a constant of a higher rank": (
            "g (int64[a] x) => (int64[1, a] u, bool[1, 1, a] y) <int64[1, 1] c={1},"
            " int64[1] zero = {0}>"
            "{ e = Equal(x, c) y = Unsqueeze(e, zero) u = Unsqueeze(x, zero) }",
            "no operand is a constant",
        ),
        "the consumer is not an Unsqueeze": (
            "g (int64[a] x) => (int64[1, a] u, bool[a] y) <int64 c={1}, int64[1] zero = {0}>"
            "{ e = Equal(x, c) y = Not(e) u = Unsqueeze(x, zero) }",
            "does not go to one Unsqueeze only",
        ),
        "the comparison is an output": (
            "g (int64[a] x) => (int64[1, a] u, bool[1, a] y, bool[a] e) <int64 c={1},"
            " int64[1] zero={0}>"
            "{ e = Equal(x, c) y = Unsqueeze(e, zero) u = Unsqueeze(x, zero) }",
            "used elsewhere",
        ),
        "other axes": (
            "g (int64[a] x) => (int64[1, a] u, bool[a, 1] y) <int64 c={1}, int64[1] zero={0}>"
            "{ one = Constant<value_ints=[1]>() e = Equal(x, c) y = Unsqueeze(e, one)"
            "  u = Unsqueeze(x, zero) }",
            "no Unsqueeze of the operand",
        ),
        "nothing to share": (
            "g (int64[a] x) => (bool[1, a] y) <int64 c={1}, int64[1] zero={0}>"
            "{ e = Equal(x, c) y = Unsqueeze(e, zero) }",
            "no Unsqueeze of the operand",
        ),
    },
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(NEAR_MISSES)


def test_opsets():
    text, after = MODELS["NotWhere"]["condition"]
    check_pattern(text, after, "NotWhere", opset=9)
    check_no_match(text, "NotWhere", "needs opset 9", opset=8)
