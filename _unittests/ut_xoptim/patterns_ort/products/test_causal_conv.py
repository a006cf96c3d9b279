"""Causal convolutions with a state."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

CONV = "Conv<group = 3>"
OPERATOR = "com.microsoft.CausalConvWithState"
END = "9223372036854775807"


def model(body: str, past: int = 3, kind: str = "float", out: str = "", w: str = "3, 1, 4") -> str:
    """A sequence, what was before, a filter by channel."""
    return f"""g ({kind}[b, 3, s] x, {kind}[b, 3, {past}] p, {kind}[{w}] w, {kind}[3] c)
    => ({kind}[b, 3, s] y{out}) <
        int64[1] start = {{-{past}}}, int64[1] end = {{{END}}}, int64[1] axis = {{2}},
        int64[1] other = {{-1}}
    > {{ {body} }}"""


def without(body: str, pads: str = "3, 0", attributes: str = "", kind: str = "float") -> str:
    """Zeros before the sequence."""
    conv = f"Conv<group = 3, pads = [{pads}]{attributes}>"
    return f"""g ({kind}[b, 3, s] x, {kind}[3, 1, 4] w) => ({kind}[b, 3, s] y) {{
        {body.replace("CONV", conv)} }}"""


STATE = ", float[b, 3, 3] z"
JOIN = "j = Concat<axis = -1>(p, x) "
KEEP = "z = Slice(j, start, end, axis)"
#: pattern -> case -> (before, after)
ANY = "CausalConvWithState(any_length=True)"
MODELS = {
    ANY: {
        "state": (
            model(JOIN + f"y = {CONV}(j, w, c) " + KEEP, out=STATE),
            model(f"y, z = {OPERATOR}(x, w, c, p)", out=STATE),
        ),
        "no state": (
            model(JOIN + f"y = {CONV}(j, w)"),
            model(f"y, z = {OPERATOR}(x, w, , p)"),
        ),
        "dilations": (
            model(JOIN + "y = Conv<group = 3, dilations = [2]>(j, w, c)", 6),
            model(f"y, z = {OPERATOR}<dilation = 2>(x, w, c, p)", 6),
        ),
        "no past": (without("y = CONV(x, w)"), without(f"y, z = {OPERATOR}(x, w)")),
        "no past, dilations": (
            without("y = CONV(x, w)", "6, 0", ", dilations = [2]"),
            without(f"y, z = {OPERATOR}<dilation = 2>(x, w)"),
        ),
        "activation": (
            model(JOIN + f"d = {CONV}(j, w, c) y = com.microsoft.QuickGelu<alpha = 1.0>(d)"),
            model(f'y, z = {OPERATOR}<activation = "silu">(x, w, c, p)'),
        ),
        "another activation": (
            model(JOIN + f"d = {CONV}(j, w, c) y = com.microsoft.QuickGelu(d)"),
            model(f"d, z = {OPERATOR}(x, w, c, p) y = com.microsoft.QuickGelu(d)"),
        ),
        "the sequence is read elsewhere": (
            model(JOIN + f"y = {CONV}(j, w, c) a = Abs(j) " + KEEP, out=STATE + ", float[b, 3, t] a"),
            model(
                JOIN + f"y, z = {OPERATOR}(x, w, c, p) a = Abs(j)", out=STATE + ", float[b, 3, t] a"
            ),
        ),
        "another slice": (
            model(JOIN + f"y = {CONV}(j, w, c) z = Slice(j, other, end, axis)", out=", float[b, 3, 1] z"),
            model(
                JOIN + f"y, u = {OPERATOR}(x, w, c, p) z = Slice(j, other, end, axis)",
                out=", float[b, 3, 1] z",
            ),
        ),
    },
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS, atol=1e-5)


@pytest.mark.parametrize("s", [1, 2, 9])
@pytest.mark.parametrize("case", ["state", "no past"])
def test_lengths(case: str, s: int) -> None:
    """Shorter and longer than the filter."""
    before, after = MODELS[ANY][case]
    check_pattern(before, after, ANY, sizes={"b": 2, "s": s}, atol=1e-5)


PLAIN = JOIN + f"y = {CONV}(j, w, c)"
REFUSED = {
    "the past is longer": (model(PLAIN, 5), "the past does not have the length of the filter"),
    "the past is the last one": (
        model(PLAIN.replace("(p, x)", "(x, p)")), "the past does not have the length",
    ),
    "another axis": (model(PLAIN.replace("axis = -1", "axis = 0")), "nothing is joined"),
    "not by channel": (
        model(PLAIN.replace("group = 3", "group = 1"), w="3, 3, 4"), "not one filter by channel",
    ),
    "strides": (model(PLAIN.replace("group = 3", "group = 3, strides = [2]")), "not 1"),
    "computed padding": (
        model(PLAIN.replace("group = 3", 'group = 3, auto_pad = "SAME_UPPER"')), "is computed",
    ),
    "both sides": (without("y = CONV(x, w)", "3, 3"), "not the one of a causal convolution"),
    "too few zeros": (without("y = CONV(x, w)", "2, 0"), "not the one of a causal convolution"),
    "one element": (
        model(PLAIN, 1, w="3, 1, 1"), "the filters have one element",
    ),
    "unknown filters": (model(PLAIN, w="3, 1, k"), "the filters are not known"),
    "nothing joined": (
        "g (float[b, 3, s] x, float[3, 1, 4] w) => (float[b, 3, t] y)"
        f"{{ y = {CONV}(x, w) }}", "no Concat before",
    ),
    "double": (model(PLAIN, kind="double"), "no CausalConvWithState for this type"),
    "two axes": (
        "g (float[b, 3, s, s] x, float[3, 1, 4, 4] w) => (float[b, 3, t, u] y)"
        f"{{ y = {CONV}(x, w) }}", "there is not one axis",
    ),
}  # fmt: skip

SLOWER = {
    "any length": (model(PLAIN), "slower on CPU"),
    "any length, no past": (without("y = CONV(x, w)"), "slower on CPU"),
}


test_refuses = refusal_tests({ANY: REFUSED, "CausalConvWithState": SLOWER})


def one_step(text: str) -> str:
    """The same model on one element."""
    return text.replace("[b, 3, s]", "[b, 3, 1]")


#: what the documentation draws: the kernel saves time when there is one element
STEP = {"CausalConvWithState": tuple(map(one_step, MODELS[ANY]["state"]))}

test_one_step = rewrite_tests(STEP, atol=1e-5)
