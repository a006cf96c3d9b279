"""A dimension that is 0 or 1 in the arguments, or computed from them, stays dynamic."""

from __future__ import annotations

import warnings

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, assert_same, check_export, run_ort

from torch_interpreter import to_onnx

F = torch.nn.functional
Dim = torch.export.Dim


class Attention(torch.nn.Module):
    """torch makes a batch of 1 a constant in this module."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Step(torch.nn.Module):
    """A step of a decoder: the mask is as long as the cache and the new tokens."""

    def forward(self, x, past, mask):
        keys = torch.cat([past, x], dim=1)
        scores = x @ keys.transpose(1, 2)
        return scores.masked_fill(mask[:, None] == 0, -1e4).softmax(-1) @ keys, keys


class Counter(torch.nn.Module):
    """Has a state."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x * 2


def windows(x):
    b, c, h, w = x.shape
    parts = x.reshape(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1)
    return parts.flatten(3).flatten(1, 2)


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The model is right for")
        yield


@pytest.mark.parametrize("dim", ["b", Dim("b"), Dim.AUTO, Dim.DYNAMIC], ids=str)
def test_a_batch_of_one(dim):
    x, y = torch.randn(1, 3, 4), torch.randn(5, 3, 4)
    check_export(Attention().eval(), (x,), ({0: dim},), [(y,)])


def test_a_length_of_one_and_an_empty_cache():
    names = {0: "b", 1: "n"}, {0: "b", 1: "past"}, {0: "b", 1: "past+n"}

    def step(b, n, past):
        return torch.randn(b, n, 4), torch.randn(b, past, 4), torch.ones(b, past + n)

    check_export(Step(), step(1, 1, 3), names, [step(2, 3, 5)])
    check_export(Step(), step(1, 2, 0), names, [step(2, 3, 5), step(2, 1, 1)])


def test_a_computed_dimension_of_one():
    x, y = torch.randn(2, 4, 8, 4), torch.randn(2, 4, 12, 12)
    check_export(windows, (x,), ({0: "b", 2: "h", 3: "w"},), [(y,)])
    pool = torch.nn.Sequential(torch.nn.AvgPool1d(4), torch.nn.Flatten())
    check_export(pool, (torch.randn(2, 3, 4),), ({0: "b", 2: "n"},), [(torch.randn(1, 3, 8),)])


def test_rewrites_do_not_rely_on_a_computed_dimension_of_one():
    """torch says that (h // 4) * (w // 4) is h // 4 when w // 4 is 1."""
    model, names = Fct1(windows), {0: "b", 2: "h", 3: "w"}
    onx = to_onnx(model, (torch.randn(2, 4, 8, 4),), dynamic_shapes=(names,))
    for x in (torch.randn(2, 4, 8, 4), torch.randn(3, 4, 12, 12), torch.randn(1, 4, 4, 16)):
        assert_same([model(x)], run_ort(onx, [x]), 0)


@pytest.mark.parametrize("place", [0, -1])
def test_the_piece_of_a_computed_dimension_of_one(place):
    """The other example has more pieces: those that nothing reads need not exist."""
    weight = torch.randn(4, 4, 3)

    def first(x):
        return F.group_norm(F.conv1d(x, weight, stride=2), 2).unbind(-1)[place]

    x, others = torch.randn(1, 4, 3), [(torch.randn(2, 4, 4),)]
    if place == 0:
        check_export(first, (x,), ({0: "b", 2: "t"},), [*others, (torch.randn(2, 4, 9),)])
    else:  # the last one of another number of pieces is another one
        with pytest.warns(UserWarning, match="The model is right for"):
            check_export(first, (x,), ({0: "b", 2: "t"},), others)


class Blocks(torch.nn.Module):
    """Pads the length to whole blocks of 8, and cuts the result only when it was padded."""

    def forward(self, x):
        n = x.shape[1]
        padding = (8 - n % 8) % 8
        blocks = F.pad(x, (0, padding)).reshape(x.shape[0], -1, 8)
        y = (blocks - blocks.amax(2, keepdim=True)).reshape(x.shape[0], -1)
        return y[:, :n] if padding > 0 else y


@pytest.mark.parametrize("length", [8, 16, 5])
def test_a_length_that_needs_no_padding(length):
    """The branch that cuts is right for all lengths, the other one for multiples of 8."""
    others = [(torch.randn(3, n),) for n in (3, 8, 11, 16, 24, 1)]
    check_export(Blocks(), (torch.randn(2, length),), ({0: "b", 1: "n"},), others)


def test_branches_that_are_both_needed(capsys):
    """None of the branches is right for all sizes: the one of the arguments is kept."""
    model = Fct1(lambda x: x * 2 if x.shape[1] % 8 == 0 else x + 1)
    for length, text in ((8, "n % 8 == 0"), (9, "not n=8")):
        with pytest.warns(UserWarning, match=f"right for .*{text}"):
            check_export(model, (torch.randn(2, length),), ({0: "b", 1: "n"},), verbose=1)
        assert "wrong on the arguments when exported with" in capsys.readouterr().out


class ShortBlocks(Blocks):
    """The same, with other results for short lengths."""

    def forward(self, x):
        y = super().forward(x)
        return y if x.shape[1] > 3 else y - 1


def test_a_branch_that_is_right_at_more_sizes():
    """The branch that cuts is wrong for the short lengths only, as the other one is."""
    others = [(torch.randn(3, n),) for n in (8, 11, 16, 24)]
    with pytest.warns(UserWarning, match=r"right for .*(n >= 4|4 <= n)"):
        check_export(ShortBlocks(), (torch.randn(2, 8),), ({0: "b", 1: "n"},), others)


def test_a_branch_with_other_shapes():
    """``x[:, :10]`` has the values of the model at all lengths, not the 10 columns it declares."""
    model = Fct1(lambda x: x[:, : x.shape[1] if x.shape[1] < 10 else 10])
    with pytest.warns(UserWarning, match="right for n <= 9: "):
        onx = check_export(model, (torch.randn(2, 8),), ({0: "b", 1: "n"},))
    assert [d.dim_param for d in onx.graph.output[0].type.tensor_type.shape.dim] == ["b", "n"]


def test_the_state_of_the_model_does_not_change():
    model = Counter()
    to_onnx(model, (torch.ones(1, 2),), dynamic_shapes=({0: "b"},))
    assert model.calls.tolist() == [0]


def test_the_arguments_are_what_matters(capsys):
    """The graph of the other example is wrong on the arguments of the user."""
    model = Fct1(lambda x: x * 2 if x.shape[0] == 1 else x)
    with pytest.warns(UserWarning, match=r"right for .*b == 1"):
        check_export(model, (torch.ones(1, 2),), ({0: "b"},), verbose=1)
    assert "wrong on the arguments when exported with {'b': 3}" in capsys.readouterr().out


def test_a_model_that_refuses_the_other_example(capsys):
    model = Fct1(lambda x: x + torch.ones(1, 2).expand(min(x.shape[0], 2), 2)[:1] * x.new_ones(1))
    check_export(model, (torch.ones(1, 2),), ({0: "b"},), [(torch.ones(4, 2),)], verbose=1)
    assert "[to_onnx] exported with {'b': 3}" in capsys.readouterr().out

    class Refuses(torch.nn.Module):
        def forward(self, x):
            assert x.shape[0] < 2
            return x * 2

    to_onnx(Refuses(), (torch.ones(1, 2),), dynamic_shapes=({0: "b"},), verbose=1)
    assert "the model is not exported with {'b': 3}: " in capsys.readouterr().out


def test_the_types_of_the_results():
    half = torch.ones(1, 2, dtype=torch.float16)
    check_export(lambda x: (x * 2, x.shape[0] * x, x.sum()), (half,), ({0: "b"},), atol=1e-2)
