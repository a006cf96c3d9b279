"""QuickGelu between two products of constants."""

from __future__ import annotations

import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests


def fed(
    body: str,
    alpha: float = 2,
    factor: float = 1,
    inputs: str = "",
    outputs: str = "",
) -> str:
    """A product and its bias, QuickGelu, another product; the constants are multiplied already."""
    rows = {
        "float[4, 3] W": [factor * i for i in (1, 2, -3, 4, 5, 6, -7, 8, 9, 1, 2, -3)],
        "float[3] B": [factor * i for i in (1, -1, 2)],
        "float[3, 2] V": [i / factor for i in (1, -2, 3, 4, -5, 6)],
        "float[3] one": [1, 1, 1],
        "float[1] single": [1],
    }
    inits = ", ".join(f"{n} = {{{', '.join(map(str, v))}}}" for n, v in rows.items())
    body = body.replace("ALPHA", str(float(alpha)))
    return f"""agraph (float[a, b, 4] X, float[c, 4] R{inputs}) => (float[a, b, 2] Y{outputs}) <
        {inits}, int64[2] rows = {{-1, 4}}
    > {{ {body} }}"""


QUICK_ALPHA = "f = com.microsoft.QuickGelu<alpha = ALPHA>(s) "
FED = "m = MatMul(X, W) s = Add(m, B) " + QUICK_ALPHA + "Y = MatMul(f, V)"
GEMMS = "s = Gemm(R, W, B) " + QUICK_ALPHA + "k = Gemm(f, V) u = ReduceSum(X) Y = Add(k, u)"
#: what the documentation draws: name -> (before, after)
MODELS = {"QuickGeluAlpha": (fed(FED), fed(FED, 1, 2))}
CASES = {
    "the model": MODELS["QuickGeluAlpha"],
    "two Gemm": (fed(GEMMS), fed(GEMMS, 1, 2)),
    "the bias comes first": (
        fed(FED.replace("Add(m, B)", "Add(B, m)")), fed(FED, 1, 2),
    ),
    "not a power of two": (fed(FED, 1.702), None),
    "negative": (fed(FED, -0.5), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_alpha_goes_in_the_weights(name: str) -> None:
    before, after = CASES[name]
    found = check_pattern(before, after, "QuickGeluAlpha", atol=1e-5, rtol=1e-5)
    (node,) = [n for n in found.graph.node if n.op_type == "QuickGelu"]
    assert [a.f for a in node.attribute] == [1.0]


test_refuses = refusal_tests({"QuickGeluAlpha": {
    "one": (fed(FED, 1), "alpha is 1"),
    "null": (fed(FED, 0), "alpha is null, or not finite"),
    "no bias": (fed(GEMMS.replace("(R, W, B)", "(R, W)")), "there is no bias"),
    "bias of one element": (fed(FED.replace("(m, B)", "(m, H)"), inputs=", float[3] H"), "not a constant"),
    "scalar bias": (fed(FED.replace("(m, B)", "(m, S)").replace("m = M", "S = Squeeze(single) m = M")), "not a vector"),
    "sum of something else": (fed(FED.replace("MatMul(X, W) s", "Identity(H) s"), inputs=", float[a, b, 3] H"), "no product is added"),
    "product used elsewhere": (fed(FED, outputs=", float[a, b, 3] m"), "the product is used elsewhere"),
    "scaled Gemm": (fed(GEMMS.replace("Gemm(R", "Gemm<alpha = 0.5>(R")), "the product is scaled"),
    "scaled second Gemm": (fed(GEMMS.replace("Gemm(f", "Gemm<alpha = 0.5>(f")), "the product is scaled"),
    "right operand": (
        fed(FED.replace("MatMul(f, V)", "MatMul(H, f)").replace("Y = ", "k = ") + " Y = MatMul(k, V)", inputs=", float[b, b] H"), "does not read rows",
    ),
    "weight that is not a constant": (
        fed(FED.replace("MatMul(f, V)", "MatMul(f, H)"), inputs=", float[3, 2] H"), "weight is not constant",
    ),
}})  # fmt: skip


def test_alpha_on_cuda() -> None:
    reason = "it is for the processor CPU"
    check_no_match(fed(FED), "QuickGeluAlpha", reason=reason, processor="CUDA")
