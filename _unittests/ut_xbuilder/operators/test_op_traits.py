"""The table of traits says what onnx says."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto
from onnx.defs import OpSchema

import xbuilder.operators.op_traits as table
from xbuilder.operators.op_traits import (
    AXES_INPUT_SINCE,
    COMMUTATIVE,
    ELEMENTWISE_BINARY,
    ELEMENTWISE_UNARY,
    KEEPS_TYPE,
    TRAITS,
    OpTraits,
    having,
    is_float_of,
)

LATEST = onnx.defs.onnx_opset_version()
MAIN = sorted(op_type for domain, op_type in TRAITS if not domain)
VARIADIC = OpSchema.FormalParameterOption.Variadic
#: operators on floats whatever their traits
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Neg", "Sigmoid", "Softmax", "MatMul", "Gemm")


def schema(op_type: str, opset: int = LATEST) -> OpSchema:
    return onnx.defs.get_schema(op_type, opset, "")


def types_of(parameter: Any, found: OpSchema) -> set[str]:
    names = next(
        (c.allowed_type_strs for c in found.type_constraints if c.type_param_str == parameter),
        [parameter],
    )
    return set(names)


def accepts(op_type: str, elem_type: int, opset: int) -> bool:
    found = schema(op_type, opset)
    name = TensorProto.DataType.Name(elem_type).lower()
    return f"tensor({name})" in types_of(found.inputs[0].type_str, found)


@pytest.mark.parametrize("op_type", MAIN)
def test_operators_exist(op_type: str) -> None:
    assert onnx.defs.has(op_type, "") and TRAITS["", op_type] != OpTraits()


@pytest.mark.parametrize("op_type", sorted(table.CARRIERS))
def test_results_hold_what_the_first_input_holds(op_type: str) -> None:
    found = schema(op_type)
    result = found.outputs[0].type_str
    assert result == found.inputs[0].type_str
    assert all(i.type_str != result for i in found.inputs[1:])


def test_an_operator_has_one_row() -> None:
    with pytest.raises(ValueError, match="::Add is in two rows"):
        table._table([("", "Add Mul", OpTraits()), ("", "Add", OpTraits())])


@pytest.mark.parametrize("op_type", sorted(COMMUTATIVE))
def test_commutative_operators_take_operands_of_one_type(op_type: str) -> None:
    found = schema(op_type)
    assert len({i.type_str for i in found.inputs}) == 1
    assert len(found.inputs) == 2 or found.inputs[0].option == VARIADIC


@pytest.mark.parametrize("op_type", ELEMENTWISE_BINARY)
def test_binary_operators(op_type: str) -> None:
    found = schema(op_type)
    assert (found.min_input, found.max_input, found.max_output) == (2, 2, 1)
    assert "broadcasting" in found.doc or op_type == "BitShift"
    assert "axis" not in found.attributes and "axes" not in found.attributes


@pytest.mark.parametrize("op_type", sorted(ELEMENTWISE_UNARY))
def test_unary_operators(op_type: str) -> None:
    found = schema(op_type)
    assert found.min_input == found.max_output == 1
    assert found.max_input == (3 if op_type == "Clip" else 1)
    assert "axis" not in found.attributes and "axes" not in found.attributes


@pytest.mark.parametrize("op_type", sorted(KEEPS_TYPE))
def test_results_of_the_type_of_the_first_operand(op_type: str) -> None:
    found = schema(op_type)
    first, result = found.inputs[0].type_str, found.outputs[0].type_str
    assert types_of(first, found) == types_of(result, found)


@pytest.mark.parametrize("op_type", sorted(ELEMENTWISE_UNARY - KEEPS_TYPE))
def test_results_of_another_type(op_type: str) -> None:
    found = schema(op_type)
    assert found.inputs[0].type_str != found.outputs[0].type_str


def test_no_elementwise_operator_of_one_input_is_forgotten() -> None:
    """Those whose only input and output have the same type, without axis: the list is reviewed."""
    others = {"BitCast", "Det", "NonZero", "Size", "Shape"}
    for found in onnx.defs.get_all_schemas():
        if found.domain or found.deprecated or found.max_input != 1 or found.max_output != 1:
            continue
        if "lementwise" in found.doc or "lement-wise" in found.doc:
            assert found.name in ELEMENTWISE_UNARY | others, found.name


@pytest.mark.parametrize("op_type", sorted(AXES_INPUT_SINCE))
def test_opset_in_which_axes_became_an_input(op_type: str) -> None:
    since = AXES_INPUT_SINCE[op_type]
    assert "axes" in schema(op_type, since - 1).attributes
    assert "axes" not in schema(op_type, since).attributes
    assert schema(op_type, since).inputs[1].name == "axes"


def test_every_move_of_axes_is_listed() -> None:
    moved = {
        s.name
        for s in onnx.defs.get_all_schemas()
        if not s.domain and len(s.inputs) > 1 and s.inputs[1].name == "axes"
    }
    assert moved == set(AXES_INPUT_SINCE)


@pytest.mark.parametrize("op_type", sorted(having("reduction")))
def test_reductions(op_type: str) -> None:
    assert "keepdims" in schema(op_type).attributes


def test_every_owner_of_graphs_is_listed() -> None:
    graphs = (OpSchema.AttrType.GRAPH, OpSchema.AttrType.GRAPHS)
    owners = {
        s.name
        for s in onnx.defs.get_all_schemas()
        if not s.domain and any(a.type in graphs for a in s.attributes.values())
    }
    assert owners == table.GRAPH_OWNERS


def test_random_operators_have_a_seed() -> None:
    seeded = {s.name for s in onnx.defs.get_all_schemas() if "seed" in s.attributes}
    assert seeded - {"Dropout"} == table.RANDOM


@pytest.mark.parametrize("op_type", ARITHMETIC)
def test_floats_of_an_opset(op_type: str) -> None:
    for elem_type in table.FLOATS:
        for opset in (7, 12, 13, LATEST):
            assert is_float_of(elem_type, opset) == accepts(op_type, elem_type, opset)
    assert not is_float_of(TensorProto.INT64, LATEST) and not is_float_of(0, LATEST)
