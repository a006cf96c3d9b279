"""The budget of computing constants: operations are counted, nothing is timed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.constants import budget as B
from xbuilder.constants import growth, table
from xbuilder.tensors.sizes import stored_bytes


@pytest.mark.parametrize(
    "op_type,inputs,written,attributes,expected",
    [
        ("Add", [(4,), (4,)], 4, {}, 12),
        ("Shape", [], 1, {}, 1),
        ("MatMul", [(4, 8), (8, 2)], 8, {}, 56 + 64),
        ("Conv", [(1, 1, 5, 5), (1, 1, 3, 3)], 9, {}, 43 + 25 * 9),
        ("MaxPool", [(1, 1, 5, 5)], 9, {"kernel_shape": (3, 3)}, 34 + 81),
        ("Einsum", [(4, 8), (8, 2)], 8, {"equation": "ab, bc -> ac"}, 56 + 64),
        ("Einsum", [(4, 8), (8, 2)], 8, {"equation": "...b,bc"}, 56 + 32 * 16),
        ("GRU", [(5, 2, 3), (1, 12, 3), (1, 12, 4)], 8, {}, 8 + 30 + 84 + 10 * 84),
        ("DFT", [(3,)], 6, {}, 9 + 9),
    ],
)
def test_operations(op_type: str, inputs: list, written: int, attributes: dict, expected: int) -> None:  # fmt: skip
    assert B.operations(op_type, inputs, written, attributes.get) == expected


def test_refusals() -> None:
    budget = B.Budget()
    assert budget.refusal(B.BUDGET_BYTES, B.BUDGET_OPERATIONS) == ""
    budget.spend(1, 1)
    assert budget.refusal(B.BUDGET_BYTES, 0) == B.OVER_BYTES
    assert budget.refusal(0, B.BUDGET_OPERATIONS) == B.OVER_OPERATIONS
    budget.weights = 1
    assert budget.refusal(B.BUDGET_BYTES, B.BUDGET_OPERATIONS) == "", "big weights cost more"


def test_what_a_tensor_takes() -> None:
    """Dimensions without a content are no reason to compute more."""
    assert stored_bytes(TensorProto(dims=[2**40], data_type=TensorProto.FLOAT)) < 100
    assert stored_bytes(np.ones(10, np.float32)) == 40
    external = TensorProto(dims=[10], data_type=TensorProto.FLOAT, data_location=1)
    assert stored_bytes(external) == 40


def test_weights_are_measured_once(monkeypatch) -> None:
    """A proto is written to be measured; another one of the same name is measured again."""
    measured: list[str] = []

    def stored(value: TensorProto | np.ndarray) -> int:
        measured.append(getattr(value, "name", "array"))
        return stored_bytes(value)

    monkeypatch.setattr(table, "stored_bytes", stored)
    builder = GraphBuilder(18)
    constants = builder.graph.constants
    small, big = (from_array(np.ones(n, np.float32), f"w{n}") for n in (3, 70))
    constants.add_initializer("w", small)
    constants.add_initializer("v", big)
    total = constants.weight_bytes()
    assert total == small.ByteSize() + big.ByteSize() == constants.weight_bytes()
    assert measured == ["w3", "w70"]
    constants.change_initializer("w", big)
    assert constants.weight_bytes() == 2 * big.ByteSize()
    assert measured == ["w3", "w70", "w70"]
    constants.change_initializer("v", np.ones(5, np.float32))
    assert constants.weight_bytes() == big.ByteSize() + 20
    assert measured == ["w3", "w70", "w70", "array"]


def test_a_weight_that_leaves_is_not_held() -> None:
    """Neither is the one another replaces: nothing but the table has its bytes."""
    constants = GraphBuilder(18).graph.constants
    for name in ("w", "v"):
        constants.add_initializer(name, from_array(np.ones(70, np.float32), name))
    held = (
        sys.getrefcount(constants.initializers["w"]),
        sys.getrefcount(constants.initializers["v"]),
    )
    constants.weight_bytes()
    gone, replaced = constants.initializers["w"], constants.initializers["v"]
    constants.remove_initializer("w")
    constants.change_initializer("v", np.ones(5, np.float32))
    # a local name instead of the table
    assert (sys.getrefcount(gone), sys.getrefcount(replaced)) == held


def chain(op_type: str, size: int, length: int) -> GraphBuilder:
    """Reduces `w op w op w...`: what folds is small, what is computed is not."""
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(patterns=None))
    builder.make_tensor_input("x", TensorProto.FLOAT, (1,))
    value = from_array(np.array([0.001], np.float32))
    name = builder.op.ConstantOfShape(np.array([size, size], np.int64), value=value)
    for _ in range(length):
        given = {"axis": 0} if op_type == "Concat" else {}
        name = getattr(builder.op, op_type)(name, name, **given)
    total = builder.op.ReduceSum(name, keepdims=0)
    builder.op.Add("x", total, outputs=["y"])
    builder.make_tensor_output("y")
    return builder


def ranges(size: int, count: int) -> GraphBuilder:
    """Reduces many ranges."""
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(patterns=None))
    builder.make_tensor_input("x", TensorProto.INT64, (1,))
    name = "x"
    for i in range(count):
        zero, limit, one = (np.array(v, np.int64) for v in (0, size + i, 1))
        total = builder.op.ReduceSum(builder.op.Range(zero, limit, one), keepdims=1)
        name = builder.op.Add(name, total)
    builder.op.Neg(name, outputs=["y"])
    builder.make_tensor_output("y")
    return builder


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A budget of 100 kilobytes and one million operations, and what was computed."""
    monkeypatch.setattr(B, "BUDGET_BYTES", 100_000)
    monkeypatch.setattr(B, "BUDGET_OPERATIONS", 1_000_000)
    monkeypatch.setattr(growth, "TIMES", 4)  # folds are weights for the next pass
    run: list[str] = []
    evaluate = table.evaluate_node

    def counted(node, *args):
        run.append(node.op_type)
        return evaluate(node, *args)

    monkeypatch.setattr(table, "evaluate_node", counted)
    return run


@pytest.mark.parametrize(
    "make,reason,most",
    [
        (lambda: chain("MatMul", 64, 30), B.OVER_OPERATIONS, 8),
        (lambda: chain("Concat", 2, 16), B.OVER_BYTES, 16),
        (lambda: ranges(1000, 50), B.OVER_BYTES, 30),
    ],
)
def test_a_model_computes_a_budget(
    make: Callable[[], GraphBuilder], reason: str, most: int, small_budget: list[str]
) -> None:
    """Each node is affordable, all of them are not: the rest stays, the rows say why."""
    builder = make()
    total = len(builder.nodes)
    _, rows = builder.to_onnx(return_optimize_report=True)
    told = [r["pattern"] for r in rows if reason in str(r["pattern"])]
    assert told and len(set(small_budget)) <= 4
    heavy = [t for t in small_budget if t in ("MatMul", "Concat", "Range")]
    assert len(heavy) <= most < total
    spent = builder.graph.scope.totals.budget
    assert spent.spent_bytes <= 200_000 and spent.spent_operations <= 2_000_000
    assert builder.graph.store.bucket("", heavy[0]), "some are left"


def test_weights_are_folded_whatever_they_cost(small_budget: list[str]) -> None:
    """A model of big weights computes as much as they take."""
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(patterns=None))
    builder.make_tensor_input("x", TensorProto.FLOAT, (1, 200))
    name = "x"
    for i in range(3):
        builder.make_initializer(f"w{i}", np.full((200, 200), i, np.float32))
        name = builder.op.MatMul(name, builder.op.Transpose(f"w{i}", perm=[1, 0]))
    builder.op.Neg(name, outputs=["y"])
    builder.make_tensor_output("y")
    assert "Transpose" not in {n.op_type for n in builder.to_onnx().graph.node}
    assert builder.graph.scope.totals.budget.spent_bytes == 3 * 160_000


def test_functions_and_bodies_share_the_budget() -> None:
    builder = GraphBuilder(18)
    scope = builder.graph.scope
    assert builder.graph.child().constants.budget is scope.totals.budget
    assert scope.for_function(("f", "g")).totals.budget is scope.totals.budget
