"""Gelu from Tanh: every writing of the formula, every reason to refuse."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

#: tolerance by type; Gelu is a function of ONNX whose constants are float, whatever the type of x
TYPES = {"float": 1e-5, "float16": 2e-2, "double": 1e-7}


def literal(elem_type: str, value: float) -> str:
    """A constant in ONNX text, where float16 is written as bits."""
    return repr(int(np.float16(value).view(np.uint16)) if elem_type == "float16" else value)


def tanh_gelu(
    elem_type: str = "float",
    slope: float = 0.7978845608028654,
    cubic: float = 0.044715,
    half: float = 0.5,
    body: str = "",
    outputs: str = "",
) -> str:
    """Model with the decomposed formula."""
    body = (
        body
        or """p = Pow(X, three)
    c = Mul(k, p)
    i = Add(X, c)
    u = Mul(s, i)
    t = Tanh(u)
    o = Add(one, t)
    h = Mul(half, X)
    Y = Mul(h, o)"""
    )
    names = {"three": 3, "two": 2, "one": 1, "k": cubic, "s": slope, "half": half}
    constants = ", ".join(
        f"{elem_type} {n} = {{{literal(elem_type, v)}}}" for n, v in names.items()
    )
    return f"""agraph ({elem_type}[a, b] X) => ({elem_type}[a, b] Y{outputs}) <{constants}> {{
    {body}
}}"""


def gelu(elem_type: str = "float") -> str:
    """Model with one Gelu."""
    return f"""agraph ({elem_type}[a, b] X) => ({elem_type}[a, b] Y) {{
    Y = Gelu<approximate = "tanh">(X)
}}"""


#: what the documentation draws: name -> (before, after)
MODELS = {"Gelu": (tanh_gelu(), gelu())}

#: writings of the same formula
BODIES = {
    "x*x*x": "x2 = Mul(X, X) x3 = Mul(x2, X) c = Mul(x3, k) i = Add(c, X) u = Mul(i, s) t = Tanh(u)"
    " o = Add(t, one) h = Mul(X, half) Y = Mul(o, h)",
    "0.5*(x*(1+t))": "p = Pow(X, three) c = Mul(p, k) i = Add(X, c) u = Mul(i, s) t = Tanh(u)"
    " o = Add(t, one) h = Mul(X, o) Y = Mul(h, half)",
    "x*(0.5*(1+t))": "p = Pow(X, three) c = Mul(p, k) i = Add(X, c) u = Mul(i, s) t = Tanh(u)"
    " o = Add(t, one) h = Mul(half, o) Y = Mul(X, h)",
    "(x/2)*(1+t)": "p = Pow(X, three) c = Mul(p, k) i = Add(X, c) u = Mul(i, s) t = Tanh(u)"
    " o = Add(t, one) h = Div(X, two) Y = Mul(h, o)",
    "pow2*x": "p = Pow(X, two) q = Mul(p, X) c = Mul(q, k) i = Add(X, c) u = Mul(i, s) t = Tanh(u)"
    " o = Add(t, one) h = Mul(X, half) Y = Mul(h, o)",
    "x*(1+k*x^2)": "p = Mul(X, X) c = Mul(p, k) j = Add(c, one) i = Mul(j, X) u = Mul(s, i)"
    " t = Tanh(u) o = Add(one, t) h = Mul(X, half) Y = Mul(h, o)",
    "k*x*x*x": "a1 = Mul(k, X) a2 = Mul(a1, X) c = Mul(a2, X) i = Add(X, c) u = Mul(s, i)"
    " t = Tanh(u) o = Add(one, t) h = Mul(X, half) Y = Mul(h, o)",
}


test_rewrites = rewrite_tests(MODELS, opset=20, atol=1e-5)


@pytest.mark.parametrize("name", BODIES)
def test_writings(name: str) -> None:
    check_pattern(tanh_gelu(body=BODIES[name]), gelu(), "Gelu", opset=20, atol=1e-5)


@pytest.mark.parametrize(("elem_type", "atol"), TYPES.items())
def test_types(elem_type: str, atol: float) -> None:
    """Another processor than the CPU may compute double."""
    check_pattern(
        tanh_gelu(elem_type), gelu(elem_type), "Gelu", opset=20, atol=atol, processor="CUDA"
    )


@pytest.mark.parametrize("slope", [0.7978845608, 0.79788456, 0.7978515625, 0.796875])
def test_rounded_slope(slope: float) -> None:
    """Ten digits, eight digits, rounded to float16, rounded to bfloat16: the constant is 1e-3 away
    at most and so is the result."""
    check_pattern(tanh_gelu(slope=slope), gelu(), "Gelu", opset=20, atol=1e-3)


def test_ten_digits_in_double() -> None:
    text = tanh_gelu("double", slope=0.7978845608)
    check_pattern(text, gelu("double"), "Gelu", opset=20, atol=1e-7, processor="CUDA")


def test_float16_constants_in_double() -> None:
    text = tanh_gelu("double", slope=0.7978515625, cubic=0.044708251953125)
    check_pattern(text, gelu("double"), "Gelu", opset=20, atol=1e-4, processor="CUDA")


def test_constants_of_rank_one() -> None:
    text = tanh_gelu().replace("float half", "float[1] half").replace("float s", "float[1] s")
    text = text.replace("float one", "float[1, 1] one")
    check_pattern(text, gelu(), "Gelu", opset=20, atol=1e-5)


def test_extreme_values() -> None:
    values = np.array([[0, -0.0, np.inf, -np.inf, np.nan, 30, -30, 1e-30]], dtype=np.float32)
    text = tanh_gelu().replace("[a, b]", "[1, 8]")
    after = gelu().replace("[a, b]", "[1, 8]")
    check_pattern(text, after, "Gelu", opset=20, atol=1e-5, feeds=[{"X": values}])


def test_a_scaled_gelu() -> None:
    """The product that follows is not part of the formula."""
    body = (
        "p = Pow(X, three) c = Mul(k, p) i = Add(X, c) u = Mul(s, i) t = Tanh(u) o = Add(one, t)"
        " h = Mul(half, X) g = Mul(h, o) Y = Mul(g, two)"
    )
    after = """agraph (float[a, b] X) => (float[a, b] Y) <float two = {2}> {
        g = Gelu<approximate = "tanh">(X)
        Y = Mul(g, two)
    }"""
    check_pattern(tanh_gelu(body=body), after, "Gelu", opset=20, atol=1e-5)


def test_twice_and_shared_input() -> None:
    first = tanh_gelu().split("{\n", 1)[1].rsplit("}", 1)[0]
    second = first
    for name in "pciutoh":
        second = second.replace(f"{name} =", f"{name}2 =").replace(f" {name})", f" {name}2)")
        second = second.replace(f"({name},", f"({name}2,").replace(f"({name})", f"({name}2)")
    body = first.replace("Y =", "A =") + second.replace("Y =", "B =") + "\n Y = Sub(A, B)"
    after = """agraph (float[a, b] X) => (float[a, b] Y) {
        A = Gelu<approximate = "tanh">(X)
        B = Gelu<approximate = "tanh">(X)
        Y = Sub(A, B)
    }"""
    check_pattern(tanh_gelu(body=body), after, "Gelu", opset=20, atol=1e-5)


ERF_BODIES = {
    "divided": "v = Div(X, root) e = Erf(v) o = Add(e, one) h = Mul(X, o) Y = Mul(h, half)",
    "multiplied": "v = Mul(inverse, X) e = Erf(v) o = Add(one, e) h = Mul(half, X) Y = Mul(o, h)",
    "half of the sum": "v = Div(X, root) e = Erf(v) o = Add(e, one) h = Mul(o, half) Y = Mul(X, h)",
    "halved": "v = Div(X, root) e = Erf(v) o = Add(e, one) h = Div(X, two) Y = Mul(h, o)",
    "half inside": "v = Div(X, root) e = Erf(v) h = Mul(e, half) o = Add(half, h) Y = Mul(o, X)",
    "X inside": "v = Div(X, root) e = Erf(v) h = Mul(e, X) o = Add(X, h) Y = Mul(half, o)",
}


def erf_gelu(body: str, elem_type: str = "float", root: float = 2**0.5, outputs: str = "") -> str:
    """Model with the formula with Erf."""
    names = {"root": root, "inverse": 1 / root, "one": 1, "half": 0.5, "two": 2}
    rows = ", ".join(f"{elem_type} {n} = {{{literal(elem_type, v)}}}" for n, v in names.items())
    return f"""agraph ({elem_type}[a, b] X) => ({elem_type}[a, b] Y{outputs}) <{rows}> {{
    {body}
}}"""


def exact_gelu(elem_type: str = "float") -> str:
    """Model with one Gelu, the one with Erf."""
    return f"agraph ({elem_type}[a, b] X) => ({elem_type}[a, b] Y) {{ Y = Gelu(X) }}"


@pytest.mark.parametrize("name", ERF_BODIES)
def test_writings_with_erf(name: str) -> None:
    check_pattern(erf_gelu(ERF_BODIES[name]), exact_gelu(), "Gelu", opset=20, atol=1e-5)


@pytest.mark.parametrize("elem_type", ["float", "float16", "double"])
@pytest.mark.parametrize("name", ERF_BODIES)
def test_types_with_erf(name: str, elem_type: str) -> None:
    """onnxruntime has no kernel of Erf for double."""
    text, after = erf_gelu(ERF_BODIES[name], elem_type), exact_gelu(elem_type)
    run = elem_type != "double"
    options = {"atol": TYPES[elem_type], "runtime": run, "processor": "CUDA"}
    check_pattern(text, after, "Gelu", opset=20, **options)


@pytest.mark.parametrize("root", [1.4142135623, 1.41421356, 1.4140625, 1.4142135623730951])
def test_rounded_root(root: float) -> None:
    text = erf_gelu(ERF_BODIES["divided"], root=root)
    check_pattern(text, exact_gelu(), "Gelu", opset=20, atol=1e-3)


@pytest.mark.parametrize("name", ERF_BODIES)
def test_extreme_values_with_erf(name: str) -> None:
    """Infinities and NaN, empty tensors."""
    values = np.array([[0, -0.0, np.inf, -np.inf, np.nan, 30, -30, 1e-30]], dtype=np.float32)
    feeds = [{"X": values}, {"X": values[:0]}, {"X": values[:, :1]}]
    check_pattern(
        erf_gelu(ERF_BODIES[name]), exact_gelu(), "Gelu", opset=20, atol=1e-5, feeds=feeds
    )


REFUSED = {
    "root": (erf_gelu(ERF_BODIES["divided"], root=1.5), "argument of Erf"),
    "erf is an output": (
        erf_gelu(ERF_BODIES["divided"], outputs=", float[a, b] e"),
        "used elsewhere|cannot be",
    ),
    "erf of another result": (
        erf_gelu(
            ERF_BODIES["divided"]
            .replace("Div(X, root)", "w = Abs(X) v = Div(w, root)")
            .replace("v = w =", "w =")
        ),
        "cannot be",
    ),
    "slope": (tanh_gelu(slope=0.8), "argument of Tanh"),
    "slope of four digits": (tanh_gelu(slope=0.7979), "argument of Tanh"),
    "cubic": (tanh_gelu(cubic=0.05), "factor 0.044715 is missing"),
    "half": (tanh_gelu(half=0.51), "0.5 is missing"),
    "tanh is an output": (tanh_gelu(outputs=", float[a, b] t"), "used elsewhere"),
    "sum is an output": (tanh_gelu(outputs=", float[a, b] o"), "used elsewhere"),
    "product is an output": (tanh_gelu(outputs=", float[a, b] u"), "argument|used elsewhere"),
    "graph input": (
        "agraph (float[a] X, float[a] Z) => (float[a] Y) { Y = Mul(X, Z) }",
        "0.5 is missing",
    ),
    "square": ("agraph (float[a] X) => (float[a] Y) { Y = Mul(X, X) }", "0.5 is missing"),
    "power of 2": (tanh_gelu().replace("Pow(X, three)", "Pow(X, two)"), "the power 3 of 'X'"),
    "power of another result": (
        tanh_gelu()
        .replace("Pow(X, three)", "Pow(Z, three)")
        .replace("[a, b] X", "[a, b] X, float[a, b] Z"),
        "the power 3 of 'X'",
    ),
    "another x": (
        tanh_gelu()
        .replace("Mul(half, X)", "Mul(half, Z)")
        .replace("[a, b] X", "[a, b] X, float[a, b] Z"),
        "'X' cannot be 'x', which is 'Z'",
    ),
    "divided": (tanh_gelu().replace("Mul(half, X)", "Div(half, X)"), "two factors"),
    "erf": (tanh_gelu().replace("Tanh(", "Erf("), "no Tanh before Add, Erf was found"),
    "2 + tanh": (tanh_gelu().replace("Add(one", "Add(two"), "cannot be the constant 1"),
    "tanh reads an input": (tanh_gelu().replace("Tanh(u)", "Tanh(X)"), "no Mul before Tanh"),
}


test_refuses = refusal_tests({"Gelu": REFUSED}, opset=20)


def test_vector_constant_is_refused_on_a_scalar() -> None:
    """x has rank 0, a constant of shape (1,) gives it one dimension."""
    text = tanh_gelu().replace("float[a, b] X", "float X").replace("float[a, b] Y", "float[1] Y")
    check_no_match(
        text.replace("float half", "float[1] half"), "Gelu", "change the shape", opset=20
    )
    check_pattern(
        text.replace("float[1] Y", "float Y"),
        gelu().replace("[a, b]", ""),
        "Gelu",
        opset=20,
        atol=1e-5,
    )


def test_captured_result_is_kept() -> None:
    body = (
        "p = Pow(X, three) c = Mul(k, p) i = Add(X, c) u = Mul(s, i) t = Tanh(u) o = Add(one, t)"
        " h = Mul(half, X) Y = Mul(h, o) C = If(cond) <"
        "then_branch = tg () => (float[a, b] C1) { C1 = Identity(t) },"
        "else_branch = eg () => (float[a, b] C2) { C2 = Identity(X) }>"
    )
    text = tanh_gelu(body=body, outputs=", float[a, b] C").replace(
        "float[a, b] X", "float[a, b] X, bool cond"
    )
    check_no_match(text, "Gelu", "used elsewhere", opset=20)


@pytest.mark.parametrize("text", [tanh_gelu("double"), erf_gelu(ERF_BODIES["divided"], "double")])
def test_double_on_cpu(text: str) -> None:
    """Runtimes compute the function that defines the operator: more nodes."""
    check_no_match(text, "Gelu", "no kernel on CPU", opset=20)


def test_opset() -> None:
    check_no_match(tanh_gelu(), "Gelu", "needs opset 20", opset=19)


def test_overridable_constant() -> None:
    """A constant that is also an input may take another value."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]>\n{tanh_gelu()}')
    model.graph.input.append(onnx.helper.make_tensor_value_info("half", onnx.TensorProto.FLOAT, []))
    check_no_match(model, "Gelu", "0.5 is missing|two factors")
