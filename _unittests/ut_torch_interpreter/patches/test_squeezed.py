"""squeeze of dynamic dimensions."""

from __future__ import annotations

import warnings

import onnxruntime
import pytest
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException
from ut_torch_interpreter.export_checks import Fct, check_export, run_ort

from torch_interpreter import to_onnx

Dim = torch.export.Dim
ONE = torch.randn(1, 6)
SQUEEZES = {
    "one": lambda x: x.squeeze(0),
    "negative": lambda x: x.squeeze(-2),
    "named": lambda x: x.squeeze(dim=0) * 2,
    "function": lambda x: torch.squeeze(x, 0),
    "copy": lambda x: torch.squeeze_copy(x, 0),
    "all": lambda x: x.squeeze(),
    "several": lambda x: x.squeeze((0, 1)),
    "two arguments": lambda x: x[None].squeeze(0, 1),
    "after a static one": lambda x: x[:, None].squeeze((0, 1)),
}


@pytest.mark.parametrize("dim", ["b", Dim.AUTO, Dim.DYNAMIC], ids=str)
@pytest.mark.parametrize("name", sorted(SQUEEZES))
def test_one_row(name, dim):
    with pytest.warns(UserWarning, match=r"right for \w+ == 1: .*\(.*:\d+, in forward: "):
        check_export(SQUEEZES[name], (ONE,), ({0: dim},), [(torch.randn(1, 6),)])


def test_several_rows_are_refused():
    with pytest.warns(UserWarning, match="right for b == 1: "):
        onx = to_onnx(Fct(lambda x: x.squeeze(0) + 1), (ONE,), dynamic_shapes=(({0: "b"},),))
    onnxruntime.set_default_logger_severity(4)
    with pytest.raises((RuntimeException, Exception), match="must be 1 instead of 3"):
        run_ort(onx, (torch.randn(3, 6),))


def test_a_row_is_not_removed_from_several():
    with pytest.warns(UserWarning, match="right for b != 1: "):
        check_export(
            lambda x: x.squeeze(0), (torch.randn(3, 6),), ({0: "b"},), [(ONE.repeat(2, 1),)]
        )


def test_nothing_to_say():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The model is right for")
        check_export(lambda x: x.squeeze(0), (torch.randn(3, 6),), ({0: Dim("b", min=2)},))
        check_export(
            lambda x: x.squeeze(1), (torch.randn(2, 1, 6),), ({0: "b"},), [(torch.randn(5, 1, 6),)]
        )
        check_export(lambda x: x.sum(1, keepdim=True).squeeze(-1), (ONE,), ({0: "b"},), [(X,)])


X = torch.randn(4, 6)
