"""Names of the leaves of arguments and results."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch.utils._pytree import tree_structure

from torch_interpreter import to_onnx
from torch_interpreter.inputs.leaf_names import default_output_names
from xbuilder.errors import OptionError


class Box(NamedTuple):
    corners: int
    scores: int


class Keyed(torch.nn.Module):
    def forward(self, x, y):
        return {"logits": x + y, "hidden": (x * 2, y * 2), "x": x - y}


def test_outputs_have_the_names_of_their_keys():
    onx = to_onnx(Keyed(), (torch.randn(3), torch.randn(3)))
    # x is an input, the output has the name of its place
    assert [o.name for o in onx.graph.output] == ["logits", "hidden_0", "hidden_1", "output_3"]
    named = to_onnx(Keyed(), (torch.randn(3), torch.randn(3)), output_names=list("abcd"))
    assert [o.name for o in named.graph.output] == list("abcd")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, ["output_0"]),
        ((0, 0), ["output_0", "output_1"]),
        ({"a": [0, {"b": 0}]}, ["a_0", "a_1_b"]),
        ({0: 0, "output_0": 0}, ["output_0", "output_1"]),
        ((0, {"a": 0}), ["output_0", "a"]),
        (Box(0, 0), ["corners", "scores"]),
        ({"box": Box(0, 0)}, ["box_corners", "box_scores"]),
        ({}, []),
    ],
)
def test_names_of_a_structure(value, expected):
    assert default_output_names(tree_structure(value), [], len(expected)) == expected


def test_a_structure_that_is_not_known():
    assert default_output_names(None, [], 2) == ["output_0", "output_1"]
    assert default_output_names(tree_structure({"a": 0}), [], 2) == ["output_0", "output_1"]
    assert default_output_names(None, ["output_0"], 1) == ["output_0_"]


def test_names_of_a_cache():
    transformers = pytest.importorskip("transformers")
    from torch_interpreter.inputs.caches import register_caches

    both = [transformers.DynamicCache(), transformers.DynamicCache()]
    for cache in both:
        cache.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), 0)
    register_caches()
    tree = tree_structure({"cache": transformers.EncoderDecoderCache(*both)})
    assert default_output_names(tree, [], 4) == [
        "present.0.decoder.key",
        "present.0.decoder.value",
        "present.0.encoder.key",
        "present.0.encoder.value",
    ]


def test_an_unknown_convention():
    with pytest.raises(OptionError, match=r"cache_names expects None or one of \['genai'\]"):
        to_onnx(Keyed(), (torch.randn(3), torch.randn(3)), cache_names="optimum")
