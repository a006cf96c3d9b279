"""Where the content of a tensor decides, the strategy example takes the branch of the arguments."""

from __future__ import annotations

import warnings

import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import ExportError, ExportOptions, to_onnx
from torch_interpreter.exporting.example_branches import branch_message

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 1.0]])
#: the same decisions at another size
Y = torch.cat([X + 0.25, X[:1]])


class Sign(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class Largest(torch.nn.Module):
    def forward(self, x):
        n = int(x.max()) + 1
        if n > 3:
            x = x + n
        return x, torch.ones(n)


class Selected(torch.nn.Module):
    def forward(self, x):
        kept = x[x > 0]
        if len(kept) == 0:
            return x
        return x - kept.mean(), kept


class Rounds(torch.nn.Module):
    def forward(self, x):
        for k in range(int(x.abs().max())):
            x = x + k
        return x


class Same(torch.nn.Module):
    def forward(self, x):
        return x if torch.equal(x[:1] * 2, x[:1]) else x * 3


class Number(torch.nn.Module):
    def forward(self, x):
        total = x.abs().sum().item()
        return x * (2 if total > 1 else 3) + total


class Checked(torch.nn.Module):
    def forward(self, x):
        if x.isnan().any():
            raise ValueError("NaN")
        if x.max() > 100:
            raise ValueError("too large")
        return x + (1 if x.min() < 0 else 2)


#: model -> the only line that is named
LINES = {
    Sign: "if x.sum() > 0",
    Largest: "if n > 3",
    Selected: "if len(kept) == 0",
    Rounds: "for k in range",
    Same: "return x if torch.equal",
    Number: "return x * (2 if total > 1",
    Checked: "return x + (1 if x.min()",
}


def exported(model, *args, options="example"):
    """The ONNX model, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        onx = to_onnx(model, args, dynamic_shapes=({0: "batch"},), export_options=options)
    return onx, [str(w.message) for w in caught if w.category is UserWarning]


@pytest.mark.parametrize("kind", LINES, ids=lambda kind: kind.__name__)
def test_the_branch_of_the_arguments_with_its_line(kind):
    onx, texts = exported(kind(), X)
    assert len(texts) == 1 and LINES[kind] in texts[0] and texts[0].count(__file__) == 1
    for x in (X, Y):
        assert_same(kind()(x), run_ort(onx, [x]), 1e-5)


def test_the_other_branch():
    with pytest.raises(ExportError, match="strategy='example'"):
        exported(Sign(), -X, options=None)
    onx, texts = exported(Sign(), -X)
    assert len(texts) == 1
    assert_same(-X - 1, run_ort(onx, [-X]), 1e-6)


def test_nothing_decides():
    """The values are not computed, a size read from a tensor stays one."""

    class Plain(torch.nn.Module):
        def forward(self, x):
            return x[x > 0]

    onx, texts = exported(Plain(), X)
    assert not texts
    assert_same(Y[Y > 0], run_ort(onx, [Y]), 1e-6)


def test_arguments_without_data():
    with torch.device("meta"):
        x = torch.ones(2, 3)
    with pytest.raises(ExportError, match="content of a tensor"):
        exported(Sign(), x)


def test_an_error_that_the_model_catches():
    class Caught(torch.nn.Module):
        def forward(self, x):
            try:
                return x if x.max() > 100 else x * 2
            except Exception:
                return x + 1

    with pytest.raises(ExportError, match="catches the error"):
        exported(Caught(), X)


def test_the_tensors_keep_no_value():
    from torch_interpreter.to_onnx import export_with_torch

    options = ExportOptions(example_branches=True)
    with pytest.warns(UserWarning, match="if x.sum"):
        program = export_with_torch(Sign(), (X,), {}, None, options)
    vals = [n.meta["val"] for n in program.module.graph.nodes if "val" in n.meta]
    assert vals and all(getattr(v, "real_tensor", None) is None for v in vals)


def test_the_message_names_some_lines():
    assert branch_message([]) == ""
    text = branch_message(["a.py:1", "a.py:2", "b.py:3"], most=2)
    assert "at a.py:1; a.py:2 and 1 more." in text and "b.py" not in text
