"""Every operator of onnx has a shape function, and the registry does what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
from onnx import defs

import xbuilder.shapes
from xbuilder.errors import OptionError
from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes import (
    get_shape_function,
    register_shape_function,
    registered_operators,
    shape_function,
)

#: operators with subgraphs: the builder goes through them
WITHOUT_FUNCTION = {("", "If"), ("", "Loop"), ("", "Scan"), ("", "SequenceMap")}


def onnx_operators() -> list[tuple[str, str, int]]:
    """`(domain, operator, version)` of every schema, all versions."""
    return sorted(
        (s.domain, s.name, s.since_version)
        for s in defs.get_all_schemas_with_history()
        if not s.deprecated
    )


def test_every_operator_of_onnx() -> None:
    """Every version of every operator."""
    missing = {
        (domain, name, version)
        for domain, name, version in onnx_operators()
        if (domain, name) not in WITHOUT_FUNCTION
        and get_shape_function(domain, name, version) is None
    }
    assert not missing


def test_exceptions_are_operators() -> None:
    """The list of exceptions holds nothing useless."""
    known = {(domain, name) for domain, name, _ in onnx_operators()}
    assert known >= WITHOUT_FUNCTION
    assert not [op for op in WITHOUT_FUNCTION if get_shape_function(*op, 28)]


def test_registered_operators_exist() -> None:
    """No typo in the names of the main domains."""
    known = {(domain, name) for domain, name, _ in onnx_operators()}
    ours = {(domain, name) for domain, name, _ in registered_operators()}
    extra = {op for op in ours - known if op[0] in ("", "ai.onnx.ml")}
    # deprecated operators are still read, the last one is onnxruntime's
    assert extra <= {("", "Upsample"), ("", "Scatter"), ("", "SimplifiedLayerNormalization")}


@pytest.mark.parametrize(
    "op_type",
    [
        "Attention",
        "BiasGelu",
        "DynamicQuantizeMatMul",
        "FastGelu",
        "FusedConv",
        "FusedMatMul",
        "Gelu",
        "GroupQueryAttention",
        "MatMulNBits",
        "MultiHeadAttention",
        "QLinearAdd",
        "QLinearConcat",
        "QuickGelu",
        "RotaryEmbedding",
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
        "SoftmaxGrad",
    ],
)
def test_contrib_operators(op_type: str) -> None:
    """Operators of com.microsoft written by patterns and exporters."""
    assert get_shape_function("com.microsoft", op_type, 1) is not None


def test_registry_picks_the_version() -> None:
    """The highest version not above the opset."""

    def old(ctx: xbuilder.shapes.ShapeContext) -> None:
        return None

    def new(ctx: xbuilder.shapes.ShapeContext) -> None:
        return None

    register_shape_function("TestOp", new, domain="test.versions", since=5)
    register_shape_function("TestOp", old, domain="test.versions", since=2)
    found = [get_shape_function("test.versions", "TestOp", v) for v in (1, 2, 4, 5, 9)]
    assert found == [None, old, old, new, new]


def test_registry_refuses_duplicates() -> None:
    """A function is only replaced on purpose."""

    @shape_function("TestTwice", domain="test.twice")
    def first(ctx: xbuilder.shapes.ShapeContext) -> ResultFacts:
        return ResultFacts(1)

    def second(ctx: xbuilder.shapes.ShapeContext) -> ResultFacts:
        return ResultFacts(2)

    with pytest.raises(OptionError, match=r"already registered for .*test_coverage\..*first"):
        register_shape_function("TestTwice", second, domain="test.twice")
    assert get_shape_function("test.twice", "TestTwice", 1) is first
    register_shape_function("TestTwice", second, domain="test.twice", replace=True)
    assert get_shape_function("test.twice", "TestTwice", 1) is second


def modules() -> list[str]:
    """Names of the modules of the package."""
    return [f"xbuilder.shapes.{m.name}" for m in pkgutil.iter_modules(xbuilder.shapes.__path__)]


@pytest.mark.parametrize("name", modules())
def test_examples_of_docstrings(name: str) -> None:
    """Examples say the truth, public functions are documented."""
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
    undocumented = [
        key
        for key, value in vars(module).items()
        if callable(value)
        and not key.startswith("_")
        and getattr(value, "__module__", "") == name
        and not value.__doc__
    ]
    assert not undocumented
