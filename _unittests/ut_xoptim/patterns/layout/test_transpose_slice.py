"""Slice and Pad between two Transpose."""

from __future__ import annotations

from xoptim.testing import check_no_match, refusal_tests, rewrite_tests

H = "g (float[a, 5, 6] x) => (float[a, 3, 6] y)"
S = "int64[1] s = {1}, int64[1] e = {4}, int64[1] k = {2}"
CUT = "t = Transpose<perm = [0, 2, 1]>(x) c = Slice(t, s, e, k)"
BACK = "y = Transpose<perm = [0, 2, 1]>(c)"
PAD = "t = Transpose<perm = [2, 0, 1]>(x) c = Pad(t, p) y = Transpose<perm = [1, 2, 0]>(c)"

MODELS = {
    "TransposeSliceTranspose": {
        "they cancel": (
            f"{H} <{S}> {{ {CUT} {BACK} }}",
            f"{H} <{S.replace('k = {2}', 'k = {1}')}> {{ y = Slice(x, s, e, k) }}",
        ),
        "one is left": (
            f"g (float[a, 5, 6] x) => (float[6, 3, a] y) <{S}>"
            f"{{ {CUT} {BACK.replace('0, 2, 1', '1, 2, 0')} }}",
            f"g (float[a, 5, 6] x) => (float[6, 3, a] y) <{S.replace('k = {2}', 'k = {1}')}>"
            "{ c = Slice(x, s, e, k) y = Transpose<perm = [2, 1, 0]>(c) }",
        ),
        "no axes, no permutation": (
            "g (float[a, 5, 6] x) => (float[a, 5, 4] y)"
            "<int64[2] s = {1, 0}, int64[2] e = {5, 9}>"
            "{ t = Transpose(x) c = Slice(t, s, e) y = Transpose(c) }",
            "g (float[a, 5, 6] x) => (float[a, 5, 4] y)"
            "<int64[2] s = {1, 0}, int64[2] e = {5, 9}, int64[2] k = {2, 1}>"
            "{ y = Slice(x, s, e, k) }",
        ),
        "bounds that are inputs, steps, axes of 32 bits": (
            "g (float[a, 5, 6] x, int32[1] s, int32[1] e) => (float[a, b, 6] y)"
            f"<int32[1] k = {{-1}}, int32[1] f = {{2}}> {{ {CUT.replace('k)', 'k, f)')} {BACK} }}",
            "g (float[a, 5, 6] x, int32[1] s, int32[1] e) => (float[a, b, 6] y)"
            "<int32[1] k = {1}, int32[1] f = {2}> { y = Slice(x, s, e, k, f) }",
        ),
        "a Pad": (
            "g (float[a, 5, 6] x) => (float[a, 8, 6] y)"
            f"<int64[6] p = {{0, 0, 1, 0, 0, 2}}, float z = {{3}}> {{ {PAD.replace('p)', 'p, z)')} }}",
            "g (float[a, 5, 6] x) => (float[a, 8, 6] y)"
            "<int64[6] p = {0, 1, 0, 0, 2, 0}, float z = {3}> { y = Pad(x, p, z) }",
        ),
        "axes of a Pad": (
            "g (float[a, 5, 6] x) => (float[a, 8, 6] y)"
            f"<int64[2] p = {{1, 2}}, int64[1] k = {{-1}}> {{ {PAD.replace('p)', 'p, , k)')} }}",
            "g (float[a, 5, 6] x) => (float[a, 8, 6] y)"
            "<int64[6] p = {0, 1, 0, 0, 2, 0}> { y = Pad(x, p) }",
        ),
    },
}

REFUSED = {
    "TransposeSliceTranspose": {
        "no Slice": (
            "g (float[a, 5] x) => (float[5, a] y) { y = Transpose(x) }",
            "no .*Slice.* before",
        ),
        "no Transpose": (
            f"g (float[a, 6, 5] t) => (float[a, 3, 6] y) <{S}> {{ c = Slice(t, s, e, k) {BACK} }}",
            "no Transpose before",
        ),
        "read elsewhere": (
            f"{H.replace('] y', '] y, float[a, 6, 3] c')} <{S}> {{ {CUT} {BACK} }}",
            "an inner result is used elsewhere",
        ),
        "transposed read elsewhere": (
            f"{H.replace('] y', '] y, float[a, 6, 5] t')} <{S}> {{ {CUT} {BACK} }}",
            "an inner result is used elsewhere",
        ),
        "axes that are inputs": (
            "g (float[a, 5, 6] x, int64[1] k) => (float[a, b, c] y)"
            f"<int64[1] s = {{1}}, int64[1] e = {{4}}> {{ {CUT} {BACK} }}",
            "the axes are not known",
        ),
        "no permutation, no rank": (
            f"g (float[] x) => (float[] y) <{S}>"
            "{ t = Transpose(x) c = Slice(t, s, e, k) y = Transpose(c) }",
            "the permutations are not known",
        ),
        "a padding that is an input": (
            f"g (float[a, 5, 6] x, int64[6] p) => (float[b, c, d] y) {{ {PAD} }}",
            "the padding is not constant",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_old_opset_is_left_alone() -> None:
    text = """g (float[a, 5] x) => (float[a, 2] y) {
        t = Transpose<perm = [1, 0]>(x)
        c = Slice <starts = [1], ends = [3]> (t)
        y = Transpose<perm = [1, 0]>(c)
    }"""
    check_no_match(text, "TransposeSliceTranspose", "needs opset 11", opset=9)
