"""Pad between nodes that only say the same dimensions in another way, or that cancel."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

H = "g (float[a, 4, 5] x) => (float[a, 7, 5] y)"
P = "int64[8] p = {0, 0, 1, 0, 0, 0, 2, 0}"
A = "int64[1] k = {1}"
AROUND = "u = Unsqueeze(x, k) v = Pad(u, p) y = Squeeze(v, k)"
AFTER = "int64[6] q = {0, 1, 0, 0, 2, 0}"
REFLECTED = AROUND.replace("Pad(", 'Pad<mode = "reflect">(')

MODELS = {
    "PadBetweenReshapes": {
        "Unsqueeze and Squeeze": (
            f"{H} <{P}, {A}> {{ {AROUND} }}",
            f"{H} <{AFTER}> {{ y = Pad(x, q) }}",
        ),
        "a number, another mode": (
            f"{H} <{P}, {A}, float z = {{3}}> {{ {AROUND.replace('u, p', 'u, p, z')} }}",
            f"{H} <{AFTER}, float z = {{3}}> {{ y = Pad(x, q, z) }}",
        ),
        "reflect": (
            f"{H} <{P}, {A}> {{ {REFLECTED} }}",
            f'{H} <{AFTER}> {{ y = Pad<mode = "reflect">(x, q) }}',
        ),
        "axes": (
            f"{H} <int64[2] p = {{1, 2}}, int64[1] i = {{-2}}, {A}>"
            f"{{ {AROUND.replace('u, p', 'u, p, , i')} }}",
            f"{H} <{AFTER}> {{ y = Pad(x, q) }}",
        ),
        "a dimension 1 goes to another place": (
            "g (float[a, 1, 1, 6] x) => (float[a, 1, 1, 9] y) <int64[3] s = {-1, 6, 1},"
            "int64[6] p = {0, 1, 0, 0, 2, 0}, int64[4] t = {-1, 1, 1, 9}>"
            "{ u = Reshape(x, s) v = Pad(u, p) y = Reshape(v, t) }",
            "g (float[a, 1, 1, 6] x) => (float[a, 1, 1, 9] y)"
            "<int64[8] q = {0, 0, 0, 1, 0, 0, 0, 2}> { y = Pad(x, q) }",
        ),
        "a Reshape stays": (
            "g (float[a, 6, 1] x) => (float[a, 1, 1, 9] y) <int64[3] s = {-1, 1, 6},"
            "int64[6] p = {0, 0, 1, 0, 0, 2}, int64[4] t = {-1, 1, 1, 9}>"
            "{ u = Reshape(x, s) v = Pad(u, p) y = Reshape(v, t) }",
            "g (float[a, 6, 1] x) => (float[a, 1, 1, 9] y)"
            "<int64[6] q = {0, 1, 0, 0, 2, 0}, int64[4] t = {-1, 1, 1, 9}>"
            "{ v = Pad(x, q) y = Reshape(v, t) }",
        ),
        "the first one is read elsewhere": (
            f"{H.replace('] y', '] y, float[a, 1, 4, 5] u')} <{P}, {A}> {{ {AROUND} }}",
            f"{H.replace('] y', '] y, float[a, 1, 4, 5] u')} <{AFTER}, {A}>"
            "{ y = Pad(x, q) u = Unsqueeze(x, k) }",
        ),
    },
}

REFUSED = {
    "PadBetweenReshapes": {
        "no Pad": (
            f"{H.replace('7, 5', '4, 5')} <{A}> {{ u = Unsqueeze(x, k) y = Squeeze(u, k) }}",
            "no Pad before",
        ),
        "nothing before": (
            "g (float[a, 1, 4, 5] u) => (float[a, 7, 5] y)"
            f"<{P}, {A}> {{ v = Pad(u, p) y = Squeeze(v, k) }}",
            "no .* before",
        ),
        "what is padded is read elsewhere": (
            f"{H.replace('] y', '] y, float[a, 1, 7, 5] v')} <{P}, {A}> {{ {AROUND} }}",
            "what is padded is used elsewhere",
        ),
        "the padding is an input": (
            f"g (float[a, 4, 5] x, int64[8] p) => (float[a, b, c] y) <{A}> {{ {AROUND} }}",
            "the padding is not constant",
        ),
        "axes are an input": (
            "g (float[a, 4, 5] x, int64[1] i) => (float[a, b, c] y)"
            f"<int64[2] p = {{1, 2}}, {A}> {{ {AROUND.replace('u, p', 'u, p, , i')} }}",
            "the axes of the padding are not known",
        ),
        "negative": (
            f"{H.replace('7, 5', '5, 5')} <{P.replace('0, 0, 1', '0, 0, -1')}, {A}> {{ {AROUND} }}",
            "the padding is negative",
        ),
        "dimensions are joined": (
            "g (float[2, 4, 5] x) => (float[11, 5] y) <int64[2] s = {8, 5},"
            "int64[4] p = {1, 0, 2, 0}, int64[2] t = {11, 5}>"
            "{ u = Reshape(x, s) v = Pad(u, p) y = Reshape(v, t) }",
            "more than dimensions 1 are moved",
        ),
        "a dimension 1 is padded": (
            "g (float[a, 4, 5] x) => (float[b, 5] y) <int64[8] p = {0, 1, 0, 0, 0, 0, 0, 0}, "
            f"{A}, int64[2] t = {{-1, 5}}> {{ u = Unsqueeze(x, k) v = Pad(u, p) y = Reshape(v, t) }}",
            "a dimension 1 is padded",
        ),
        "the last one copies a dimension": (
            "g (float[a, 6, 1] x) => (float[b, 9] y) <int64[3] s = {-1, 1, 6},"
            "int64[6] p = {0, 0, 1, 0, 0, 2}, int64[2] t = {0, -1}>"
            "{ u = Reshape(x, s) v = Pad(u, p) y = Reshape(v, t) }",
            "the result does not have the dimensions",
        ),
        "an unknown shape": (
            f"g (float[] x) => (float[b, c, d] y) <{P}, {A}> {{ {AROUND} }}",
            "the shape is not known",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
