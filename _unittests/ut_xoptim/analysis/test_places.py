"""Places of elements are those numpy and a run of the model give."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from xoptim.analysis.places import kept_positions, moved_places, transposed_places
from xoptim.authoring import Refusal
from xoptim.authoring.context import context_of
from xoptim.testing import model_from_text, optimizer_of

#: nodes from x to y, a move
MOVES = (
    "y = Transpose<perm = [1, 0, 2]>(x)",
    "y = Transpose(x)",
    "s = Constant<value_ints = [6, 4]>() y = Reshape(x, s)",
    "b = Constant<value_ints = [3, -9]>() e = Constant<value_ints = [-9, 9]>() "
    "a = Constant<value_ints = [1, 2]>() s = Constant<value_ints = [-2, 3]>() "
    "y = Slice(x, b, e, a, s)",
    "l = Constant<value_ints = [1, 2]>() p, q = Split<axis = 1>(x, l) y = Concat<axis = 1>(q, p)",
)
#: a move that is not known, the reason
UNKNOWN = {
    "y = Reshape(x, n)": "a shape is not constant",
    "y = Slice(x, n, n)": "the bounds are not constant, or the axes of a Slice are not known",
    "b = Constant<value_ints = [-9]>() e = Constant<value_ints = [-10]>() "
    "a = Constant<value_ints = [1]>() s = Constant<value_ints = [-1]>() "
    "y = Slice(x, b, e, a, s)": "what a Slice keeps is not known",
    "p, q = Split<axis = 1>(x, n) y = Concat<axis = 1>(q, p)": "the length of a part is not known",
}


def places(body: str) -> tuple[ModelProto, np.ndarray]:
    """The model, and the places after the move that makes y."""
    model = model_from_text(f"agraph (float[2, 3, 4] x, int64[2] n) => (float[] y) {{ {body} }}")
    queries = optimizer_of(model)
    nodes = [queries.node_before("y")]
    if nodes[0].op_type == "Concat":
        nodes.insert(0, queries.node_before(nodes[0].input[0]))
    start = np.arange(24).reshape((2, 3, 4))
    return model, moved_places(context_of(queries), start, *nodes)


@pytest.mark.parametrize("body", MOVES)
def test_places_are_those_of_a_run(body: str) -> None:
    model, found = places(body)
    feeds = {"x": np.arange(24, dtype=np.float32).reshape((2, 3, 4)), "n": np.zeros(2, np.int64)}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("body", "reason"), UNKNOWN.items())
def test_places_are_not_known(body: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        places(body)


def test_transposed_places() -> None:
    x = np.random.default_rng(0).random((2, 3, 4))
    order = transposed_places(x.shape, (2, 0, 1))
    assert (x.ravel()[order] == x.transpose(2, 0, 1)).all()


def test_kept_positions_of_a_null_step() -> None:
    assert kept_positions(range(4), (0, 4, 0)) is None
