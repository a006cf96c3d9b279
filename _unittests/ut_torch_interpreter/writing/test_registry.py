"""The registry of converters, the types, the symbols."""

from __future__ import annotations

import inspect
import operator

import pytest
import torch
from onnx import TensorProto

from torch_interpreter.common.types import (
    default_float,
    is_float,
    is_integer,
    promote,
    to_numpy_type,
    to_onnx_type,
    to_torch_type,
)
from torch_interpreter.writing.registry import (
    _CONVERTERS,
    OutputFacts,
    aten,
    aten_table,
    call_converter,
    curried,
    find_converter,
    registered_names,
)

#: operators that older versions of torch have, and the first one without them
REMOVED = {"aten.cholesky.default": (2, 15)}


def test_duplicates_are_refused():
    with pytest.raises(ValueError, match=r"'aten.add.Tensor' already has the converter"):
        aten("aten.add.Tensor")(lambda g: None)


def test_names():
    names = registered_names()
    assert len(names) > 300 and names == sorted(names)
    assert find_converter("aten.add.Tensor") is not None
    assert find_converter("aten.unknown.default") is None


def test_registered_aten_operators_exist():
    """A typo in a name would hide a converter."""
    unknown = []
    for name in registered_names():
        namespace, *rest = name.split(".")
        if namespace not in ("aten", "prims"):
            continue
        packet = getattr(getattr(torch.ops, namespace), rest[0], None)
        if packet is None or rest[1] not in packet.overloads():
            unknown.append(name)
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    assert unknown == [name for name, first in REMOVED.items() if version >= first]


def test_converters_are_functions_of_their_operands():
    for name in registered_names():
        parameters = list(inspect.signature(find_converter(name)).parameters)
        assert parameters[0] == "g", name
        assert not {"sts", "outputs"} & set(parameters), name


def test_output_facts():
    facts = OutputFacts([1, 7], [(2, "a"), None])
    assert facts and facts.type == 1 and facts.shape == (2, "a") and facts.count == 2
    assert OutputFacts().type == 0 and OutputFacts().shape is None and OutputFacts().count == 0


def test_output_facts_know_which_outputs_are_read():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    both = graph.call_function(torch.ops.aten.max.dim, (x, 0))
    graph.output(graph.call_function(operator.getitem, (both, 0)))
    facts = OutputFacts([1, 7], [(2,), (2,)], both)
    assert facts.is_used(0) and not facts.is_used(1) and not OutputFacts().is_used(0)


def test_only_the_converters_that_ask_get_what_torch_knows():
    def plain(g, x):
        return x

    def curious(g, x, *, expected):
        return expected.type

    facts = OutputFacts([7], [(2,)])
    assert call_converter(plain, None, facts, ["x"], {}) == "x"
    assert call_converter(curious, None, facts, ["x"], {}) == 7


def test_table():
    table = {"registry_one": "One", "registry_two": "Two"}
    aten_table(lambda row: lambda g: row, table, "test.{}.a", "test.{}.b")
    try:
        assert find_converter("test.registry_one.b")(None) == "One"
        assert find_converter("test.registry_two.a")(None) == "Two"
    finally:
        for name in [n for n in registered_names() if n.startswith("test.registry_")]:
            del _CONVERTERS[name]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.bool, torch.uint8, torch.complex64]
)
def test_types_go_both_ways(dtype):
    assert to_torch_type(to_onnx_type(dtype)) is dtype


def test_python_types():
    assert to_onnx_type(int) == TensorProto.INT64
    assert to_onnx_type(float) == TensorProto.FLOAT == default_float()
    assert to_onnx_type(bool) == TensorProto.BOOL
    assert to_numpy_type(TensorProto.BFLOAT16).name == "bfloat16"
    with pytest.raises(TypeError, match="ONNX has no element type"):
        to_onnx_type(torch.quint8)


def test_kinds():
    assert is_float(TensorProto.FLOAT16) and not is_float(TensorProto.INT64)
    assert is_integer(TensorProto.UINT8) and not is_integer(TensorProto.BOOL)
    assert not is_integer(TensorProto.COMPLEX64)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        (((TensorProto.INT64, 2), 1.5), TensorProto.FLOAT),
        (((TensorProto.FLOAT16, 2), 1.5), TensorProto.FLOAT16),
        (((TensorProto.FLOAT16, 2), (TensorProto.FLOAT, 0)), TensorProto.FLOAT16),
        (((TensorProto.FLOAT16, 1), (TensorProto.FLOAT, 1)), TensorProto.FLOAT),
        (((TensorProto.BOOL, 1), 1), TensorProto.INT64),
        (((TensorProto.INT32, 1), (TensorProto.INT64, 0)), TensorProto.INT32),
        ((1, 2.5), TensorProto.FLOAT),
        ((True,), TensorProto.BOOL),
        (((TensorProto.DOUBLE, 3),), TensorProto.DOUBLE),
    ],
)
def test_promotion(operands, expected):
    assert promote(*operands) == expected


def test_a_curried_function_makes_converters():
    @curried
    def scaled(factor, g, x, *, by=1):
        """x times a factor."""
        return g, x * factor * by

    double = scaled(2)
    assert double("g", 3) == ("g", 6) and scaled(3)("g", 3, by=2) == ("g", 18)
    assert (double.__name__, double.__doc__) == ("scaled", "x times a factor.")
    assert list(inspect.signature(double).parameters) == ["g", "x", "by"]
