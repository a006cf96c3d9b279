"""A weight derived from another one takes its name once that one is removed."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph
from xbuilder.passes.derived_names import take_original_names

TEXT = "agraph (float[N,3] x) => (float[N,3] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) }"
BIG = np.arange(64, dtype=np.float32)


def builder_of(text: str = TEXT, **options: bool) -> GraphBuilder:
    return GraphBuilder(parse(text), optimization_options=OptimizationOptions(**options))


def test_the_name_of_what_is_gone() -> None:
    builder = builder_of()
    name = builder.graph.derived_initializer("w", np.array([5, 6, 7], dtype=np.float64))
    assert name == "w1" and take_original_names(builder.graph) == 0, "w is read"
    builder.store.redirect("w", name)
    assert take_original_names(builder.graph) == 1
    assert list(builder.initializers_dict) == ["w"] == [builder.nodes[0].input[1]]
    assert builder.get_type("w") == TensorProto.DOUBLE
    check_graph(builder.graph)
    assert take_original_names(builder.graph) == 0


def test_made_of_what_was_made() -> None:
    builder = builder_of()
    first = builder.graph.derived_initializer("w", BIG)
    second = builder.graph.derived_initializer(first, BIG + 1)
    assert (first, second) == ("w1", "w2")
    builder.store.redirect("w", second)
    assert take_original_names(builder.graph) == 1 and list(builder.initializers_dict) == [
        "w",
        "w1",
    ]
    np.testing.assert_array_equal(builder.initializers_dict["w"], BIG + 1)


def test_the_first_one_takes_it() -> None:
    builder = builder_of()
    names = [builder.graph.derived_initializer("w", BIG + i) for i in range(2)]
    builder.store.redirect("w", names[0])
    assert take_original_names(builder.graph) == 1
    assert list(builder.initializers_dict) == ["w", names[1]]
    assert take_original_names(builder.graph) == 0


def test_an_equal_constant_is_shared() -> None:
    builder = builder_of()
    value = builder.constants.value("w").copy()
    assert builder.graph.derived_initializer("another", value) == "w"
    assert not builder.constants.derived


def test_what_is_kept() -> None:
    """A weight nothing reads is kept with its name, and so is the name of an input."""
    builder = builder_of(remove_unused=False)
    builder.store.redirect("w", builder.graph.derived_initializer("w", BIG))
    assert take_original_names(builder.graph) == 0
    given = builder_of(TEXT.replace("x) =>", "x, float[3] w) =>"))
    given.store.redirect("w", given.graph.derived_initializer("w", BIG))
    assert take_original_names(given.graph) == 0
    assert sorted(given.initializers_dict) == ["w", "w1"]
