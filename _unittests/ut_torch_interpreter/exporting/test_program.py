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
