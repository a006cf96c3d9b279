"""Normalizations of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder.runtimes.kernel_table import KernelTable
from xoptim.patterns_ort import kernels as cpu_kernels
from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)


def skip(
    body: str,
    x: str = "a, b, 4",
    z: str = "a, b, 4",
    elem_type: str = "float",
    outputs: str = "",
    w: str = "4",
    constants: str = "",
) -> str:
    """Two operands, a scale, a bias."""
    return f"""agraph ({elem_type}[{x}] X, {elem_type}[{z}] Z,
    {elem_type}[{w}] W, {elem_type}[{w}] B)
    => ({elem_type}[{x}] Y{outputs}) {f"<{constants}>" if constants else ""} {{
    {body}
}}"""


def rms(body: str, dims: str = "a, b, 4", elem_type: str = "float", outputs: str = "") -> str:
    """A formula, its constants, its scale."""
    return f"""agraph ({elem_type}[{dims}] X) => ({elem_type}[{dims}] Y{outputs}) <
    {elem_type} eps = {{0.00001}}, {elem_type} two = {{2}}, int64[1] axes = {{-1}},
    int64[1] middle = {{1}}
> {{
    {body}
}}"""


RMS = (
    "q = Pow(X, two) v = ReduceMean<keepdims = 1>(q, axes) w = Add(v, eps) s = Sqrt(w)"
    " r = Reciprocal(s) Y = Mul(X, r)"
)
SUM = "s = Add(X, Z) "
SIMPLIFIED = "SimplifiedLayerNormalization<axis = -1, epsilon = 0.001>"
SKIP_SIMPLIFIED = "com.microsoft.SkipSimplifiedLayerNormalization<epsilon = 0.001>"
WEIGHTS = "float[4] v = {1, 2, 3, 4}, float[4] c = {5, 6, 7, 8}, float[4] vc = {5, 12, 21, 32}"

#: what the documentation draws: name -> (before, after)
MODELS = {
    "SkipLayerNormalization": (
        skip(SUM + "Y = LayerNormalization<epsilon = 0.001>(s, W, B)"),
        skip("Y = com.microsoft.SkipLayerNormalization<epsilon = 0.001>(X, Z, W, B)"),
    ),
    "SimplifiedLayerNormalization": (
        rms(RMS),
        """agraph (float[a, b, 4] X) => (float[a, b, 4] Y) <float[4] scale = {1, 1, 1, 1}> {
            Y = SimplifiedLayerNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(X, scale)
        }""",
    ),
    "SkipSimplifiedLayerNormalization": (
        skip(SUM + f"Y = {SIMPLIFIED}(s, W)"),
        skip(f"Y = {SKIP_SIMPLIFIED}(X, Z, W)"),
    ),
    "SimplifiedLayerNormalizationMul": (
        skip(f"n = {SIMPLIFIED}(X, v) Y = Mul(n, c)", constants=WEIGHTS),
        skip(f"Y = {SIMPLIFIED}(X, vc)", constants=WEIGHTS),
    ),
    "SkipSimplifiedLayerNormalizationMul": (
        skip(f"n = {SKIP_SIMPLIFIED}(X, Z, v) Y = Mul(c, n)", constants=WEIGHTS),
        skip(f"Y = {SKIP_SIMPLIFIED}(X, Z, vc)", constants=WEIGHTS),
    ),
}

LAYER = "Y = LayerNormalization(s, W, B)"

#: element type -> epsilon, 2 and 1 as the text of a model has them: their bits for 16 bits
NUMBERS = {
    "float": ("0.00001", 2, 1),
    "float16": (168, 0x4000, 0x3C00),
}


def _constants(elem_type: str = "float") -> str:
    epsilon, two, one = NUMBERS[elem_type]
    ones = ", ".join([str(one)] * 4)
    return f"""{elem_type} eps = {{{epsilon}}}, {elem_type} two = {{{two}}},
        {elem_type}[4] ones = {{{ones}}}"""


def layer(opset: int = 16, dims: str = "a, b, 4", elem_type: str = "float") -> str:
    """The formula of LayerNormalization, the axes of means are attributes before opset 18."""
    axes, given = ("<axes = [-1]>", "") if opset < 18 else ("", ", axes")
    return skip(
        f"""m = ReduceMean{axes}(X{given}) d = Sub(X, m) q = Pow(d, two)
        v = ReduceMean{axes}(q{given}) e = Add(v, eps) r = Sqrt(e) n = Div(d, r) u = Mul(n, W)
        Y = Add(u, B)""",
        dims,
        elem_type=elem_type,
        constants=f"{_constants(elem_type)}, int64[1] axes = {{-1}}",
    )


MODELS["OrtLayerNormalization"] = (
    layer(),
    skip(
        "n = LayerNormalization<axis = -1, epsilon = 0.00001>(X, ones) u = Mul(n, W) Y = Add(u, B)",
        constants=_constants(),
    ),
    {"opset": 16, "processor": "CPU"},
)

#: pattern -> case -> (before, after)
CASES = {
    "SkipLayerNormalization": {
        "no bias, default epsilon": (
            skip(SUM + "Y = LayerNormalization(s, W)"),
            skip("Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W)"),
        ),
        "rank 2, axis 1": (
            skip(SUM + "Y = LayerNormalization<axis = 1>(s, W, B)", "a, 4", "a, 4"),
            skip(
                "Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W, B)",
                "a, 4",
                "a, 4",
            ),
        ),
        "sum is an output": (
            skip(SUM + LAYER, outputs=", float[a, b, 4] s"),
            skip(
                "Y,,,s = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W, B)",
                outputs=", float[a, b, 4] s",
            ),
        ),
        "the first operand is the same for the whole batch": (
            skip(SUM.replace("X, Z", "Z, X") + LAYER, z="1, b, 4"),
            skip(
                "Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W, B)",
                z="1, b, 4",
            ),
        ),
        "the second operand has no batch": (
            skip(SUM + LAYER, z="b, 4"),
            skip(
                "Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W, B)", z="b, 4"
            ),
        ),
        "a bias": (
            skip("t = Add(X, W) s = Add(Z, t) " + LAYER),
            skip("Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(Z, X, W, B, W)"),
        ),
        "a bias first, no bias after, the sum is used": (
            skip(
                "t = Add(B, X) s = Add(t, Z) Y = LayerNormalization(s, W)",
                outputs=", float[a, b, 4] s",
            ),
            skip(
                "Y,,,s = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W,, B)",
                outputs=", float[a, b, 4] s",
            ),
        ),
        "a bias used elsewhere": (
            skip("t = Add(X, W) s = Add(Z, t) " + LAYER, outputs=", float[a, b, 4] t"),
            skip(
                "t = Add(X, W)"
                " Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(Z, t, W, B)",
                outputs=", float[a, b, 4] t",
            ),
        ),
        "sum is used before": (
            skip(SUM + "r = Relu(s) n = LayerNormalization(s, W, B) Y = Add(r, n)"),
            skip(
                "n,,,s = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W, B)"
                " r = Relu(s) Y = Add(r, n)"
            ),
        ),
        "last dimension is a symbol": (
            skip(SUM + LAYER, "a, b, c", "a, b, c", w="c"),
            skip(
                "Y = com.microsoft.SkipLayerNormalization<epsilon = 0.00001>(X, Z, W, B)",
                "a, b, c",
                "a, b, c",
                w="c",
            ),
        ),
    },
    "SkipSimplifiedLayerNormalization": {
        "a bias": (
            skip(f"t = Add(X, B) s = Add(t, Z) Y = {SIMPLIFIED}(s, W)"),
            skip(f"Y = {SKIP_SIMPLIFIED}(X, Z, W, B)"),
        ),
        "simplified, sum is an output": (
            skip(SUM + f"Y = {SIMPLIFIED}(s, W)", outputs=", float[a, b, 4] s"),
            skip(f"Y,,,s = {SKIP_SIMPLIFIED}(X, Z, W)", outputs=", float[a, b, 4] s"),
        ),
    },
    "SkipSimplifiedLayerNormalizationMul": {
        "sum and scale": (
            skip(
                f"n,,,s = {SKIP_SIMPLIFIED}(X, Z, v) Y = Mul(c, n)",
                constants=WEIGHTS,
                outputs=", float[a, b, 4] s",
            ),
            skip(
                f"Y,,,s = {SKIP_SIMPLIFIED}(X, Z, vc)",
                constants=WEIGHTS,
                outputs=", float[a, b, 4] s",
            ),
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, atol=1e-5, reference=False, processor="CUDA")


test_cases = rewrite_tests(CASES, atol=1e-5, reference=False, processor="CUDA")


def test_chain() -> None:
    """From the formula to one operator with its sum and its scale."""
    body = "t = Add(X, Z) " + RMS.replace("X", "t").replace("Y =", "n =") + " Y = Mul(n, W)"
    before = skip(
        body, constants="float eps = {0.001}, float two = {2}, int64[1] axes = {-1}"
    ).replace(", float[4] B", "")
    after = skip(f"Y = {SKIP_SIMPLIFIED}(X, Z, W)").replace(", float[4] B", "")
    patterns = [
        "SimplifiedLayerNormalization",
        "SimplifiedLayerNormalizationMul",
        "SkipSimplifiedLayerNormalization",
        "SkipSimplifiedLayerNormalizationMul",
    ]
    check_pattern(before, after, patterns, atol=1e-5, reference=False, processor="CUDA")


@pytest.mark.parametrize("inverse", ["Reciprocal(s)", "Div(one, s)", "Pow(w, minus)"])
def test_the_inverse_of_the_deviation_is_read_elsewhere(inverse: str) -> None:
    """Gradients read it: it is the second result."""
    body = RMS.replace("Reciprocal(s)", inverse) + " Z = Neg(r)"
    if "w" in inverse:
        body = body.replace("s = Sqrt(w)", "")
    before = rms(body, outputs=", float[a, b, 1] Z").replace(
        "int64[1] middle", "float one = {1}, float minus = {-0.5}, int64[1] middle"
    )
    after = """agraph (float[a, b, 4] X) => (float[a, b, 4] Y, float[a, b, 1] Z) <
        float[4] scale = {1, 1, 1, 1}> {
        Y, r = SimplifiedLayerNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(X, scale)
        Z = Neg(r)
    }"""
    check_pattern(before, after, "SimplifiedLayerNormalization", atol=1e-5, reference=False)
    bare = before.replace("w = Add(v, eps)", "").replace("(w", "(v")
    after = after.replace("0.00001", "0.0")
    rows = np.random.default_rng(0).standard_normal((1, 3, 4)).astype(np.float32)
    rows[0, 0] = 0
    check_pattern(
        bare, after, "SimplifiedLayerNormalization", atol=1e-5, reference=False, feeds=[{"X": rows}]
    )


def test_the_inverse_of_the_deviation_at_opset_23() -> None:
    """RMSNormalization does not give it."""
    before = rms(RMS + " Z = Neg(r)", outputs=", float[a, b, 1] Z")
    names = ["RMSNormalization", "SimplifiedLayerNormalization"]
    found = check_pattern(before, None, names, opset=23, atol=1e-5, reference=False)
    assert [n.op_type for n in found.graph.node] == ["SimplifiedLayerNormalization", "Neg"]


def test_no_epsilon() -> None:
    """In float only."""
    bare = RMS.replace("w = Add(v, eps)", "").replace("(w", "(v")
    after = """agraph (float[a, b, 4] X) => (float[a, b, 4] Y) <float[4] scale = {1, 1, 1, 1}> {
        Y = SimplifiedLayerNormalization<axis = -1, epsilon = 0.0, stash_type = 1>(X, scale) }"""
    name = "SimplifiedLayerNormalization"
    check_pattern(rms(bare), after, name, atol=1e-5, reference=False)
    half = rms(bare, elem_type="float16").replace("{0.00001}", "{168}")
    half = half.replace("two = {2}", "two = {16384}")
    check_no_match(half, name, "epsilon is not a positive constant")


def test_casts_are_part_of_the_operator() -> None:
    """float16 -> float -> formula -> float16, the precision of float16 is kept: 1e-3 relative."""
    before = """agraph (float16[a, 4] X) => (float16[a, 4] Y) <
        float eps = {0.00001}, float two = {2}, int64[1] axes = {-1}> {
        x = Cast<to = 1>(X) """
    body = RMS.replace("X", "x").replace("Y =", "y =")
    before = before + body + " Y = Cast<to = 10>(y) }"
    after = """agraph (float16[a, 4] X) => (float16[a, 4] Y) <
        float16[4] scale = {15360, 15360, 15360, 15360}> {
        Y = SimplifiedLayerNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(X, scale)
    }"""
    check_pattern(before, after, "SimplifiedLayerNormalization", atol=2e-3, reference=False)
    before, after = (t.replace("4] Y)", "4] Y, float[a, 1] r)") for t in (before, after))
    after = after.replace("Y = ", "Y, r = ")
    check_pattern(before, after, "SimplifiedLayerNormalization", atol=2e-3, reference=False)


@pytest.mark.parametrize("name", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_float16(name: str) -> None:
    """float16: 10 bits of precision."""
    before, after = (t.replace("float[", "float16[") for t in MODELS[name])
    check_pattern(before, after, name, atol=1e-2, reference=False, processor="CUDA")


#: pattern -> case -> (model, reason)
REFUSED = {
    "OrtLayerNormalization": {
        "opset 17": (layer(17), "the opset has LayerNormalization", {"opset": 17}),
        "opset 18": (layer(18), "the opset has LayerNormalization"),
        "on CUDA": (
            layer(),
            "onnxruntime has no LayerNormalization for this type",
            {"opset": 16, "processor": "CUDA"},
        ),
        "the length is not known": (
            layer(dims="a, b, c"),
            "are not known integers",
            {"opset": 14},
        ),
    },
    "SkipLayerNormalization": {
        "on CPU": (skip(SUM + LAYER), "slower on CPU"),
    },
    "SkipLayerNormalization(on_cpu=True)": {
        "no Add": (skip("Y = LayerNormalization(X, W, B)"), "no Add before"),
        "second operand of rank 1": (skip(SUM + LAYER, z="4"), "do not have rank 2 or 3"),
        "first operand of rank 1": (
            skip("s = Add(Z, X) " + LAYER, z="4"),
            "do not have rank 2 or 3",
        ),
        "rank 4": (skip(SUM + LAYER, "a, b, c, 4", "a, b, c, 4"), "do not have rank 2 or 3"),
        "broadcast": (skip(SUM + LAYER, z="a, 1, 4"), "same shape"),
        "other symbols": (skip(SUM + LAYER, z="a, c, 4"), "same shape"),
        "rank 2 and 3": (skip(SUM + LAYER, z="a, 4"), "same shape"),
        "axis": (
            skip(SUM + "Y = LayerNormalization<axis = 1>(s, W, B)", w="b, 4"),
            "axis is not the last",
        ),
        "scale of two dimensions": (skip(SUM + LAYER, w="1, 4"), "does not have one dimension"),
        "scale of one element": (
            skip(SUM + "Y = LayerNormalization(s, W)", w="1"),
            "may not have the length of the last dimension",
        ),
        "scale of unknown length": (
            skip(SUM + "Y = LayerNormalization(s, W)", w="n"),
            "may not have the length of the last dimension",
        ),
        "bias of one element": (
            skip(SUM + LAYER).replace("float[4] B", "float[1] B"),
            "may not have the length of the last dimension",
        ),
        "bias of unknown length": (
            skip(SUM + LAYER).replace("float[4] B", "float[n] B"),
            "may not have the length of the last dimension",
        ),
        "last dimension is unknown": (
            skip(SUM + LAYER, "a, b, c", "a, b, c", w="k"),
            "may not have the length of the last dimension",
        ),
        "double": (skip(SUM + LAYER, elem_type="double"), "for this type"),
        "mean is used": (
            skip(SUM + "Y, M = LayerNormalization(s, W, B)", outputs=", float[a, b, 1] M"),
            "mean or the deviation is used",
        ),
        "stash type": (
            skip(SUM + "Y = LayerNormalization<stash_type = 16>(s, W, B)"),
            "not in float",
        ),
    },
    "SkipSimplifiedLayerNormalization": {
        "on CPU": (skip(SUM + f"Y = {SIMPLIFIED}(s, W)"), "slower on CPU"),
    },
    "SkipSimplifiedLayerNormalization(on_cpu=True)": {
        "simplified, broadcast": (skip(SUM + f"Y = {SIMPLIFIED}(s, W)", z="1, b, 4"), "same shape"),
        "simplified, scale of one element": (
            skip(SUM + f"Y = {SIMPLIFIED}(s, W)", w="1"),
            "may not have the length of the last dimension",
        ),
        "simplified, scale of unknown length": (
            skip(SUM + f"Y = {SIMPLIFIED}(s, W)", w="n"),
            "may not have the length of the last dimension",
        ),
        "simplified, scale of another type": (
            skip(SUM + f"Y = {SIMPLIFIED}(s, W)").replace("float[4] W", "float16[4] W"),
            "the scale has another type",
        ),
        "simplified, middle axis": (
            skip(SUM + "Y = SimplifiedLayerNormalization<axis = 1>(s, W)", w="b, 4"),
            "axis is not the last",
        ),
    },
    "SimplifiedLayerNormalization": {
        "middle axis": (rms(RMS.replace("axes", "middle")), "axes are not the last"),
        "the deviation is read elsewhere": (
            rms(f"{RMS} Z = Exp(s)", outputs=", float[a, b, 1] Z"),
            "an inner result is used elsewhere",
        ),
    },
    "SimplifiedLayerNormalizationMul": {
        "factor is an input": (
            skip(f"n = {SIMPLIFIED}(X, v) Y = Mul(n, W)", constants=WEIGHTS),
            "not constant",
        ),
        "factor of another shape": (
            skip(f"n = {SIMPLIFIED}(X, v) Y = Mul(n, Z)", constants=WEIGHTS),
            "shape of the scale",
        ),
        "inner result is an output": (
            skip(
                f"n = {SIMPLIFIED}(X, v) Y = Mul(n, c)",
                constants=WEIGHTS,
                outputs=", float[a, b, 4] n",
            ),
            "only use",
        ),
    },
    "SkipSimplifiedLayerNormalizationMul": {
        "squared": (
            skip(f"n = {SKIP_SIMPLIFIED}(X, Z, v) Y = Mul(n, n)", constants=WEIGHTS),
            "only use",
        ),
    },
}


test_refuses = refusal_tests(REFUSED)


def test_types_another_onnxruntime_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions differ by the types of a kernel."""
    rows = [[1, None, {"T": "float", "U": "float", "V": "float"}]]
    older = KernelTable(
        {
            "runtime": "onnxruntime 1.0",
            "provider": "CPUExecutionProvider",
            "kernels": {"SimplifiedLayerNormalization": rows},
            "parameters": {"SimplifiedLayerNormalization": "T V"},
        }
    )
    monkeypatch.setattr(cpu_kernels, "kernel_table", lambda processor: older)
    name = "SimplifiedLayerNormalization"
    # the text gives the bits of float16: 1e-5, 2
    half = rms(RMS, elem_type="float16").replace("{0.00001}", "{168}").replace("{2}", "{16384}")
    check_no_match(half, name, "no SimplifiedLayerNormalization for this")
    check_pattern(rms(RMS), None, name, atol=1e-5, reference=False)


@pytest.mark.parametrize("opset", [9, 13, 16])
@pytest.mark.parametrize("elem_type", ["float", "float16"])
def test_layer_normalization_before_opset_17(elem_type: str, opset: int) -> None:
    """onnxruntime runs the operator in any opset: the scale and the bias follow."""
    epsilon, tolerance = {"float": ("0.00001", 1e-5), "float16": ("0.000010013580322265625", 1e-2)}[
        elem_type
    ]
    written = f"Y = LayerNormalization<axis = -1, epsilon = {epsilon}>(X, W, B)"
    check_pattern(
        layer(opset, elem_type=elem_type),
        skip(written, elem_type=elem_type),
        "OrtLayerNormalization,LayerNormalizationScale",
        opset,
        atol=tolerance,
        reference=False,
    )


@pytest.mark.parametrize(
    ("text", "opset", "pattern", "written"),
    [
        (layer(), 16, "OrtLayerNormalization", "LayerNormalization"),
        (rms(RMS), 18, "SimplifiedLayerNormalization", "SimplifiedLayerNormalization"),
    ],
)
def test_public_operators_are_kept(text: str, opset: int, pattern: str, written: str) -> None:
    """The option keeps the formula, the announcement tells what onnx.checker refuses."""
    model = model_from_text(text, opset)
    kept, rows, _ = optimize_with(model, pattern, public_operators=True)
    assert [n.op_type for n in kept.graph.node] == [n.op_type for n in model.graph.node]
    assert not any(r.get("private") for r in rows)
    _, rows, _ = optimize_with(model, pattern)
    assert [r["private"] for r in rows if r.get("private")] == [written]


def test_empty_and_one() -> None:
    """Dimensions 0 and 1."""
    before, after = MODELS["SkipLayerNormalization"]
    rng = np.random.default_rng(0)
    for batch, length in ((1, 1), (0, 2), (2, 0)):
        feeds = {n: rng.standard_normal((batch, length, 4)).astype(np.float32) for n in ("X", "Z")}
        feeds.update({n: rng.standard_normal(4).astype(np.float32) for n in ("W", "B")})
        check_pattern(
            model_from_text(before),
            after,
            "SkipLayerNormalization(on_cpu=True)",
            atol=1e-5,
            feeds=[feeds],
        )


def test_the_inverse_in_float16() -> None:
    """The second result is float, it is converted."""
    text = rms(f"{RMS} Z = Exp(r)", elem_type="float16", outputs=", float16[a, b, 1] Z")
    text = text.replace("{0.00001}", "{168}").replace("two = {2}", "two = {16384}")
    found = check_pattern(text, None, "SimplifiedLayerNormalization", atol=4e-3, reference=False)
    types = [n.op_type for n in found.graph.node]
    assert types == ["SimplifiedLayerNormalization", "Cast", "Exp"]
