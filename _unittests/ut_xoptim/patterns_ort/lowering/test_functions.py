"""The functions that define operators are written where onnxruntime ignores them."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest

from xbuilder.operators.opsets import newest_opset
from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

SWISH = "g (float[a, 4] x) => (float[a, 4] y) { y = Swish<alpha = 1.5>(x) }"
SWIGLU = "g (float[a, 4] x, float[a, 4] z) => (float[a, 4] y) { y = SwiGLU(x, z) }"
WRITTEN = """c = Constant<value_float = 1.5>() k = CastLike(c, x) m = Mul(k, x) s = Sigmoid(m)
    y = Mul(x, s)"""
BRAIN = "g (bfloat16[a, 4] x) => (bfloat16[a, 4] y) { y = Relu(x) }"
#: name -> (before, after)
MODELS = {
    "MissingFunction": {
        "Swish": (SWISH, f"g (float[a, 4] x) => (float[a, 4] y) {{ {WRITTEN} }}"),
        "a function that calls another one": (
            SWIGLU,
            f"""g (float[a, 4] x, float[a, 4] z) => (float[a, 4] y) {{
                {WRITTEN.replace("1.5", "1.0").replace("y =", "w =")} y = Mul(w, z) }}""",
        ),
        "float16": (
            SWISH.replace("float[", "float16["),
            f"g (float16[a, 4] x) => (float16[a, 4] y) {{ {WRITTEN} }}",
            {"atol": 1e-2},
        ),
    },
}
REFUSED = {
    "MissingFunction": {
        "at the opset of the function": (SWISH, "onnxruntime loads the operator", {"opset": 24}),
        "a kernel": (SWISH.replace("Swish<alpha = 1.5>", "Relu"), "onnxruntime loads"),
        "expanded by onnxruntime": (SWISH.replace("Swish<alpha = 1.5>", "HardSwish"), "loads"),
        "CUDA": (SWISH, "another processor may", {"processor": "CUDA"}),
        "CPU and CUDA": (SWISH, "another processor may", {"processor": "CPU,CUDA"}),
        "no kernel in bfloat16": (
            SWISH.replace("Swish<alpha = 1.5>", "Gelu").replace("float[", "bfloat16["),
            "does not load the function either",
        ),
        "random": (SWISH.replace("Swish<alpha = 1.5>", "Bernoulli"), "does not load the function"),
    }
}
# the models before do not load
test_rewrites = rewrite_tests(MODELS, opset=28, atol=1e-6, runtime=False)
test_refuses = refusal_tests(REFUSED, opset=28)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("g (double[a, b] x, double[c, d] z) => (double[u, v] y) { y = SwiGLU(x, z) }", "Sigmoid"),
        ("g (double[a, b] x, double[c, d] z) => (double[u, v] y) { y = PRelu(x, z) }", "Where"),
        (
            """g (double[a, b, s] x, double[c] z, double[d] k) => (double[u, v, w] y) {
            y = InstanceNormalization(x, z, k) }""",
            "ReduceMean",
        ),
    ],
)
def test_sizes_with_unrelated_names(text: str, kernel: str) -> None:
    """The operator only runs if they are equal."""
    sizes = {"a": 2, "b": 2, "c": 2, "d": 2, "s": 3}
    check_pattern(text, None, "MissingFunction", 28, 1e-12, sizes=sizes, runtime=False)
    found, _, _ = optimize_with(model_from_text(text, 28), "MissingFunction")
    assert kernel in {node.op_type for node in found.graph.node}


@pytest.mark.parametrize("opset", range(25, newest_opset() + 1))
def test_loads_at_every_opset(opset: int) -> None:
    """The model does not load, the optimized one does; with the sets, one operator is left."""
    model = model_from_text(SWISH, opset)
    with pytest.raises(Exception, match="Could not find an implementation for Swish"):
        run_onnxruntime(model, {"x": np.ones((2, 4), np.float32)})
    check_pattern(SWISH, None, "MissingFunction", opset=opset, atol=1e-6, runtime=False)
    x = np.array([[0, -1, 2, 80]], np.float32)
    for patterns in ("MissingFunction", "default+onnxruntime"):
        found, _, _ = optimize_with(model, patterns)
        (got,) = run_onnxruntime(found, {"x": x})
        np.testing.assert_allclose(got, x / (1 + np.exp(-1.5 * x)), rtol=1e-6)


def test_a_result_without_kernel() -> None:
    text = "g (float[a] x, float4e2m1[a] z) => (float4e2m1[a] y) { y = CastLike(x, z) }"
    reason = "onnxruntime does not load the function either"
    check_no_match(text, "MissingFunction", reason, opset=28)


def test_function_of_a_function() -> None:
    """HardSwish in double calls HardSigmoid, which has no kernel either."""
    text = SWISH.replace("Swish<alpha = 1.5>", "HardSwish").replace("float[", "double[")
    found, _, _ = optimize_with(model_from_text(text, 28), "MissingFunction")
    x = np.array([[-4, -1, 2, 80]], np.float64)
    (got,) = run_onnxruntime(found, {"x": x})
    np.testing.assert_allclose(got, x * np.clip(x / 6 + 0.5, 0, 1), rtol=1e-6)


def test_missing_operand() -> None:
    """The bounds of Clip: the function depends on those the node has."""
    text = "g (bfloat16[a] x, bfloat16 low) => (bfloat16[a] y) { y = Clip(x, low) }"
    found, _, _ = optimize_with(model_from_text(text, 28), "MissingFunction")
    types = [n.op_type for n in found.graph.node]
    assert "Clip" in types or "Where" in types
    check_no_match(
        text.replace("bfloat16", "float"), "MissingFunction", "onnxruntime loads", opset=28
    )


def test_in_a_body() -> None:
    """A branch that no session could load."""
    text = """g (float[a] x, bool c) => (float[a] y) { y = If(c) <
        then_branch = t () => (float[a] u) { u = Swish(x) },
        else_branch = e () => (float[a] v) { v = Neg(x) } > }"""
    model = model_from_text(text, 28)
    found, _, _ = optimize_with(model, "MissingFunction")
    x = np.array([1, -2], np.float32)
    for c in (True, False):
        (got,) = run_onnxruntime(found, {"x": x, "c": np.array(c)})
        np.testing.assert_allclose(got, x / (1 + np.exp(-x)) if c else -x, rtol=1e-6)


def test_unknown_type() -> None:
    model = model_from_text(SWISH, 28)
    model.graph.node.insert(0, oh.make_node("Any", ["x"], ["z"], domain="any"))
    model.opset_import.append(oh.make_opsetid("any", 1))
    model.graph.node[1].input[0] = "z"
    check_no_match(model, "MissingFunction", "type")
