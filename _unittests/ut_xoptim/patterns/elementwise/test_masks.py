"""Masks made with Where, Cast and comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import (
    assert_same_outputs,
    check_pattern,
    model_from_text,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

H = "g (bool[a, b] c) => (float[a, b] y)"
B = "g (bool[a, b] c) => (bool[a, b] y)"
INTS = "g (int64[a, b] x, int64[b] z) => (bool[a, b] y)"
C = "float one = {1}, float zero = {0}, float big = {-3e38}, float[1] two = {2}"


def model(nodes: str, header: str = H, constants: str = C) -> str:
    """A model with numbers."""
    return f"{header} <{constants}> {{ {nodes} }}"


COMPARISONS = {
    "Equal(f, one)": "c",
    "Equal(one, f)": "c",
    "Greater(f, zero)": "c",
    "GreaterOrEqual(f, one)": "c",
    "Equal(f, zero)": "Not(c)",
    "Less(f, one)": "Not(c)",
    "LessOrEqual(f, zero)": "Not(c)",
}
NUMBERS = C + ", float[1, 1] three = {3}, float[1, 1, 1] wide = {3}, float four = {4}"
LOWERED = "Where(c, zero, big)"
#: what is made of a choice between two numbers -> the choice, the boolean
CHOSEN = {
    "Cast<to = 9>(w)": (LOWERED, "Not(c)"),
    "Less(w, one)": ("Where(c, two, zero)", "Not(c)"),
    "LessOrEqual(w, big)": (LOWERED, "Not(c)"),
    "Greater(w, three)": ("Where(c, big, four)", "Not(c)"),
    "GreaterOrEqual(w, two)": ("Where(c, three, one)", "Identity(c)"),
    "Equal(w, zero)": (LOWERED, "Identity(c)"),
}
NEGATED = {
    "Greater": "LessOrEqual",
    "Less": "GreaterOrEqual",
    "GreaterOrEqual": "Less",
    "LessOrEqual": "Greater",
}

#: pattern -> case -> (before, after)
MODELS = {
    "WhereCast": {
        "float": (model("y = Where(c, one, zero)"), f"{H} {{ y = Cast<to = 1>(c) }}"),
        "int64": (
            model(
                "y = Where(c, o, z)",
                H.replace("float", "int64"),
                "int64[1] o = {1}, int64[1, 1] z = {0}",
            ),
            f"{H.replace('float', 'int64')} {{ y = Cast<to = 7>(c) }}",
        ),
    },
    "WhereBool": {
        node: (
            model(f"w = {where} y = {node}", B, NUMBERS),
            f"{B} {{ y = {after} }}",
        )
        for node, (where, after) in CHOSEN.items()
    },
    "CastCompare": {
        f"{node}": (
            model(f"f = Cast<to = 1>(c) e = {node} y = Not(e)", B),
            f"{B} {{ y = Not(c) }}" if after == "c" else f"{B} {{ n = Not(c) y = Not(n) }}",
        )
        for node, after in COMPARISONS.items()
    },
    "NotCompare": {
        name: (
            f"{INTS} {{ e = {name}(x, z) y = Not(e) }}",
            f"{INTS} {{ y = {other}(x, z) }}",
        )
        for name, other in NEGATED.items()
    },
    "SubCastMul": {
        "mask": (
            model("f = Cast<to = 1>(c) s = Sub(one, f) y = Mul(s, big)"),
            model("y = Where(c, zero, big)"),
        ),
        "the number first, rank 1": (
            model("f = Cast<to = 1>(c) s = Sub(one, f) y = Mul(two, s)"),
            model("y = Where(c, zero, t)", constants=f"{C}, float t = {{2}}"),
        ),
        "int64": (
            model(
                "f = Cast<to = 7>(c) s = Sub(o, f) y = Mul(s, v)",
                H.replace("float", "int64"),
                "int64 o = {1}, int64 v = {-7}",
            ),
            model(
                "y = Where(c, o, v)", H.replace("float", "int64"), "int64 o = {0}, int64 v = {-7}"
            ),
        ),
    },
}

ADD = "g (bool[a, b] c, int64[a, b] k) => (float[a, b] y)"
#: minus infinity, which the text of a model cannot write
MINUS = "o = Mul(huge, hundred)"
INFINITE = "float zero = {0}, float huge = {-3e38}, float hundred = {100}"
MODELS["WhereAdd"] = {
    "integers": (
        model(f"{MINUS} x = Cast<to = 1>(k) w = Where(c, zero, o) y = Add(x, w)", ADD, INFINITE),
        model(f"{MINUS} x = Cast<to = 1>(k) y = Where(c, x, o)", ADD, INFINITE),
    ),
    "booleans": (
        model(
            f"{MINUS} x = Cast<to = 1>(k) w = Where(c, zero, o) y = Add(w, x)",
            ADD.replace("int64", "bool"),
            INFINITE,
        ),
        model(
            f"{MINUS} x = Cast<to = 1>(k) y = Where(c, x, o)",
            ADD.replace("int64", "bool"),
            INFINITE,
        ),
    ),
}

#: what is added to scores, as BART and T5 make it from a mask of 1 and 0
FILLED = "s = Sub(one, f) n = Cast<to = 9>(s) y = Where(n, big, s)"
EQUAL = "e = Equal(k, o) y = Where(e, zero, big)"
MODELS["CastComplement"] = {
    "float": (
        model("f = Cast<to = 1>(c) s = Sub(one, f) y = Cast<to = 9>(s)", B),
        f"{B} {{ y = Not(c) }}",
    ),
    "int64, rank 1": (
        model("f = Cast<to = 7>(c) s = Sub(o, f) y = Cast<to = 9>(s)", B, "int64[1] o = {1}"),
        f"{B} {{ y = Not(c) }}",
    ),
    "the difference is an output": (
        model(
            "f = Cast<to = 1>(c) s = Sub(one, f) y = Cast<to = 9>(s)",
            B.replace("] y", "] y, float[a, b] s"),
        ),
        model(
            "f = Cast<to = 1>(c) s = Sub(one, f) y = Not(c)", B.replace("] y", "] y, float[a, b] s")
        ),
    ),
}
MODELS["ComplementWhere"] = {
    "boolean": (model(f"f = Cast<to = 1>(c) {FILLED}"), model("y = Where(c, zero, big)")),
    **{
        elem_type: (
            model(
                f"f = Cast<to = 1>(k) {FILLED}", H.replace("bool[a, b] c", f"{elem_type}[a, b] k")
            ),
            model(
                EQUAL,
                H.replace("bool[a, b] c", f"{elem_type}[a, b] k"),
                f"{elem_type} o = {{1}}, {C}",
            ),
        )
        for elem_type in ("int64", "int32")
    },
    "float": (
        model(FILLED, H.replace("bool[a, b] c", "float[a, b] f")),
        model(
            EQUAL.replace("k,", "f,"),
            H.replace("bool[a, b] c", "float[a, b] f"),
            f"float o = {{1}}, {C}",
        ),
    ),
    "another value": (
        model(FILLED.replace("big", "x"), H.replace("bool[a, b] c", "float[b] f, float[a, 1] x")),
        model(
            EQUAL.replace("big", "x").replace("k,", "f,"),
            H.replace("bool[a, b] c", "float[b] f, float[a, 1] x"),
            f"float o = {{1}}, {C}",
        ),
    ),
    "integers that are cast to others": (  # 2**32 + 1 is 1 in 32 bits
        model(
            "f = Cast<to = 6>(k) s = Sub(o, f) n = Cast<to = 9>(s) y = Where(n, v, s)",
            "g (int64[a, b] k) => (int32[a, b] y)",
            "int32 o = {1}, int32 v = {7}",
        ),
        model(
            "f = Cast<to = 6>(k) e = Equal(f, o) y = Where(e, z, v)",
            "g (int64[a, b] k) => (int32[a, b] y)",
            "int32 o = {1}, int32 v = {7}, int32 z = {0}",
        ),
    ),
}

REFUSED = {
    "CastComplement": {
        "not a boolean": (
            model(
                "s = Sub(one, f) y = Cast<to = 9>(s)", B.replace("bool[a, b] c", "float[a, b] f")
            ),
            "no Cast before",
        ),
        "integers": (
            model(
                "f = Cast<to = 1>(c) s = Sub(one, f) y = Cast<to = 9>(s)",
                B.replace("bool[a, b] c", "int64[a, b] c"),
            ),
            "what is cast is not a boolean",
        ),
        "the result is a number": (
            model(
                "f = Cast<to = 1>(c) s = Sub(one, f) y = Cast<to = 7>(s)",
                B.replace("=> (bool", "=> (int64"),
            ),
            "the result is not a boolean",
        ),
        "two minus": (
            model("f = Cast<to = 1>(c) s = Sub(two, f) y = Cast<to = 9>(s)", B),
            "cannot be the constant 1",
        ),
    },
    "ComplementWhere": {
        "the other way round": (
            model(f"f = Cast<to = 1>(c) {FILLED}".replace("n, big, s", "n, s, big")),
            "no |cannot be",
        ),
        "another difference": (
            model(f"f = Cast<to = 1>(c) t = Sub(f, one) {FILLED}".replace("big, s)", "big, t)")),
            "no |cannot be",
        ),
        "the difference is an output": (
            model(f"f = Cast<to = 1>(c) {FILLED}", H.replace("] y", "] y, float[a, b] s")),
            "used elsewhere",
        ),
        "two minus": (
            model(f"f = Cast<to = 1>(c) {FILLED.replace('one', 'two')}"),
            "cannot be the constant 1",
        ),
        "one has more dimensions": (
            model(
                f"f = Cast<to = 1>(c) {FILLED.replace('one', 'wide')}",
                H.replace("bool[a, b]", "bool[b]").replace("[a, b] y", "[1, 1, b] y"),
                f"{C}, float[1, 1, 1] wide = {{1}}",
            ),
            "shape",
        ),
    },
    "WhereBool": {
        "another type": (
            model("w = Where(c, zero, big) i = Cast<to = 6>(w) y = Cast<to = 9>(i)", B),
            "no Where before|not a boolean",
        ),
        "not a boolean": (
            model("w = Where(c, zero, big) y = Cast<to = 11>(w)", H.replace("float", "double")),
            "not a boolean",
        ),
        "the same": (model("w = Where(c, two, big) y = Cast<to = 9>(w)", B), "are the same"),
        "the same order": (model("w = Where(c, two, one) y = Less(w, zero)", B), "are the same"),
        "a result": (
            model(
                "w = Where(c, f, zero) y = Less(w, one)",
                "g (bool[a, b] c, float f) => (bool[a, b] y)",
            ),
            "a number is not known",
        ),
        "compared to a result": (
            model(
                "w = Where(c, zero, one) y = Less(w, f)",
                "g (bool[a, b] c, float f) => (bool[a, b] y)",
            ),
            "a number is not known",
        ),
        "broader": (
            model(
                "w = Where(c, zero, one) y = Less(w, wide)",
                B.replace("bool[a, b] y", "bool[1, a, b] y"),
                NUMBERS,
            ),
            "a number is not known",
        ),
    },
    "WhereAdd": {
        "half": (
            model(
                "x = Cast<to = 10>(k) w = Where(c, h, i) y = Add(x, w)",
                ADD.replace("float[a, b] y", "float16[a, b] y"),
                f"{INFINITE}, float16 h = {{0}}, float16 i = {{64512}}",
            ),
            "not float nor double",
        ),
        "infinities": (  # inf - inf is not a number
            model(
                f"{MINUS} w = Where(c, zero, o) y = Add(k, w)",
                ADD.replace("int64", "float"),
                INFINITE,
            ),
            "infinities and NaN are possible",
        ),
        "a cast from double": (
            model(
                f"{MINUS} x = Cast<to = 1>(k) w = Where(c, zero, o) y = Add(x, w)",
                ADD.replace("int64", "double"),
                INFINITE,
            ),
            "infinities and NaN are possible",
        ),
        "a finite number": (
            model("x = Cast<to = 1>(k) w = Where(c, zero, huge) y = Add(x, w)", ADD, INFINITE),
            "cannot be the constant",
        ),
        "the mask is an output": (
            model(
                f"{MINUS} x = Cast<to = 1>(k) w = Where(c, zero, o) y = Add(x, w)",
                ADD.replace("] y", "] y, float[a, b] w"),
                INFINITE,
            ),
            "used elsewhere",
        ),
    },
    "WhereCast": {
        "exchanged": (model("y = Where(c, zero, one)"), "cannot be the constant"),
        "another number": (model("y = Where(c, two, zero)"), "cannot be the constant 1"),
        "half": (
            model(
                "y = Where(c, o, z)",
                H.replace("float", "float16"),
                "float16 o = {15360}, float16 z = {0}",
            ),
            "not float, double, int32 nor int64",
        ),
        "booleans": (
            model("y = Where(c, o, z)", B, "bool o = {1}, bool z = {0}"),
            "not float, double, int32 nor int64",
        ),
        "wider": (
            model(
                "y = Where(c, o, zero)",
                H.replace("float[a, b]", "float[1, a, b]"),
                f"{C}, float[1, 1, 1] o = {{1}}",
            ),
            "may change the shape",
        ),
    },
    "CastCompare": {
        "not a boolean": (
            model("f = Cast<to = 1>(c) y = Equal(f, one)", B.replace("bool[a, b] c", "int64[a] c")),
            "what is cast is not a boolean",
        ),
        "another number": (
            model("f = Cast<to = 1>(c) y = Equal(f, two)", B),
            "cannot be the constant",
        ),
        "always": (model("f = Cast<to = 1>(c) y = Less(f, zero)", B), "cannot be the constant"),
        "no cast": (
            "g (float[a] x) => (bool[a] y) <float one = {1}> { y = Equal(x, one) }",
            "no Cast before",
        ),
    },
    "NotCompare": {
        "floats": (
            f"{INTS} {{ e = Less(x, z) y = Not(e) }}".replace("int64", "float"),
            "not int32 nor int64",
        ),
        "an output": (
            f"{INTS} {{ e = Less(x, z) y = Not(e) }}".replace("] y", "] y, bool[a, b] e"),
            "used elsewhere",
        ),
        "Equal": (f"{INTS} {{ e = Equal(x, z) y = Not(e) }}", "no "),
    },
    "SubCastMul": {
        "half": (
            model(
                "f = Cast<to = 10>(c) s = Sub(o, f) y = Mul(s, h)",
                H.replace("float", "float16"),
                "float16 o = {15360}, float16 h = {16384}",
            ),
            "not float, double, int32 nor int64",
        ),
        "not a boolean": (
            model(
                "f = Cast<to = 1>(c) s = Sub(one, f) y = Mul(s, big)", H.replace("bool", "int64")
            ),
            "what is cast is not a boolean",
        ),
        "infinity": (  # 0 * inf is not a number
            model(
                "v = Mul(big, two) f = Cast<to = 1>(c) s = Sub(one, f) y = Mul(s, v)",
                constants=C.replace("[1]", "").replace("{2}", "{20}"),
            ),
            "not finite",
        ),
        "an input": (
            model(
                "f = Cast<to = 1>(c) s = Sub(one, f) y = Mul(s, v)",
                H.replace("c)", "c, float v)", 1),
            ),
            "value is not a scalar constant",
        ),
        "two minus": (
            model("f = Cast<to = 1>(c) s = Sub(two, f) y = Mul(s, big)"),
            "cannot be the constant 1",
        ),
        "the difference is an output": (
            model(
                "f = Cast<to = 1>(c) s = Sub(one, f) y = Mul(s, big)",
                H.replace("] y", "] y, float[a, b] s"),
            ),
            "used elsewhere",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def check_complement(
    sizes: tuple[int, int], values: list[float], source: str, to: int, value: float
) -> None:
    """Masks of any number, the infinities and NaN of a float included, before any conversion."""
    elem_type = {1: "float", 6: "int32", 7: "int64", 11: "double"}[to]
    header = f"g ({source}[a, b] k) => ({elem_type}[a, b] y, bool[a, b] w)"
    body = (
        f"f = Cast<to = {to}>(k) s = Sub(o, f) n = Cast<to = 9>(s) y = Where(n, v, s)"
        " t = Sub(o, f) w = Cast<to = 9>(t)"
    )
    v = f"{value!r}" if to in (1, 11) else str(int(value))
    before = model_from_text(model(body, header, f"{elem_type} o = {{1}}, {elem_type} v = {{{v}}}"))
    dtype = {"bool": bool, "float": np.float32}.get(source, source)
    with np.errstate(all="ignore"):
        mask = np.resize(np.array(values), sizes).astype(dtype)
    options = OptimizationOptions(patterns="default", verifies=True)
    after = GraphBuilder(before, optimization_options=options).to_onnx()
    expected = run_onnxruntime(before, {"k": mask})
    assert_same_outputs(expected, run_onnxruntime(after, {"k": mask}), 0, 0, str(mask))


COMPLEMENTS = given(
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    values=st.lists(
        st.sampled_from([0.0, 1.0, -1.0, 2.0, 257.0, 2.0**32 + 1, 2.0**53, 0.5, -0.0, 1e-40, 1e38]),
        min_size=1,
        max_size=9,
    ),
    source=st.sampled_from(["bool", "int8", "uint8", "int32", "int64", "float"]),
    to=st.sampled_from([1, 6, 7, 11]),
    value=st.floats(-1e9, 1e9, width=32),
)
test_any_complement = settings(max_examples=40, deadline=None)(COMPLEMENTS(check_complement))
test_many_complements = pytest.mark.slow(
    settings(max_examples=2000, deadline=None)(COMPLEMENTS(check_complement))
)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.0, 0.0, 1e-45])
def test_complement_of_any_float(value: float) -> None:
    before = model_from_text(model(FILLED, H.replace("bool[a, b] c", "float[a, b] f")))
    after = GraphBuilder(before).to_onnx()
    assert [node.op_type for node in after.graph.node] == ["Equal", "Where"]
    feeds = {"f": np.full((2, 3), value, dtype=np.float32)}
    assert_same_outputs(run_onnxruntime(before, feeds), run_onnxruntime(after, feeds), 0, 0, "")


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    value=st.floats(-(2.0**100), 2.0**100, width=32),
    elem_type=st.sampled_from(["float", "double"]),
)
@pytest.mark.parametrize("case", ["where", "mask"])
def test_any_value(case: str, sizes: tuple[int, int], value: float, elem_type: str) -> None:
    """Empty masks, dimensions 1, any number."""
    to = {"float": 1, "double": 11}[elem_type]
    body = f"f = Cast<to = {to}>(c) s = Sub(one, f) y = Mul(s, v)"
    if case == "where":
        body = "w = Where(c, one, zero) y = Mul(w, v)"
    text = model(
        body,
        H.replace("float", elem_type),
        f"{elem_type} one = {{1}}, {elem_type} zero = {{0}}, {elem_type} v = {{{value!r}}}",
    )
    pattern = "WhereCast" if case == "where" else "SubCastMul"
    check_pattern(text, None, pattern, sizes={"a": sizes[0], "b": sizes[1]})
