"""Programs made of the models of a user."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter import to_onnx
from xbuilder.errors import OptionError


@pytest.mark.parametrize("how", ["trace", "script"])
def test_a_script_module_is_refused(how):
    """The message names the module to give instead."""
    module = torch.nn.Linear(2, 2)
    x = torch.zeros(1, 2)
    scripted = torch.jit.trace(module, x) if how == "trace" else torch.jit.script(module)
    with pytest.raises(
        OptionError, match="give the torch.nn.Module it was traced or scripted from"
    ):
        to_onnx(scripted, (x,))


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (torch.nn.ReLU().forward, r"'method'>\. Call it in the forward of a module"),
        (torch.relu, "Call it in the forward of a module"),
        (torch.nn.ReLU, r"Give an instance, ReLU\(\.\.\.\)\."),
        ("model", "not <class 'str'>"),
    ],
)
def test_what_is_no_module(given, advice):
    with pytest.raises(OptionError, match=rf"mod must be a torch\.nn\.Module.*{advice}"):
        to_onnx(given, (torch.ones(2),))
