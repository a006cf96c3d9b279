"""Operators that runtimes compute with a kernel of their own on CPU."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from onnx import TensorProto

import xoptim
from xoptim import get_pattern, get_pattern_list
from xoptim.analysis.kernels import is_faster_as_image, require_cpu_kernel
from xoptim.authoring import Refusal, RewriteContext
from xoptim.testing import check_no_match, check_pattern, optimizer_of

FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
MODEL = "g (float[a] x) => (float[a] y) { y = Neg(x) }"


@pytest.mark.parametrize(
    ("op_type", "kind", "opset", "accepted"),
    [
        ("Gelu", FLOAT, 20, True),
        ("Gelu", HALF, 20, False),
        ("Gelu", DOUBLE, 20, False),
        ("Relu", HALF, 17, True),
        ("Relu", HALF, 18, False),
        ("Relu", HALF, 19, True),
        ("Attention", FLOAT, 24, True),
        ("Attention", FLOAT, 25, False),
        ("Swish", FLOAT, 24, False),
        ("Relu", 0, 18, False),
    ],
)
def test_cpu(op_type: str, kind: int, opset: int, accepted: bool) -> None:
    for processor, refuses in (("CPU", not accepted), ("CPU,CUDA", not accepted), ("CUDA", False)):
        g = RewriteContext(optimizer_of(MODEL, None, opset, processor=processor))
        if refuses:
            with pytest.raises(Refusal):
                require_cpu_kernel(g, op_type, kind)
        else:
            require_cpu_kernel(g, op_type, kind)


@pytest.mark.parametrize(
    ("shape", "group", "faster"),
    [
        ((16, 128, 5), 1, True),
        ((16, 16, 4), 1, False),
        ((16, 144, 5), 1, False),
        ((16, 8, 5), 1, False),
        ((16, 0, 5), 1, False),
        ((16, 16, 5), 2, False),
        ((32, 16, 3), 2, True),
        ((768, 48, 128), 16, True),
        ((64, 16, 5), 8, False),
        ((128, 8, 5), 8, False),
        ((64, 16, 2), 4, False),
        ((512, 256, 3), 2, False),
        ((16, 16, 5, 5), 1, False),
        ((48, 128, 3), 1, True),
        ((32, 128, 3), 1, False),
        ((48, 48, 2), 1, False),
        ((60, 1, 4), 60, True),
        ((16, 1, 1), 16, True),
        ((8, 1, 4), 8, False),
        ((32, 1, 4), 16, False),
        ((32, 2, 4), 16, False),
    ],
)
def test_faster_as_image(shape: tuple[int, ...], group: int, faster: bool) -> None:
    assert is_faster_as_image(shape, group) == faster


@pytest.mark.parametrize(
    ("shape", "group", "faster"),
    [
        ((64, 64, 4), 1, True),
        ((64, 1, 3), 64, True),
        ((64, 64, 2), 1, False),
        ((32, 1, 9), 1, False),
        ((16, 16, 3, 3), 1, False),
    ],
)
def test_transposed_and_faster_as_image(shape: tuple[int, ...], group: int, faster: bool) -> None:
    assert is_faster_as_image(shape, group, transposed=True) == faster


SLOWER = {
    "GathersSplit": """g (float[2, 9] x) => (float[9] y, float[9] z) <int64 i = {0}, int64 j = {1}> {
        y = Gather(x, i) z = Gather(x, j) }""",
    "ParametricReluParts": "g (float[a, 9] x) => (float[a, 9] y) <float[1] s = {0.5}> { y = PRelu(x, s) }",
    "ReduceReduce": """g (float[a, 2, 3, b] x) => (float[a, b] y) <int64[1] i = {1}> {
        n = ReduceSum<keepdims=0>(x, i) y = ReduceSum<keepdims=0>(n, i) }""",
    "OrtLRN": "g (float[1, 3, 4, 4] x) => (float[1, 3, 4, 4] y) { y = LRN<size = 3>(x) }",
    "LayerNormalization": """g (float[a, 5, 2] x) => (float[a, 5, 2] y)
        <float c = {2}, float e = {0.001}, int64[1] i = {1}> {
        m = ReduceMean(x, i) d = Sub(x, m) s = Pow(d, c) v = ReduceMean(s, i) w = Add(v, e)
        r = Sqrt(w) y = Div(d, r) }""",
}  # fmt: skip


@pytest.mark.parametrize("name", SLOWER)
def test_a_pattern_asked_for_applies_even_where_it_is_slower(name: str) -> None:
    check_no_match(SLOWER[name], name, "even_slower=True applies it")
    check_pattern(SLOWER[name], None, f"{name}(even_slower=True)", atol=1e-5)


def test_the_option_is_shown() -> None:
    for name in ("GathersSplit", "LayerNormalization", "MultiHeadAttention3D"):
        assert repr(get_pattern_list(f"{name}(even_slower=True)")[0]).endswith("(even_slower=True)")
        assert repr(get_pattern(name)).endswith("()")
    both = get_pattern_list("MultiHeadAttention3D(with_mask=True, even_slower=True)")[0]
    assert repr(both) == "MultiHeadAttention3DPattern(with_mask=True, even_slower=True)"


def test_every_refusal_for_speed_names_an_option() -> None:
    """The text of `require_fast` names its own."""
    speed, option = re.compile(r"\b(slow|fast)(er|est)?\b"), re.compile(r"=|applies it")
    found = []
    for path in sorted(Path(xoptim.__file__).parent.glob("patterns*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            texts = [t for t in texts if isinstance(t, str) and speed.search(t)]
            found += [f"{path.name}: {t}" for t in texts if not option.search(t)]
    assert found == ["sum_layer_norm.py: SkipLayerNormalization was not measured slower"]
