"""QuantizeLinear after DequantizeLinear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.helper import tensor_dtype_to_np_dtype
from onnxruntime import InferenceSession

from xoptim.testing import (
    check_pattern,
    model_from_text,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

H = "g (uint8[a, 2] x) => (uint8[a, 2] y)"
C = (
    "float s = {0.1}, float t = {0.1}, float u = {0.2}, uint8 z = {3}, uint8 w = {3},"
    " uint8 v = {4}, float[2] k = {0.1, 0.2}, uint8[2] l = {1, 2}"
)


def model(nodes: str, header: str = H, constants: str = C) -> str:
    """A model with parameters."""
    return f"{header} <{constants}> {{ {nodes} }}"


def done(header: str = H) -> str:
    """Nothing is left."""
    return f"{header} {{ y = Identity(x) }}"


CONV = "g (uint8[a, 2, d, e] x, uint8[b, 2, 1, 1] w, float s) => (float[a, b, d, e] y)"
PAIR = "d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z)"

#: pattern -> case -> (before, after)
MODELS = {
    "DequantizedConv": {
        "a scale": (
            f"{CONV} {{ i = ConvInteger(x, w) c = Cast<to = 1>(i) y = Mul(c, s) }}",
            f"{CONV} {{ i = ConvInteger(x, w) y = DequantizeLinear(i, s) }}",
        ),
        "a scale on the left, the integers are read elsewhere": (
            f"{CONV[:-1]}, int32[a, b, d, e] i)"
            " { i = ConvInteger(x, w) c = Cast<to = 1>(i) y = Mul(s, c) }",
            f"{CONV[:-1]}, int32[a, b, d, e] i)"
            " { i = ConvInteger(x, w) y = DequantizeLinear(i, s) }",
        ),
    },
    "DequantizeQuantize": {
        "same parameters": (model(PAIR), done()),
        "equal parameters": (
            model("d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, t, w)"),
            done(),
        ),
        "no zero point": (
            model("d = DequantizeLinear(x, s) y = QuantizeLinear(d, t)"),
            done(),
        ),
        "by channel": (
            model("d = DequantizeLinear(x, k, l) y = QuantizeLinear(d, k, l)"),
            done(),
        ),
        "by row": (
            model(
                "d = DequantizeLinear<axis = 0>(x, k, l) y = QuantizeLinear<axis = 0>(d, k, l)",
                H.replace("a, 2", "2, a"),
            ),
            done(H.replace("a, 2", "2, a")),
        ),
        "int16": (
            model(
                PAIR,
                H.replace("uint8", "int16"),
                "float s = {0.003}, int16 z = {-30000}",
            ),
            done(H.replace("uint8", "int16")),
        ),
        "the dequantized result is an output": (
            model(PAIR, "g (uint8[a, 2] x) => (uint8[a, 2] y, float[a, 2] d)"),
            model(
                "d = DequantizeLinear(x, s, z) y = Identity(x)",
                "g (uint8[a, 2] x) => (uint8[a, 2] y, float[a, 2] d)",
            ),
        ),
        "two pairs": (
            model(
                "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"
                " r = QuantizeLinear(d, s, z) y = DequantizeLinear(r, s, z)",
                "g (float[a] x) => (float[a] y)",
            ),
            model(
                "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)",
                "g (float[a] x) => (float[a] y)",
            ),
        ),
    },
}

REFUSED = {
    "DequantizedConv": {
        "an opset without kernel": (
            f"{CONV} {{ i = ConvInteger(x, w) c = Cast<to = 1>(i) y = Mul(c, s) }}",
            "no DequantizeLinear at this opset",
            {"opset": 28},
        ),
        "a product by a matrix": (
            "g (int8[a, 2] x, int8[2, b] w, float s) => (float[a, b] y)"
            " { i = MatMulInteger(x, w) c = Cast<to = 1>(i) y = Mul(c, s) }",
            "ConvInteger",
        ),
        "a scale for each channel": (
            f"{CONV.replace('float s', 'float[1, 1, 1] s')}"
            " { i = ConvInteger(x, w) c = Cast<to = 1>(i) y = Mul(c, s) }",
            "there are several scales",
        ),
        "double": (
            f"{CONV.replace('float', 'double')}"
            " { i = ConvInteger(x, w) c = Cast<to = 11>(i) y = Mul(c, s) }",
            "the type is not float",
        ),
        "used elsewhere": (
            f"{CONV[:-1]}, float[a, b, d, e] c)"
            " { i = ConvInteger(x, w) c = Cast<to = 1>(i) y = Mul(c, s) }",
            "what is scaled is used elsewhere",
        ),
    },
    "DequantizeQuantize": {
        "another precision": (
            model(PAIR.replace("QuantizeLinear(d", "QuantizeLinear<precision = 10>(d")),
            "the precision is not the one of the scale",
            {"opset": 23},
        ),
        "another scale": (
            model("d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, u, z)"),
            "not the same constants",
        ),
        "another zero point": (
            model("d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, v)"),
            "not the same constants",
        ),
        "one zero point": (
            model("d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s)"),
            "not the same constants",
        ),
        "a scale that is an input": (
            model(
                "d = DequantizeLinear(x, p, z) y = QuantizeLinear(d, p, z)",
                "g (uint8[a] x, float p) => (uint8[a] y)",
            ),
            "the scale is not constant",
        ),
        "two scales that are inputs": (
            model(
                "d = DequantizeLinear(x, p, z) y = QuantizeLinear(d, q, z)",
                "g (uint8[a] x, float p, float q) => (uint8[a] y)",
            ),
            "not the same constants",
        ),
        "another type": (
            model(
                "d = DequantizeLinear(x, s) y = QuantizeLinear(d, s)",
                "g (int8[a] x) => (uint8[a] y)",
            ),
            "the types differ",
        ),
        "32 bits": (
            model(
                "d = DequantizeLinear(x, s) y = QuantizeLinear(d, s)",
                H.replace("uint8[a, 2] x", "int32[a, 2] x"),
            ),
            "the types differ",
        ),
        "another axis": (
            model(
                "d = DequantizeLinear<axis = 0>(x, k, l) y = QuantizeLinear(d, k, l)",
                H.replace("a, 2", "2, 2"),
            ),
            "not along the same axis",
        ),
        "a negative scale": (
            model(PAIR, constants="float s = {-0.1}, uint8 z = {3}"),
            "a scale is not positive",
        ),
        "a null scale": (
            model(PAIR, constants="float s = {0}, uint8 z = {3}"),
            "a scale is not positive",
        ),
        "a tiny scale": (
            model(PAIR, constants="float s = {1e-44}, uint8 z = {3}"),
            "is too small or too large",
        ),
        "a huge scale": (
            model(PAIR, constants="float s = {3e38}, uint8 z = {3}"),
            "is too small or too large",
        ),
        "a scale in half precision": (
            model(
                "d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z)",
                constants="float16 s = {11878}, uint8 z = {3}",
            ),
            "the scale is not a float",
            {"opset": 19},
        ),
        "quantized first": (
            model(
                "d = QuantizeLinear(x, s, z) y = DequantizeLinear(d, s, z)",
                "g (float[a] x) => (float[a] y)",
            ),
            "no DequantizeLinear before",
        ),
    },
}

# the reference evaluator has no implementation of older opsets
test_rewrites = rewrite_tests(MODELS, opset=21)
test_refuses = refusal_tests(REFUSED)


def test_old_opset() -> None:
    for opset in (10, 13, 18):
        check_pattern(model(PAIR), done(), "DequantizeQuantize", opset=opset, reference=False)


@pytest.mark.parametrize("elem_type", ["uint8", "int8", "uint16", "int16"])
@settings(max_examples=8, deadline=None)
@given(
    exponent=st.floats(-36, 32),
    zero=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_every_integer_comes_back(elem_type: str, exponent: float, zero: float, seed: int) -> None:
    """All the integers of a type, scales of any magnitude, zero points at both ends."""
    limits = np.iinfo(elem_type)
    values = np.arange(limits.min, limits.max + 1).astype(elem_type)
    if len(values) > 4096:
        values = np.random.default_rng(seed).choice(values, 4096)
    point = int(limits.min + round(zero * (int(limits.max) - int(limits.min))))
    header = f"g ({elem_type}[a] x) => ({elem_type}[a] y)"
    text = model(PAIR, header, f"float s = {{{10**exponent}}}, {elem_type} z = {{{point}}}")
    check_pattern(text, done(header), "DequantizeQuantize", opset=21, feeds=[{"x": values}])


# -- elements moved between DequantizeLinear and QuantizeLinear

PATTERN = "QuantizedMove"
CONSTANTS = (
    "float s = {0.1}, float t = {0.1}, float u = {0.2}, uint8 z = {3}, uint8 w = {3}, float[1] one = {0.1},"
    " float[2] k = {0.1, 0.2}, int64[2] shape = {-1, 1}, int64[2] parts = {1, 1}, int64[1] p = {0}"
)


def moved_model(
    body: str, x: str = "uint8[a, 2]", y: str = "uint8[n, m]", more: str = "", inputs: str = ""
) -> str:
    """Integers."""
    return f"g ({x} x{inputs}) => ({y} y{more}) <{CONSTANTS}> {{ {body} }}"


def moved(body: str) -> str:
    """A move from d to e, between both."""
    return f"d = DequantizeLinear(x, s, z) {body} y = QuantizeLinear(e, s, z)"


def both(body: str, **options: str) -> tuple[str, str]:
    """The model, and what is left of it."""
    after = body.replace("(d", "(x").replace("e =", "y =")
    return moved_model(moved(body), **options), moved_model(after, **options)


MOVED_MODELS = {
    PATTERN: {
        "Transpose": both("e = Transpose(d)"),
        "Reshape": both("e = Reshape(d, shape)"),
        "Slice": both("e = Slice(d, p, p)"),
        "Gather": both("e = Gather(d, p)"),
        "Flatten": both("e = Flatten<axis = 0>(d)"),
        "Unsqueeze": both("e = Unsqueeze(d, p)", y="uint8[n, m, o]"),
        "Split": (
            moved_model(
                "d = DequantizeLinear(x, s, z) e, f = Split<axis = 1>(d, parts)"
                "y = QuantizeLinear(e, t, w) v = QuantizeLinear(f, s, z)",
                more=", uint8[n, m] v",
            ),
            moved_model("y, v = Split<axis = 1>(x, parts)", more=", uint8[n, m] v"),
        ),
        "Split, a piece is not used": (
            moved_model(
                "d = DequantizeLinear(x, s, z) e, f = Split<axis = 1>(d, parts) y = QuantizeLinear(f, s, z)"
            ),
            moved_model("e, y = Split<axis = 1>(x, parts)"),
        ),
        "no zero point, one element": (
            moved_model("d = DequantizeLinear(x, one) e = Transpose(d) y = QuantizeLinear(e, one)"),
            moved_model("y = Transpose(x)"),
        ),
        "the float is used elsewhere": (
            moved_model(moved("e = Transpose(d)") + "f = Neg(d)", more=", float[a, 2] f"),
            moved_model(
                "y = Transpose(x) d = DequantizeLinear(x, s, z) f = Neg(d)", more=", float[a, 2] f"
            ),
        ),
    }
}  # fmt: skip

MOVED_REFUSED = {
    PATTERN: {
        "other scale": (
            moved_model(moved("e = Transpose(d)").replace("(e, s, z)", "(e, u, z)")),
            "not the same constants",
        ),
        "the result is used elsewhere": (
            moved_model(moved("e = Transpose(d)") + "f = Neg(e)", more=", float[2, a] f"),
            "QuantizeLinear is not the only use",
        ),
        "a piece is not quantized": (
            moved_model(
                moved("e, f = Split<axis = 1>(d, parts)") + "v = Neg(f)", more=", float[n, m] v"
            ),
            "QuantizeLinear is not the only use",
        ),
        "several scales": (
            moved_model("d = DequantizeLinear(x, k) e = Transpose(d) y = QuantizeLinear<axis = 0>(e, k)"),
            "there are several scales",
        ),
        "a result is a scale": (
            moved_model(
                "d = DequantizeLinear(x, s, z) e = Reshape(d, p) y = QuantizeLinear(f, e, z)",
                x="uint8[1]", inputs=", float[1, 1] f",
            ).replace("p = {0}", "p = {1}"),
            "a result is a scale",
        ),
        "int8": (
            both("e = Transpose(d)", x="int8[a, 2]", y="int8[n, m]")[0].replace("uint8 z", "int8 z"),
            "do not move these integers",
        ),
        "a tiny scale": (
            moved_model(moved("e = Transpose(d)")).replace("s = {0.1}", "s = {1e-45}"),
            "too small",
        ),
        "other integers": (
            moved_model(moved("e = Transpose(d)").replace("(e, s, z)", "(e, s, v)"), y="int8[n, m]").replace(
                "uint8 w", "int8 v = {3}, uint8 w"
            ),
            "the types differ",
        ),
    }
}  # fmt: skip

test_moved_rewrites = rewrite_tests(MOVED_MODELS, opset=19)
test_moved_refuses = refusal_tests(MOVED_REFUSED, opset=19)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_rows(rows: int) -> None:
    before, after = MOVED_MODELS[PATTERN]["Transpose"]
    check_pattern(before, after, PATTERN, opset=19, sizes={"a": rows})


# -- elements moved before DequantizeLinear, where onnxruntime fails to quantize them again

BEFORE = "MoveBeforeDequantize"


def late(
    body: str, kind: str = "int8", y: str = "float[n, m]", zero: str = ", z", more: str = ""
) -> str:
    """A move of floats, then of integers if there is an f: `e` moves `d`."""
    point = f", {kind} z = {{3}}" if zero else ""
    return (
        f"g ({kind}[a, 2] x{more}) => ({y} y) <float s = {{0.1}}, float[1] one = {{0.1}},"
        f" float[2] k = {{0.1, 0.2}}, int64[2] shape = {{-1, 1}}, int64[1] p = {{0}}{point}>"
        f" {{ {body.replace(', z', zero)} }}"
    )


def swapped(move: str, after: str = "y = Neg(e)", **options: str) -> tuple[str, str]:
    """The model, and the move of integers; the move ends in its other operands."""
    return (
        late(f"d = DequantizeLinear(x, s, z) e = {move.replace('(', '(d')} {after}", **options),
        late(
            f"f = {move.replace('(', '(x')} e = DequantizeLinear(f, s, z) {after}",
            **options,
        ),
    )


IF = (
    "y = If(c) <then_branch = t () => (float[n, m] u) { u = Tanh(e) },"
    " else_branch = o () => (float[n, m] v) { v = Abs(e) }>"
)
BOOL = {"kind": "uint8", "more": ", bool c"}
LATE_MODELS = {
    BEFORE: {
        "Transpose": swapped("Transpose()"),
        "Reshape": swapped("Reshape(, shape)"),
        "Slice": swapped("Slice(, p, p)"),
        "Unsqueeze": swapped("Unsqueeze(, p)", y="float[o, n, m]"),
        "int32": swapped("Transpose()", kind="int32", zero=""),
        "a subgraph": swapped("Transpose()", IF, **BOOL),
        "moved twice before a subgraph": (
            late(f"d = DequantizeLinear(x, s, z) h = Reshape(d, shape) e = Transpose(h) {IF}", **BOOL),
            late(f"f = Reshape(x, shape) h = Transpose(f) e = DequantizeLinear(h, s, z) {IF}", **BOOL),
        ),
    }
}  # fmt: skip
#: those of opset 19
OLD_LATE = {BEFORE: {"no zero point": swapped("Transpose()", zero="")}}
LATE = [
    (opset, case, *texts)
    for opset, table in ((21, LATE_MODELS), (19, OLD_LATE))
    for case, texts in table[BEFORE].items()
]


@pytest.mark.parametrize("opset, case, before, after", LATE, ids=[row[1] for row in LATE])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_moved_before(opset: int, case: str, before: str, after: str, rows: int) -> None:
    """The result, which onnxruntime loads as it comes and computes as the definition."""
    check_pattern(before, after, BEFORE, opset=opset, sizes={"a": rows})
    x = np.linspace(-8, 7, rows * 2).reshape(rows, 2)
    model = model_from_text(after, opset=opset)
    kind = tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    feeds = {"x": x.astype(kind), "c": np.array(True)}
    feeds = {i.name: feeds[i.name] for i in model.graph.input}
    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = run_onnxruntime(model, feeds)
    np.testing.assert_array_equal(session.run(None, feeds)[0], expected[0])


LATE_REFUSED = {
    BEFORE: {
        "uint8": (
            late("d = DequantizeLinear(x, s, z) e = Transpose(d) y = Neg(e)", kind="uint8"),
            "onnxruntime moves it itself",
        ),
        "no zero point": (
            late("d = DequantizeLinear(x, s) e = Transpose(d) y = Neg(e)"),
            "onnxruntime moves it itself",
        ),
        "a zero point": (
            late("d = DequantizeLinear(x, s, z) e = Transpose(d) y = Neg(e)"),
            "onnxruntime moves it itself",
            {"opset": 19},
        ),
        "quantized again": (
            late(
                "d = DequantizeLinear(x, s, z) e = Transpose(d) y = QuantizeLinear(e, s, z)",
                y="int8[n, m]",
            ),
            "onnxruntime moves it itself",
        ),
        "the floats are used elsewhere": (
            late("d = DequantizeLinear(x, s, z) e = Transpose(d) f = Transpose(e) y = Add(d, f)"),
            "the floats are used elsewhere",
        ),
        "several scales": (
            late("d = DequantizeLinear(x, k) e = Transpose(d) y = Neg(e)"),
            "there are several",
        ),
        "a scale that varies": (
            late(
                "d = DequantizeLinear(x, v, z) e = Transpose(d) y = Neg(e)",
                more=", float v",
            ),
            "the scale is not constant",
        ),
    }
}

test_late_refuses = refusal_tests(LATE_REFUSED, opset=21)
