"""A pattern of a user writes what the processor runs."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xoptim.testing import model_from_text

TEXT = "agraph (float[4] X) => (float[4] Y) { n = Neg(X) Y = Neg(n) }"
#: the type of the input is not known
UNKNOWN = "agraph (float[4] X) => (float[4] Y) { z = custom.Any(X) n = Neg(z) Y = Neg(n) }"


def written(
    op_type: str,
    processor: str = "CPU",
    text: str | onnx.ModelProto = TEXT,
    domain: str = "com.microsoft",
    **kwargs: Any,
) -> list[str]:
    """Two Neg become one node of another operator: the operators of the model after it."""

    class Maker(NegNeg):
        def apply(self, g: Any, first: onnx.NodeProto, second: onnx.NodeProto) -> Any:
            return [g.make_node(op_type, [first.input[0]], [second.output[0]], domain=domain)]

    options = OptimizationOptions(patterns=[Maker()], processor=processor, **kwargs)
    model = model_from_text(text) if isinstance(text, str) else text
    builder = GraphBuilder(model, optimization_options=options)
    return [n.op_type for n in builder.to_onnx().graph.node]


@pytest.mark.parametrize(
    ("op_type", "processor", "text", "reason"),
    [
        ("Gelu", "CPU", TEXT.replace("float[", "double["), r"on CPU for the types .* \(double\)"),
        (
            "FusedGemm",
            "CPU,CUDA",
            TEXT.replace("float[", "float16["),
            r"on CPU for .* \(float16\), 'xoptim kern",
        ),
        ("Gelu", "CUDA", TEXT.replace("float[", "int64["), r"on CUDA for the types .* \(int64\)"),
        ("ComplexMul", "CPU", TEXT, "on CPU for this operator of domain 'com.microsoft'"),
        ("Nothing", "CUDA,CPU", TEXT, "on CPU for this operator of domain 'com.microsoft'"),
    ],
)
def test_refused(op_type: str, processor: str, text: str, reason: str) -> None:
    with pytest.raises(PatternError, match=f"(?s)Pattern Maker makes {op_type}.* kernel {reason}"):
        written(op_type, processor, text)


def test_operator_of_onnxruntime_in_the_main_domain() -> None:
    text = TEXT.replace("float[", "int32[")
    with pytest.raises(PatternError, match="'xoptim kernels --op SimplifiedLayerNorm"):
        written("SimplifiedLayerNormalization", text=text, domain="")


@pytest.mark.parametrize(
    ("op_type", "processor", "text"),
    [
        ("Gelu", "CPU", TEXT),
        ("Gelu", "CUDA", TEXT.replace("float[", "float16[")),
        ("Gelu", "CPU,CUDA", TEXT),
        ("Nothing", "CUDA", TEXT),
        ("ComplexMul", "CPU", UNKNOWN),
    ],
)
def test_accepted(op_type: str, processor: str, text: str) -> None:
    """The kernels of CUDA are not all known; a type may not be known."""
    assert op_type in written(op_type, processor, text)


def test_a_type_onnx_does_not_have() -> None:
    """Nothing is said: the fault is in the model."""
    model = model_from_text(TEXT)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = 255
    assert written("Gelu", text=model) == ["Gelu"]


def test_domains_of_others() -> None:
    assert written("ComplexMul", domain="custom") == ["ComplexMul"]


def test_standard_operators() -> None:
    """Another runtime may have what onnxruntime has not."""
    text = TEXT.replace("float[", "bfloat16[")
    assert written("Erf", text=text, domain="") == ["Erf"]


def test_what_the_model_already_does() -> None:
    text = "agraph (float[4] X) => (float[4] Y) { c = com.microsoft.ComplexMul(X, X) n = Neg(c) Y = Neg(n) }"
    assert written("ComplexMul", text=text) == ["ComplexMul", "ComplexMul"]


def test_without_checks() -> None:
    assert written("ComplexMul", checks=False) == ["ComplexMul"]
