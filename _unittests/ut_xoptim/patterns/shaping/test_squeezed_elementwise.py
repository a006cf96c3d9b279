"""Elementwise operators between a Squeeze and an Unsqueeze."""

from __future__ import annotations

from collections import Counter

import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests
from xoptim.testing.checks import reasons_of
from xoptim.testing.models import model_from_text

NAME = "SqueezedElementwise"
AXIS = "int64[1] k = {0}"
IMAGE = "agraph (float[1, a, b] x) => (float[1, a, b] y)"
CHANNELS = "float[3] c = {1, 2, 3}"

#: pattern -> case -> (before, after)
MODELS = {
    NAME: {
        "several operators": (
            f"{IMAGE} <{AXIS}, float c = {{2}}> {{ s = Squeeze(x, k) m = Mul(s, c) r = Relu(m)"
            " l = Clip(r, , c) y = Unsqueeze(l, k) }",
            f"{IMAGE} <float c = {{2}}> {{ m = Mul(x, c) r = Relu(m) y = Clip(r, , c) }}",
        ),
        "a vector on the right": (
            f"agraph (float[1, a, 3] x) => (float[1, a, 3] y) <{AXIS}, {CHANNELS}>"
            "{ s = Squeeze(x, k) m = Sub(c, s) y = Unsqueeze(m, k) }",
            f"agraph (float[1, a, 3] x) => (float[1, a, 3] y) <{CHANNELS}> {{ y = Sub(c, x) }}",
        ),
        "the vector has the axis among its dimensions": (
            "agraph (float[a, 3, 1, b] x) => (float[a, 3, 1, b] y)"
            " <int64[1] k = {2}, float[3, 1] c = {1, 2, 3}>"
            "{ s = Squeeze(x, k) m = Mul(s, c) y = Unsqueeze(m, k) }",
            "agraph (float[a, 3, 1, b] x) => (float[a, 3, 1, b] y)"
            " <int64[4] z = {1, 3, 1, 1}, float[3, 1] c = {1, 2, 3}>"
            "{ d = Reshape(c, z) y = Mul(x, d) }",
        ),
        "a Pad": (
            f"agraph (float[1, a, b] x) => (float[1, c, d] y) <{AXIS}, int64[4] p = {{1, 0, 2, 3}},"
            " float v = {5}> { s = Squeeze(x, k) r = Relu(s) q = Pad(r, p, v) y = Unsqueeze(q, k) }",
            "agraph (float[1, a, b] x) => (float[1, c, d] y) <int64[6] p = {0, 1, 0, 0, 2, 3},"
            " float v = {5}> { r = Relu(x) y = Pad(r, p, v) }",
        ),
        "a residual": (
            "agraph (float[1, a] x) => (float[1, a] z, float[1, a] y)"
            f" <{AXIS}> {{ s = Squeeze(x, k) r = Relu(s) z = Unsqueeze(r, k) e = Exp(x)"
            "  t = Squeeze(e, k) u = Add(r, t) y = Unsqueeze(u, k) }",
            "agraph (float[1, a] x) => (float[1, a] z, float[1, a] y)"
            " { z = Relu(x) e = Exp(x) y = Add(z, e) }",
        ),
        "another operand is unsqueezed": (
            "agraph (float[1, a, b] x, float[a, b] w) => (float[1, a, b] y)"
            f" <{AXIS}> {{ s = Squeeze(x, k) m = Mul(s, w) y = Unsqueeze(m, k) }}",
            "agraph (float[1, a, b] x, float[a, b] w) => (float[1, a, b] y)"
            f" <{AXIS}> {{ y = Mul(x, w) }}",
        ),
        "another operand is unsqueezed, not first": (
            "agraph (float[a, 1, b] x, float[a, b] w, float[a, 1, b] z) => (float[a, 1, b] y)"
            " <int64[1] k = {1}> { s = Squeeze(x, k) t = Squeeze(z, k) m = Mul(s, w)"
            "  n = Div(m, t) y = Unsqueeze(n, k) }",
            "agraph (float[a, 1, b] x, float[a, b] w, float[a, 1, b] z) => (float[a, 1, b] y)"
            " <int64[1] k = {1}> { s = Unsqueeze(w, k) m = Mul(x, s) y = Div(m, z) }",
        ),
        "the channels of a picture": (
            "g (float[a, 3, b] x) => (float[a, 2, b] y) <int64[1] k = {1}, int64 i = {0},"
            " int64 j = {1}, int64 l = {-1}> { r = Gather<axis = 1>(x, i) s = Gather<axis = 1>(x, j)"
            "  t = Gather<axis = -2>(x, l) m = Mul(r, s) n = Sub(r, t) u = Unsqueeze(m, k)"
            "  v = Unsqueeze(n, k) y = Concat<axis = 1>(u, v) }",
            "g (float[a, 3, b] x) => (float[a, 2, b] y) <int64[1] i = {0},"
            " int64[1] j = {1}, int64[1] l = {-1}> { r = Gather<axis = 1>(x, i)"
            "  s = Gather<axis = 1>(x, j) t = Gather<axis = 1>(x, l) m = Mul(r, s) n = Sub(r, t)"
            "  y = Concat<axis = 1>(m, n) }",
        ),
        "a result that is an output": (
            "agraph (float[1, a] x, float[1, a] w) => (float[1, a] y, float[a] m)"
            f" <{AXIS}> {{ s = Squeeze(x, k) t = Squeeze(w, k) m = Mul(s, t) y = Unsqueeze(m, k) }}",
            "agraph (float[1, a] x, float[1, a] w) => (float[1, a] y, float[a] m)"
            f" <{AXIS}> {{ y = Mul(x, w) m = Squeeze(y, k) }}",
        ),
    },
    "SqueezeBinaryUnsqueeze": {
        "the scalar is on the right": (
            """agraph (int64[1] x) => (int64[1] y) <int64[1] k = {0}, int64 c = {7}> {
                s = Squeeze(x, k)
                a = Sub(s, c)
                y = Unsqueeze(a, k)
            }""",
            "agraph (int64[1] x) => (int64[1] y) <int64 c = {7}> { y = Sub(x, c) }",
        ),
        "the scalar is on the left": (
            """agraph (int64[1] x, int64 c) => (bool[1] y) <int64[1] k = {-1}> {
                s = Squeeze(x)
                a = Less(c, s)
                y = Unsqueeze(a, k)
            }""",
            "agraph (int64[1] x, int64 c) => (bool[1] y) { y = Less(c, x) }",
        ),
    },
    "UnsqueezeEqual": {
        "an operand is unsqueezed elsewhere": (
            "g (int64[a] x) => (int64[1, a] u, bool[1, a] y) <int64 c = {1}, int64[1] k = {0}>"
            "{ e = Equal(x, c) y = Unsqueeze(e, k) u = Unsqueeze(x, k) }",
            "g (int64[a] x) => (int64[1, a] u, bool[1, a] y) <int64 c = {1}, int64[1] k = {0}>"
            "{ u = Unsqueeze(x, k) y = Equal(u, c) }",
        ),
        "both operands are unsqueezed elsewhere": (
            "g (int64[a] x, int64[a] z) => (int64[1, a] u, int64[1, a] v, bool[1, a] y)"
            " <int64[1] k = {0}, int64[1] l = {-2}>"
            "{ e = Less(x, z) y = Unsqueeze(e, k) u = Unsqueeze(x, k) v = Unsqueeze(z, l) }",
            "g (int64[a] x, int64[a] z) => (int64[1, a] u, int64[1, a] v, bool[1, a] y)"
            " <int64[1] k = {0}, int64[1] l = {-2}>"
            "{ u = Unsqueeze(x, k) v = Unsqueeze(z, l) y = Less(u, v) }",
        ),
    },
}
MANY = "there are as many Squeeze and Unsqueeze"

#: case -> (model, reason)
REFUSED = {
    NAME: {
        "no Squeeze": (
            f"agraph (float[a] x) => (float[1,a] y) <{AXIS}> {{ n = Neg(x) y = Unsqueeze(n, k) }}",
            MANY,
        ),
        "an input, beside operators that are squeezed": (
            f"agraph (float[a] w, float[1, a] x) => (float[1, a] y, float[1, a] z) <{AXIS}>"
            "{ y = Unsqueeze(w, k) s = Squeeze(x, k) n = Neg(s) z = Add(n, x) }",
            "no .* before",
        ),
        "the Squeeze is read elsewhere, the result too": (
            f"agraph (float[1, a] x) => (float[1, a] y, float[a] s, float[a] n) <{AXIS}>"
            "{ s = Squeeze(x, k) n = Neg(s) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "one operand is squeezed, another one is not": (
            "agraph (float[a, 1] x, float[a] w) => (float[a, 1] y, float[a] m) <int64[1] k = {1}>"
            "{ s = Squeeze(x, k) m = Mul(s, w) y = Unsqueeze(m, k) }",
            MANY,
        ),
        "a scalar that a Range reads": (
            "agraph (int64[1] x, int64[1] z) => (int64[1] y, int64[a] r) <int64[1] k = {0}, int64 c = {1}>"
            "{ s = Squeeze(x, k) t = Squeeze(z, k) n = Add(s, t) y = Unsqueeze(n, k) r = Range(c, n, c) }",
            MANY,
        ),
        "a Gather that something else reads": (
            "g (float[3, a] x) => (float[1, a] y, float[a] r) <int64[1] k = {0}, int64 i = {1}>"
            "{ r = Gather(x, i) n = Neg(r) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "a Gather along another axis": (
            "g (float[b, 3] x) => (float[1, b] y) <int64[1] k = {0}, int64 i = {1}>"
            "{ r = Gather<axis = 1>(x, i) n = Neg(r) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "the position is computed": (
            "g (float[3, a] x, int64 i) => (float[1, a] y) <int64[1] k = {0}>"
            "{ r = Gather(x, i) n = Neg(r) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "other axes": (
            "agraph (float[1, a, 1] x) => (float[1, 1, a] y) <int64[1] k = {2}, int64[1] l = {0}>"
            "{ s = Squeeze(x, k) n = Neg(s) y = Unsqueeze(n, l) }",
            MANY,
        ),
        "unknown axes": (
            "agraph (float[1, a] x, int64[1] l) => (float[1, a] y) <int64[1] k = {0}>"
            "{ s = Squeeze(x, k) n = Neg(s) y = Unsqueeze(n, l) }",
            "the axes are not known",
        ),
        "the other operand has more dimensions": (
            "agraph (float[1, a] x, float[b, a] w) => (float[1, b, a] y) <int64[1] k = {0}>"
            "{ s = Squeeze(x, k) n = Sub(s, w) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "another operand has the axis among its dimensions": (
            "agraph (float[a, b, 1, c] x, float[b, c] w) => (float[a, b, 1, c] y)"
            " <int64[1] k = {2}> { s = Squeeze(x, k) n = Sub(s, w) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "the bound of a Clip is a vector": (
            "agraph (float[1, a] x) => (float[1, a] y) <int64[1] k = {0}, float[1] c = {1}>"
            "{ s = Squeeze(x, k) n = Clip(s, c) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "the padding is computed": (
            "agraph (float[1, a] x, int64[2] p) => (float[1, b] y) <int64[1] k = {0}>"
            "{ s = Squeeze(x, k) n = Pad(s, p) y = Unsqueeze(n, k) }",
            MANY,
        ),
        "a subgraph reads the result": (
            "agraph (float[1, a] x, bool q) => (float[1, a] y, float[a] z) <int64[1] k = {0}>"
            "{ s = Squeeze(x, k) n = Neg(s) y = Unsqueeze(n, k)"
            "  z = If(q) <then_branch = h () => (float[a] t) { t = Abs(n) },"
            "  else_branch = i () => (float[a] u) { u = Abs(s) }> }",
            MANY,
        ),
    },
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)

#: before opset 13, the axes are attributes
OLD = (
    """agraph (int64[1] x) => (int64[1] y) <int64 c = {7}> {
        s = Squeeze <axes = [0]> (x)
        a = Sub(s, c)
        y = Unsqueeze <axes = [0]> (a)
    }""",
    "agraph (int64[1] x) => (int64[1] y) <int64 c = {7}> { y = Sub(x, c) }",
)


@pytest.mark.parametrize("opset", [11, 12])
def test_axes_are_attributes(opset: int) -> None:
    check_pattern(*OLD, NAME, opset=opset)


def test_broadcasting_of_opset_7() -> None:
    check_no_match(OLD[0], NAME, "needs opset 8", opset=7)


def test_the_first_one_writes_all() -> None:
    text = (
        f"agraph (float[1, a] x) => (float[1, a] z, float[1, a] y, float[a] r) <{AXIS}>"
        "{ s = Squeeze(x, k) r = Relu(s) z = Unsqueeze(r, k) n = Sub(r, s) y = Unsqueeze(n, k)"
        "  o = Abs(n) }"
    )
    first, second = reasons_of(model_from_text(text, 18), NAME)
    assert first[1].startswith("MatchResult")
    assert "it is written with an Unsqueeze before it" in second[1]


def test_network_without_a_batch() -> None:
    """Each convolution adds the batch that the next operators do not have."""
    layer = (
        "u{i} = Unsqueeze(r{p}, k) c{i} = Conv<pads = [0, 0]>(u{i}, w) s{i} = Squeeze(c{i}, k)"
        " a{i} = Add(s{i}, r{p}) r{i} = Relu(a{i}) "
    )
    body = "".join(layer.format(i=i, p=i - 1) for i in range(1, 5))
    text = (
        f"agraph (float[2, a] r0) => (float[2, a] y) <{AXIS}, float[2, 2, 1] w = {{1, 2, 3, 4}}>"
        f"{{ {body} y = Neg(r4) }}"
    )
    made = check_pattern(text, None, [NAME, "SqueezeUnsqueeze", "SameChildren"], sizes=[{"a": 5}])
    found = Counter(node.op_type for node in made.graph.node)
    assert found["Squeeze"] + found["Unsqueeze"] < 4
