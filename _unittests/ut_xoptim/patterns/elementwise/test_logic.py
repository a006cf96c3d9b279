"""Boolean operators."""

from __future__ import annotations

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

B = "g (bool[a] x) => (bool[a] y)"
W = "g (bool[a] c, float[a] u, float[a] v) => (float[a] y)"
E = "g (int64[a, b] x) => (int64[1, a, b] u, bool[1, a, b] y) <int64 c = {1}, int64[1] zero = {0}>"

#: what is always true, whatever the sizes are
TRUE = "e = Expand(yes, s) "
L = "g (bool[a, b] x, float[a, b] u) => (bool[a, b] y) <bool yes = {1}, bool no = {0}>"
C = """g (float[a, b] x, float[a, b] u, bool c) => (float[a, b] y) <
    bool yes = {1}, bool[1] no = {0}, float one = {1}>"""


def added(
    op: str, mask: str, always: str, more: str = "", outputs: str = "", x: str = "b, 4, s, s"
) -> str:
    """A mask of the keys that is combined with one of the queries, added to scores."""
    body = f"y = Add(x, w) {more}"
    if op:
        body = f"{always} o = {op}({mask}) w = Where(o, zero, low) {body}"
    else:
        body = f"w = Where(m, zero, low) {body}"
    return f"""g (float[{x}] x, bool[b, 1, 1, s] m, float[s] u) => (float[{x}] y{outputs}) <
        float zero = {{0}}, float[1] low = {{-1e9}}, int64 start = {{0}}, int64 step = {{1}},
        bool no = {{0}}, int64[3] axes = {{0, 1, 3}}> {{ {body} }}"""


RANGE = (
    "n = Shape(u) l = Squeeze(n) r = Range(start, l, step) q = Unsqueeze(r, axes) "
    "t = GreaterOrEqual(q, start)"
)
NEVER = "n = Shape(u) e = Expand(no, n) t = Unsqueeze(e, axes)"

MODELS = {
    "UselessConditionWhere": {
        "And": (added("And", "t, m", RANGE), added("", "", "")),
        "Or": (added("Or", "m, t", NEVER), added("", "", "")),
        "several layers, the mask first": (
            added("And", "t, m", RANGE, "z = Add(w, y)", ", float[b, 4, s, s] z"),
            added("", "", "", "z = Add(w, y)", ", float[b, 4, s, s] z"),
        ),
        "no position, one": (
            added("And", "t, m", RANGE),
            added("", "", ""),
            {"sizes": ({"b": 2, "s": 0}, {"b": 1, "s": 1}, {"b": 0, "s": 3})},
        ),
    },
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
        "a choice that is always the first": (
            f"{C} {{ s = Shape(u) {TRUE} y = Where(e, x, one) }}",
            f"{C} {{ y = Identity(x) }}",
        ),
        "a choice that is always the second": (
            f"{C} {{ y = Where(no, one, x) }}",
            f"{C} {{ y = Identity(x) }}",
        ),
    },
}

NEAR_MISSES = {
    "UselessConditionWhere": {
        "not always true": (
            added("And", "t, m", RANGE.replace("GreaterOrEqual", "Greater")),
            "always True",
        ),
        "not always false": (added("Or", "t, m", RANGE), "always False"),
        "scores that are broadcast": (
            added("And", "t, m", RANGE, x="b, 4, 1, s").replace("1, s] y", "s, s] y"),
            "a sum may change of shape",
        ),
        "the mask is an output": (
            added("And", "t, m", RANGE, outputs=", float[b, 1, s, s] w"),
            "the mask is used elsewhere",
        ),
        "the mask goes elsewhere": (
            added("And", "t, m", RANGE, "z = Neg(w)", ", float[b, 1, s, s] z"),
            "the mask is not added",
        ),
        "the mask is added to itself": (
            added("And", "t, m", RANGE, "z = Add(w, w)", ", float[b, 1, s, s] z"),
            "a sum may change of shape",
        ),
        "the condition is used elsewhere": (
            added("And", "t, m", RANGE, outputs=", bool[b, 1, s, s] o"),
            "Where is not the only use",
        ),
        "not the condition": (
            added("And", "t, m", RANGE).replace(
                "w = Where(o, zero, low) y = Add(x, w)",
                "w = Where(m, o, t) k = Cast<to = 1>(w) y = Add(x, k)",
            ),
            "not the condition",
        ),
        "numbers are an input": (
            added("And", "t, m", RANGE).replace("Where(o, zero, low)", "Where(o, zero, u)"),
            "an operand is not constant",
        ),
        "numbers of a higher rank": (
            added("And", "t, m", RANGE)
            .replace("float[1] low = {-1e9}", "float[2, 1, 1, 1] low = {1, 2}")
            .replace("Where(o, zero, low)", "Where(o, zero, low)")
            .replace("[b, ", "[2, "),
            "not one number",
        ),
    },
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
        "a choice that depends on the data": (
            f"{C} {{ y = Where(c, x, one) }}",
            "not known to choose one operand",
        ),
        "a choice that both operands take": (
            f"{C.replace('bool[1] no', 'bool[2, 1] no').replace('{0}', '{0, 1}')}"
            "{ y = Where(no, one, x) }",
            "not known to choose one operand",
        ),
        "a choice that the other operand makes broader": (
            "g (float[a] x, float[b, a] u) => (float[b, a] y) <bool yes = {1}>"
            "{ y = Where(yes, x, u) }",
            "the shape may change",
        ),
    },
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(NEAR_MISSES)


def test_opsets():
    text, after = MODELS["NotWhere"]["condition"]
    check_pattern(text, after, "NotWhere", opset=9)
