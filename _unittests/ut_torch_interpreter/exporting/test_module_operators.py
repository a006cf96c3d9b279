"""The shapes of the results of a module that is an operator."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter import observe_calls
from torch_interpreter.exporting.module_operators import modules_as_operators
from xbuilder.errors import OptionError

LENGTHS = {
    "the same": lambda x, y: x * 2,
    "a constant": lambda x, y: x.sum(dim=0)[None],
    "another argument": lambda x, y: y[:, None] + x.sum(),
    "a multiple": lambda x, y: torch.cat([x, x, x]),
    "a sum": lambda x, y: torch.cat([x[:, 0], y]),
    "a number more": lambda x, y: torch.nn.functional.pad(x, (0, 0, 2, 0)),
    "fewer": lambda x, y: x[1:],
    "another type": lambda x, y: x > 0,
    "several": lambda x, y: {"a": x, "b": (y, None), "c": 3},
}


class Part(torch.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, x, y=None):
        return self.compute(x, y)


def seen_by(part, sizes=((2, 3), (4, 9), (7, 5))):
    with observe_calls(part) as seen:
        for a, b in sizes:
            part(torch.randn(a, 4), torch.randn(b))
    return seen


@pytest.mark.parametrize("name", sorted(LENGTHS))
def test_shapes_are_learnt(name):
    part = Part(LENGTHS[name])
    dims = {"x": {0: torch.export.Dim.DYNAMIC}, "y": {0: torch.export.Dim.DYNAMIC}}
    with modules_as_operators({"a.b": seen_by(part)}):
        args = torch.randn(3, 4), torch.randn(8)
        program = torch.export.export(part, args, dynamic_shapes=dims)
        assert "pieces.Part_a_b.default" in {str(n.target) for n in program.graph.nodes}
        other = torch.randn(11, 4), torch.randn(6)
        got, expected = program.module()(*other), LENGTHS[name](*other)
        torch.testing.assert_close(got, expected)
    with pytest.raises(AttributeError):
        torch.ops.pieces.Part_a_b  # noqa: B018


REFUSED = {
    "no tensor": (lambda x, y: 3, "the number of its tensors changes, or is 0"),
    "a power": (lambda x, y: x.new_ones(x.shape[0] ** 2), r"the sizes \(4, 16, 49\)"),
    "its arguments": (lambda x, y: x.mul_(2), "it modifies its arguments"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused(name):
    compute, message = REFUSED[name]
    part = Part(compute)
    with pytest.raises(OptionError, match=message), modules_as_operators({"p": seen_by(part)}):
        raise AssertionError
    assert "forward" not in vars(part)
