"""State shared by the graphs of a model, and state of a local function."""

from __future__ import annotations

import pytest
from onnx import FunctionProto

from xbuilder.files.data_folder import DataFolder
from xbuilder.graph.model_scope import ModelScope
from xbuilder.options import PassOptions


def test_a_function_read_on_its_own() -> None:
    options = PassOptions(patterns=None)
    functions = {("d", "f"): FunctionProto(), ("d", "g"): FunctionProto()}
    scope = ModelScope({"": 18}, options, functions=functions, folder=DataFolder("here"))
    scope.names.reserve("x")
    inner = scope.for_function(("d", "f"))
    assert inner.is_function and not scope.is_function
    assert inner.options is options and inner.folder is scope.folder
    assert list(inner.functions) == [("d", "g")] and len(scope.functions) == 2
    assert inner.opsets == {} and "x" not in inner.names
    assert inner.dimensions is not scope.dimensions
    inner.totals.rewrites += 3
    assert scope.totals.rewrites == 3, "one count for the model"


def test_the_body_of_a_call() -> None:
    scope = ModelScope({"": 18}, is_function=True)
    inner = scope.for_call(("d", "f"), {"": 17})
    assert inner.opsets == {"": 17} and not inner.is_function
    assert inner.dimensions is scope.dimensions and inner.call_facts is scope.call_facts
    assert inner.names is not scope.names
    assert inner.for_call(("d", "g"), {}).pending_calls == (("d", "f"), ("d", "g"))
    assert scope.pending_calls == ()


def test_a_wrong_declaration_is_told_once() -> None:
    scope = ModelScope()
    with pytest.warns(UserWarning, match="'x': rank 1") as caught:
        scope.warn_wrong_declaration("x", "rank 1")
        scope.warn_wrong_declaration("x", "rank 2")
    assert len(caught) == 1 and scope.warned == {"x"}
