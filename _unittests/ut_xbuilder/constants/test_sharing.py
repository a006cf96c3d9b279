"""Small initializers found by content."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder
from xbuilder.constants.sharing import SharedInitializers
from xbuilder.nodes.tensors import tensor_array

ONES = np.ones(3, dtype=np.float32)
TYPED = oh.make_tensor("t", TensorProto.FLOAT, [3], [1.0, 1.0, 1.0])


def shared(initializers: dict[str, Any], *alone: str) -> SharedInitializers:
    """The initializers, none is external."""
    found = SharedInitializers(initializers, tensor_array, ({*alone}))
    for name in initializers:
        found.added(name)
    return found


@pytest.mark.parametrize("first", [ONES, from_array(ONES), TYPED])
@pytest.mark.parametrize("second", [ONES.copy(), from_array(ONES), TYPED])
def test_every_form_is_the_same(first: Any, second: Any) -> None:
    assert shared({"a": first}).find(second) == "a"


@pytest.mark.parametrize(
    "other",
    [
        -ONES,
        ONES.astype(np.float64),
        ONES.reshape((1, 3)),
        np.array([1, 1, np.nan], dtype=np.float32),
        oh.make_tensor("s", TensorProto.STRING, [1], [b"a"]),
    ],
)
def test_others_are_not(other: Any) -> None:
    assert shared({"a": ONES, "b": other}, "b").find(other) == ""
    assert shared({"a": ONES}).find(other) == ""


def test_zeros_of_both_signs_differ() -> None:
    zero = np.zeros(1, dtype=np.float32)
    assert shared({"a": -zero}).find(zero) == ""


def test_big_ones_external_ones_and_those_that_are_excluded_are_not_shared() -> None:
    big = np.zeros(40, dtype=np.float32)
    assert shared({"a": big}).find(big) == ""
    external = from_array(ONES)
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    assert shared({"a": external}).find(ONES) == ""
    alone = {"b"}
    found = SharedInitializers({"a": ONES}, tensor_array, (alone,))
    found.added("a")
    assert found.find(ONES) == "a" and found.find_equal("a") == "a"
    alone.add("a")
    assert found.find(ONES) == "" and found.find_equal("a") == ""
    assert shared({"a": ONES}, "a").find(ONES) == ""


def test_what_left_or_changed_is_not_found() -> None:
    initializers = {"a": ONES, "b": ONES}
    found = shared(initializers)
    assert found.find(ONES) == "a" and set(found.names) == {"a"}
    initializers["a"] = -ONES
    found.added("a")
    assert found.find(ONES) == "" and found.find(-ONES) == "a"
    del initializers["a"]
    found.gone("a")
    assert found.find(-ONES) == "" and not found.names


def test_the_first_one_stands_for_those_that_are_equal() -> None:
    initializers = {"a": ONES, "b": ONES.copy(), "c": -ONES, "d": np.zeros(40, np.float32)}
    found = shared(initializers, "c")
    assert [found.find_equal(name) for name in initializers] == ["a", "a", "", ""]
    del initializers["a"]
    found.gone("a")
    assert found.find_equal("b") == "b", "the first one left"
    initializers["e"] = ONES.copy()
    found.added("e")
    assert found.find_equal("e") == "b" and found.find(ONES) == "b"


def test_a_builder_reuses_what_the_model_holds() -> None:
    builder = GraphBuilder(
        parse("agraph (float[3] x) => (float[3] y) <float[3] w = {1, 1, 1}> { y = Add(x, w) }")
    )
    assert builder.make_initializer("", ONES) == "w"
    builder.constants.parameter_names.add("w")
    assert builder.make_initializer("", ONES) != "w", "the weight of a torch model"
