"""Scores of an attention a Where hides."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ut_xoptim.patterns.normalization.normalized_texts import (
    BACK,
    CAUSAL,
    GUARD,
    MOVED,
    NORM,
    PROJECTED,
    REPEATED,
    SCORES,
    SOFTMAX,
    model,
)
from ut_xoptim.patterns_ort.attention.attention_texts import as_float16

from xoptim.catalogue.registry import all_patterns
from xoptim.testing import check_no_match, check_pattern, make_feeds, model_from_text
from xoptim.testing.running import run_onnxruntime

NAME = "MaskedScores"
HEADS = NORM + PROJECTED + MOVED
BEFORE = HEADS + SCORES
END = SOFTMAX + BACK
#: how a Where is written, and after
SEEN = "z = Where(seen, n, low) "
SEEN_AFTER = "mask = Where(seen, zero, low) z = Add(n, mask) "
FILLED = "hidden = Not(seen) z = Where(hidden, low, n) "
FILLED_AFTER = "hidden = Not(seen) mask = Where(hidden, low, zero) z = Add(n, mask) "
EXPANDED = "full = Shape(n) wide = Expand(seen, full) z = Where(wide, n, low) "
TWO = SEEN.replace("z =", "s =") + "z = Add(s, bias) "
TWO_AFTER = SEEN_AFTER.replace("z =", "s =") + "z = Add(s, bias) "
DIVIDED = SCORES.replace("Mul(m, scale)", "Div(m, scale)")
MULTIPLIED = NORM.replace("x =", "x0 =") + "f = Cast<to = 1>(kept) x = Mul(x0, f) "
ROW = ", float[1, 1, 1, s] bias"
KEPT = ", int32[b, s, 1] kept"
FORMS = {
    "what is seen": (model(BEFORE + SEEN + END), model(BEFORE + SEEN_AFTER + END)),
    "what is hidden": (model(BEFORE + FILLED + END), model(BEFORE + FILLED_AFTER + END)),
    "minus infinity": (
        model((BEFORE + SEEN + END).replace("low", "minus")),
        model((BEFORE + SEEN_AFTER + END).replace("low", "minus")),
    ),
    "expanded": (model(BEFORE + EXPANDED + END), model(BEFORE + SEEN_AFTER + END)),
    "something is added": (
        model(BEFORE + TWO + END, more=ROW), model(BEFORE + TWO_AFTER + END, more=ROW),
    ),
    "zeros replace NaN": (
        model(BEFORE + SEEN + GUARD + BACK), model(BEFORE + SEEN_AFTER + GUARD + BACK),
    ),
    "divided": (
        model(HEADS + DIVIDED + SEEN + END), model(HEADS + DIVIDED + SEEN_AFTER + END),
    ),
}  # fmt: skip
FUSED = "n = com.microsoft.FusedMatMul<alpha = 0.35, transB = 1>(qt, kt) "
TRANSPOSED = (
    "qx = Transpose<perm = [0, 1, 3, 2]>(qt) "
    "n = com.microsoft.FusedMatMul<alpha = -0.35, transA = 1, transB = 1>(qx, kt) "
)
for form, scores in {"fused": FUSED, "both are transposed": TRANSPOSED}.items():
    FORMS[form] = model(HEADS + scores + SEEN + END), model(HEADS + scores + SEEN_AFTER + END)
#: the elements of the sequence are the rows of a matrix
MATRIX = (
    "r = Reshape(h, rows) "
    + NORM.replace("(h", "(r")
    + (
        "q0 = Gemm<alpha = 0.125, beta = 0.5>(x, qw, c) q = Mul(q0, scale) "
        "k0 = MatMul(x, kw) k = Add(k0, c) "
        "v = Gemm(x, vw, c) "
    )
)
OF_MATRIX = MATRIX + MOVED.replace("heads", "fives") + SCORES
FIVE = "float[b, 5, 32] h"
FORMS["rows of a matrix"] = (
    model(OF_MATRIX + SEEN + END, FIVE), model(OF_MATRIX + SEEN_AFTER + END, FIVE),
)  # fmt: skip
#: what replaces a score is -1e9, lower than twice the scores
NUMBERED = {
    form: (model((BEFORE + before + END).replace("low", "far")), FORMS[form][1])
    for form, before in {
        "what is seen": SEEN,
        "what is hidden": FILLED,
        "expanded": EXPANDED,
    }.items()
}
FORMS.update({f"another number, {form}": pair for form, pair in NUMBERED.items()})
MODELS = {NAME: FORMS["what is seen"]}
#: what an element of the sequence is
NUMBERS = [0.5, np.nan, np.inf, -np.inf, 1e30, 3e38]


def feeds_of(proto: onnx.ModelProto, number: float) -> dict[str, np.ndarray]:
    """Random inputs; a query sees nothing, an element of the first sequence is replaced."""
    feeds = make_feeds(proto, {"b": 2, "s": 5})
    feeds["seen"][:, :, 1:, 0] = True
    feeds["seen"][1, :, 0] = False
    feeds["seen"][0, :, :, 2] = False
    feeds["h"][0, 2, 3] = number
    return feeds


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, number: float) -> None:
    """The results are the same, NaN included: where a score is NaN, so are the values."""
    before, after = FORMS[form]
    check_pattern(before, after, NAME, feeds=[feeds_of(before, number)], reference=False)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 17), (0, 4)])
def test_sizes(sizes: tuple[int, int]) -> None:
    before, after = FORMS["what is hidden"]
    check_pattern(before, after, NAME, sizes={"b": sizes[0], "s": sizes[1]}, reference=False)


def test_attention_is_found() -> None:
    """The result is one operator. The scores are those of a model, not of random weights: the
    largest one would hide the others, and a rounding would be seen."""
    before = model(BEFORE + EXPANDED.replace("seen", "row") + END, more=", bool[b, 1, 1, s] row")
    for tensor in before.graph.initializer:
        if tensor.name in ("qw", "kw"):
            small = onnx.numpy_helper.to_array(tensor) / np.float32(6)
            tensor.CopyFrom(onnx.numpy_helper.from_array(small, tensor.name))
    found = check_pattern(before, None, "default+onnxruntime", reference=False, atol=2e-5)
    assert [n.op_type for n in found.graph.node if n.domain] == ["Attention"]


FINITE = "a score may not be finite where the values are"
REFUSED = {
    "a condition that is broader": (
        SEEN.replace("seen", "wide"), "the condition may be broader", ", bool[2, 1, 1, s] wide",
    ),
    "a number that hides nothing": (SEEN.replace("low", "scale"), "no score is hidden", ""),
    "a number that is not low enough": (
        SEEN.replace("low", "near"), "a score may be as low as what hides others", "",
    ),
    "a number, and another one is added": (
        TWO.replace("low", "far"), "another number is added, which may hide more", ROW,
    ),
    "a mask": (SEEN.replace("low", "bias"), "no score is hidden", ROW),
    "read elsewhere": (SEEN + "again = Identity(z) ", "the scores are used elsewhere", ""),
    "not a Softmax": (SEEN.replace("z =", "s =") + "z = Tanh(s) ", "", ""),
    "a sum that is not read by Softmax": (
        TWO.replace("z =", "t =") + "z = Tanh(t) ", "it is not a Softmax of rows", ROW,
    ),
    "another number is added": (
        "more = Add(n, bias) z = Where(seen, more, low) ", FINITE, ROW,
    ),
    "divided by what may be null": (
        "d = Div(n, bias) z = Where(seen, d, low) ", FINITE, ROW,
    ),
    "divided by zero": ("d = Div(n, zero) z = Where(seen, d, low) ", FINITE, ""),
    "scores that are too large": (
        "a1 = Mul(n, big) z = Where(seen, a1, low) ", FINITE, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    body, reason, more = REFUSED[case]
    check_no_match(model(BEFORE + body + END, more=more), NAME, reason)


#: the product overflows, whatever multiplies it after; a transposed batch mixes the sequences
FUSED_REFUSED = {
    "a number that is too large": (FUSED.replace("0.35", "1e31"), FINITE),
    "a product that is too large": ("qb = Mul(qt, big) " + FUSED.replace("qt", "qb"), FINITE),
    "a transposed batch": (
        FUSED.replace("transB = 1", "transBatchA = 1, transBatchB = 1"), "the shape is not known",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FUSED_REFUSED)
def test_refuses_a_fused_product(case: str) -> None:
    scores, reason = FUSED_REFUSED[case]
    check_no_match(model(HEADS + scores + SEEN + END), NAME, reason)


#: another row than the one of the element is read; the bounds of a Gemm are those of its numbers
MATRIX_REFUSED = {
    "a matrix on the left": ("k0 = MatMul(x, kw)", "k1 = MatMul(vw, x) k0 = MatMul(k1, kw)"),
    "rows turned into columns": (
        "k0 = MatMul(x, kw)", "t = Transpose(x) k1 = MatMul(t, vw) "
        "k0 = MatMul(k1, kw)",
    ),
    "rows turned by the product": (
        "k0 = MatMul(x, kw)",
        "t0 = com.microsoft.FusedMatMul<transA = 1>(x, vw) k0 = MatMul(t0, kw)",
    ),
    "a product that is too large": ("alpha = 0.125", "alpha = 1e31"),
    "a bias that is too large": ("beta = 0.5", "beta = 1e31"),
}  # fmt: skip


@pytest.mark.parametrize("case", MATRIX_REFUSED)
def test_refuses_rows(case: str) -> None:
    old, new = MATRIX_REFUSED[case]
    body = (OF_MATRIX + SEEN + END).replace(old, new)
    check_no_match(model(body.replace("fives", "fours"), "float[8, 4, 32] h"), NAME, FINITE)


@pytest.mark.parametrize(("factor", "reason"), [(1, "no operator for attention"), (1000, FINITE)])
def test_product_of_halves(factor: float, reason: str) -> None:
    """The product of a Gemm overflows before alpha makes it small enough."""
    body = (OF_MATRIX + SEEN + END).replace("alpha = 0.125", f"alpha = {0.125 / factor}")
    before = model(body, FIVE)
    for tensor in before.graph.initializer:
        if tensor.name == "qw":
            larger = onnx.numpy_helper.to_array(tensor) * np.float32(factor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(larger, tensor.name))
    check_no_match(as_float16(before), NAME, reason)


def test_sequence_that_is_not_normalized() -> None:
    before = model((BEFORE + SEEN + END).replace(NORM, "x = Relu(h) "))
    check_no_match(before, NAME, "the sequence is not normalized")


def test_sequence_that_is_multiplied() -> None:
    """As XLM does with its mask: nothing says how large the integers of a mask are."""
    before = model((BEFORE + SEEN + END).replace(NORM, MULTIPLIED), more=KEPT)
    check_no_match(before, NAME, "the sequence is not normalized")


def test_axis() -> None:
    body = SEEN + SOFTMAX.replace("axis = -1", "axis = 2") + BACK
    check_no_match(model(BEFORE + body), NAME, "it is not a Softmax of rows")


RAW = "x = Relu(h) " + PROJECTED + MOVED + SCORES
#: nothing says how large the scores are
UNPROVEN = {
    "a number": (
        model((RAW + SEEN + END).replace("low", "far")),
        model((RAW + SEEN_AFTER + END).replace("low", "lower")),
    ),
    "minus infinity, what is hidden": (
        model((RAW + FILLED + END).replace("low", "minus")),
        model((RAW + FILLED_AFTER + END).replace("low", "minus")),
    ),
    "the lowest float, expanded": (
        model(RAW + EXPANDED + END),
        model((RAW + SEEN_AFTER + END).replace("low", "lower")),
    ),
}  # fmt: skip
APPROXIMATE = {"FiniteScores": UNPROVEN["a number"]}


@pytest.mark.parametrize("form", UNPROVEN)
def test_finite_scores(form: str) -> None:
    """The results are the same for finite scores, for a query that sees nothing as well."""
    before, after = UNPROVEN[form]
    check_pattern(before, after, "FiniteScores", feeds=[feeds_of(before, 0.5)], reference=False)


def test_finite_scores_are_approximate() -> None:
    """An infinity that was hidden makes a NaN of what it was hidden from."""
    before, after = UNPROVEN["minus infinity, what is hidden"]
    feeds = feeds_of(before, 1e20)
    feeds["seen"][0] = np.arange(5) != 2
    results = [run_onnxruntime(proto, feeds)[0] for proto in (before, after)]
    assert [bool(np.isnan(result[0, 2]).any()) for result in results] == [False, True]
    assert all_patterns()["FiniteScores"].tags == ("approximate",)


FINITE_REFUSED = {
    "not a Softmax": ("s = Where(seen, n, far) z = Tanh(s) ", "", ""),
    "a number that hides nothing": (SEEN.replace("low", "zero"), "no score is hidden", ""),
    "a condition that is broader": REFUSED["a condition that is broader"],
    "read elsewhere": REFUSED["read elsewhere"],
}


@pytest.mark.parametrize("case", FINITE_REFUSED)
def test_finite_scores_refuses(case: str) -> None:
    body, reason, more = FINITE_REFUSED[case]
    check_no_match(model(RAW + body + END, more=more), "FiniteScores", reason)


def test_finite_scores_along_another_axis() -> None:
    body = SEEN + SOFTMAX.replace("axis = -1", "axis = 2") + BACK
    check_no_match(model(RAW + body), "FiniteScores", "it is not a Softmax of rows")


def test_finite_scores_of_halves() -> None:
    """In float16, half of the lowest number does not overflow: -10000 becomes -32752. The text has
    their bits."""
    text = """g (float16[2, 4, 3, 3] s, bool[2, 1, 3, 3] seen) => (float16[2, 4, 3, 3] w)
    <float16 low = {{{0}}}, float16 zero = {{0}}> {{ {1} w = Softmax<axis = -1>(z) }}"""
    before = text.format("61666", "z = Where(seen, s, low)")
    after = text.format("63487", "mask = Where(seen, zero, low) z = Add(s, mask)")
    seen = np.broadcast_to(np.tri(3, dtype=bool), (2, 1, 3, 3))
    feeds = make_feeds(model_from_text(before, 18), {})
    check_pattern(before, after, "FiniteScores", feeds=[{**feeds, "seen": seen}], opset=18)
    other = before.replace("float16", "double")
    check_no_match(other, "FiniteScores", "the type is not float nor float16", opset=18)


def halves(body: str, small: float = 1 / 6, more: str = "", opset: int = 23) -> onnx.ModelProto:
    """A model in float16, whose weights for queries and keys are multiplied by a number."""
    proto = model(body, more=more)
    for tensor in proto.graph.initializer:
        if tensor.name in ("qw", "kw", "kh"):
            value = onnx.numpy_helper.to_array(tensor) * np.float32(small)
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
        elif tensor.name in ("low", "lower", "far", "big", "large"):
            value = np.array(np.finfo(np.float16).min, np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
    proto.opset_import[0].version = opset
    return as_float16(proto)


INFINITE, INFINITE_AFTER = (text.replace("low", "minus") for text in (SEEN, SEEN_AFTER))
HALVES = {
    "minus infinity": (INFINITE, INFINITE_AFTER),
    "what is hidden": tuple(text.replace("low", "minus") for text in (FILLED, FILLED_AFTER)),
}


@pytest.mark.parametrize("number", [0.5, np.nan, np.inf, -np.inf, 6e4])
@pytest.mark.parametrize("form", HALVES)
def test_halves(form: str, number: float) -> None:
    """The results are the same, NaN included, when a query sees nothing as well."""
    before, after = (halves(BEFORE + body + END) for body in HALVES[form])
    feeds = feeds_of(before, number)
    check_pattern(before, after, NAME, feeds=[feeds], reference=False, opset=23)


@pytest.mark.parametrize("number", [0.5, np.nan, 6e4])
def test_halves_of_a_causal_mask(number: float) -> None:
    """The lowest number becomes an infinity where each query is proven to see a key."""
    causal = CAUSAL.split("mask =")[0]
    bodies = [
        BEFORE + causal + body.replace("seen", "causal") + END for body in (SEEN, INFINITE_AFTER)
    ]
    before, after = map(halves, bodies)
    check_pattern(before, after, NAME, feeds=[feeds_of(before, number)], reference=False, opset=23)


@pytest.mark.parametrize(
    ("body", "small", "opset", "reason"),
    [
        (SEEN, 1 / 6, 23, "a query may see no key"),
        (SEEN.replace("low", "near"), 1 / 6, 23, "a score may be as low as what hides others"),
        (INFINITE, 1, 23, FINITE),
        (INFINITE, 1 / 6, 22, "no operator for attention reads float16 at this opset"),
        (INFINITE, 1 / 6, 25, "no operator for attention reads float16 at this opset"),
    ],
)
def test_refuses_halves(body: str, small: float, opset: int, reason: str) -> None:
    check_no_match(halves(BEFORE + body + END, small, opset=opset), NAME, reason)


#: constant masks of two queries, whether the operator reads them in float16
MASKS = {
    "a query sees a key": ([[0, -np.inf], [0, 1]], True),
    "another number": ([[-1e4, -3e4], [0, 1]], True),
    "a query sees nothing": ([[-np.inf, -np.inf], [0, 1]], False),
    "the lowest number": ([[0, -65504], [0, 1]], False),
}


@pytest.mark.parametrize("case", MASKS)
def test_constant_masks_of_halves(case: str) -> None:
    value, is_read = MASKS[case]
    before = halves(BEFORE + "z = Add(n, given) " + END)
    given = onnx.numpy_helper.from_array(np.array(value, np.float16), "given")
    before.graph.initializer.append(given)
    after = check_pattern(before, None, "default", atol=4e-2, sizes={"b": 2, "s": 2})
    assert ("Attention" in {n.op_type for n in after.graph.node}) == is_read


@pytest.mark.parametrize("small", [1 / 6, 1])
def test_attention_of_halves_without_mask(small: float) -> None:
    """The operator is written if the scores are proven finite."""
    before = halves(BEFORE + END.replace("(z)", "(n)"), small)
    after = check_pattern(before, None, "FunctionAttention,AttentionGQA", atol=4e-2)
    assert ("Attention" in {n.op_type for n in after.graph.node}) == (small < 1)


@pytest.mark.parametrize(
    ("processor", "opset", "found"),
    [("CPU", 23, "Attention"), ("CPU", 24, "Attention"), ("CUDA", 18, "com.microsoft")],
)
def test_attention_of_halves_is_found(processor: str, opset: int, found: str) -> None:
    before = halves(BEFORE + INFINITE + END, opset=opset)
    options = {"runtime": processor == "CPU", "processor": processor, "reference": False}
    after = check_pattern(before, None, "default+onnxruntime", atol=4e-2, **options)
    operators = [n for n in after.graph.node if n.op_type == "Attention"]
    assert [n.domain or n.op_type for n in operators] == [found]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("opset", [18, 25])
def test_shared_heads_of_halves(opset: int, is_known: bool) -> None:
    """GroupQueryAttention reads float16 on CPU at any opset, if sizes are known."""
    before = halves(NORM + REPEATED + SCORES + INFINITE + END, opset=opset)
    sizes = {"b": 2, "s": 5}
    for value in (*before.graph.input, *before.graph.output):
        for dim in value.type.tensor_type.shape.dim if is_known else ():
            if dim.dim_param:
                dim.dim_value = sizes[dim.dim_param]
    after = check_pattern(before, None, "default+onnxruntime", atol=4e-2, reference=False)
    types = {n.op_type for n in after.graph.node}
    assert ("GroupQueryAttention" in types) == is_known
