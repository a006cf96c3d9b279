"""Dropout after a bias: for CUDA, compared with the definition of the operator."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns_ort.cuda_reference import check

from xoptim.testing import refusal_tests


def model(body: str, c: str = "4", out: str = "", kind: str = "float", r: str = "a, b, 4") -> str:
    """An input, a bias, what is added; the boolean tells if the model is training."""
    return f"""g ({kind}[a, b, 4] x, {kind}[{c}] c, {kind}[{r}] r, bool train)
    => ({kind}[a, b, 4] y{out}) <float half = {{0.5}}> {{ {body} }}"""


BODY = "s = Add(x, c) d = Dropout(s, half, train) y = Add(d, r)"
WRITTEN = "y = com.microsoft.BiasDropout(x, c, r, half, train)"
MASK = ", bool[a, b, 4] mask"


def inference(text: str) -> str:
    """The boolean is false, it is not known before."""
    known = "{ n = Size(x) z = Sub(n, n) train = Cast<to = 9>(z) "
    return text.replace(", bool train)", ")").replace("{ ", known, 1)


#: what the documentation draws: name -> (before, after)
MODELS = {"BiasDropout": (inference(model(BODY)), inference(model(WRITTEN)))}
SIZES = ({"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 0, "b": 1})
#: name -> (before, after)
CASES = {
    "residual": (model(BODY), model(WRITTEN)),
    "operands exchanged": (
        model("s = Add(c, x) d = Dropout(s, half, train) y = Add(r, d)"), model(WRITTEN),
    ),
    "a bias of the same shape": (model(BODY, "a, b, 4"), model(WRITTEN, "a, b, 4")),
    "nothing is added": (
        model("s = Add(x, c) y = Dropout(s, half, train)"),
        model("y = com.microsoft.BiasDropout(x, c, , half, train)"),
    ),
    "another shape is added": (
        model(BODY, r="4"), model("d = com.microsoft.BiasDropout(x, c, , half, train) y = Add(d, r)", r="4"),
    ),
    "default ratio": (
        model("s = Add(x, c) d = Dropout(s, , train) y = Add(d, r)"),
        model("y = com.microsoft.BiasDropout(x, c, r, , train)"),
    ),
    "what is dropped is used": (
        model(BODY, out=", float[a, b, 4] d"),
        model("d = com.microsoft.BiasDropout(x, c, , half, train) y = Add(d, r)", out=", float[a, b, 4] d"),
    ),
    "mask": (
        model("s = Add(x, c) d, mask = Dropout(s, half, train) y = Add(d, r)", out=MASK),
        model("y, mask = com.microsoft.BiasDropout(x, c, r, half, train)", out=MASK),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_inference(case: str) -> None:
    """The graphs, the results."""
    before, after = map(inference, CASES[case])
    check(before, after, "BiasDropout", SIZES)


REFUSED = {
    "a seed": (model(BODY.replace("Dropout(", "Dropout<seed = 3>(")), "drawn with this seed"),
    "no bias": (model(BODY.replace("Add(x, c)", "Mul(x, c)")), "no Add before"),
    "the bias is broadcast otherwise": (model(BODY, "b, 4"), "no operand is a bias"),
    "a bias of one element": (model(BODY, "1"), "no operand is a bias"),
    "the sum is used": (model(BODY, out=", float[a, b, 4] s"), "used elsewhere"),
    "on CPU": (model(BODY), "no BiasDropout for this type", {"processor": "CPU"}),
    "on both": (model(BODY), "no BiasDropout for this type", {"processor": "CPU,CUDA"}),
}
test_refuses = refusal_tests({"BiasDropout": REFUSED}, processor="CUDA")
