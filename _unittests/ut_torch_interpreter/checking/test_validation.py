"""The comparison with torch at other sizes, and what counts as equal."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter import Dispatcher, to_onnx
from torch_interpreter.checking import validation
from torch_interpreter.checking.validation import compare
from torch_interpreter.common.errors import ValidationError
from xbuilder.runtimes.custom_operators import custom_operators


class Decoder(torch.nn.Module):
    """A mask is padded to the length of a cache and of the new tokens, as transformers does."""

    def forward(self, x, past, mask):
        whole = torch.cat([past, x], dim=1)
        missing = whole.shape[1] - mask.shape[1]
        if missing > 0:
            mask = torch.nn.functional.pad(mask, (0, missing))
        return whole * mask


class Twice(torch.nn.Module):
    """The second input is twice as long as the first one, the third one is a multiple of 4."""

    def forward(self, x, y, z):
        return torch.cat([x, x], dim=0) + y, z.reshape(-1, 4)


@pytest.fixture
def tried(monkeypatch) -> list[list[tuple[int, ...]]]:
    """The shapes of the second comparison."""
    found = []
    drawn = validation.other_sizes

    def spy(inputs, leaves, specs):
        values = drawn(inputs, leaves, specs)
        found.append(values and [tuple(v.shape) for v in values])
        return values

    monkeypatch.setattr(validation, "other_sizes", spy)
    return found


@pytest.mark.filterwarnings("ignore:The model is right for")
def test_a_decoder_with_a_cache(tried) -> None:
    args = torch.randn(2, 3), torch.randn(2, 5), torch.ones(2, 8)
    names = {0: "b", 1: "seq"}, {0: "b", 1: "past"}, {0: "b", 1: "total"}
    to_onnx(Decoder(), args, dynamic_shapes=names, validate_onnx=True)
    [[x, past, mask]] = tried
    assert x[0] == past[0] == mask[0] > 2 and x[1] > 3 and past[1] > 5
    # the branch that pads the mask is right for all lengths: it is the one that is exported
    assert 8 < mask[1] <= x[1] + past[1]


@pytest.mark.parametrize("names", [("n", "n", "m"), ("n", "m", "n"), ("n", "n", "n")])
def test_one_name_is_one_size(tried, names) -> None:
    """torch compares the sizes of these arguments with nothing."""

    class Sums(torch.nn.Module):
        def forward(self, x, y, z):
            return x.sum(dim=1) * y.sum(dim=0)[0] * z.sum()

    args = torch.randn(2, 4), torch.randn(4, 3), torch.randn(4)
    dims = {1: names[0]}, {0: names[1]}, {0: names[2]}
    to_onnx(Sums(), args, dynamic_shapes=dims, validate_onnx=True)
    [[x, y, z]] = tried
    sizes = dict(zip(names, (x[1], y[0], z[0]), strict=True))
    assert [sizes[name] for name in names] == [x[1], y[0], z[0]] and min(sizes.values()) > 4


@pytest.mark.filterwarnings("ignore:The model is right for")
def test_computed_dimensions_and_divisors(tried) -> None:
    args = torch.randn(3), torch.randn(6), torch.randn(8)
    n = torch.export.Dim("n")
    to_onnx(Twice(), args, validate_onnx=True, dynamic_shapes=({0: n}, {0: 2 * n}, {0: "m"}))
    [[(x,), (y,), (z,)]] = tried
    assert x > 3 and y == 2 * x and z > 8 and z % 4 == 0


def test_nothing_to_change(tried) -> None:
    to_onnx(torch.nn.ReLU(), (torch.randn(2),), validate_onnx=True)
    assert tried == [None]


def test_a_failure_of_onnxruntime_is_ours(monkeypatch) -> None:
    def fails(*_):
        raise RuntimeError("two lines\nof text")

    monkeypatch.setattr("onnxruntime.InferenceSession.run", fails)
    with pytest.raises(ValidationError, match=r"does not run .* export \{'.*: two lines$"):
        to_onnx(torch.nn.ReLU(), (torch.randn(2),), validate_onnx=True)


def test_the_criterion() -> None:
    x = torch.tensor([1.0, 2.0])
    assert compare([x, None, 1], [x.numpy(), torch.tensor([1]).numpy()]) == ""
    wrong = compare([x], [(x * 1.001).numpy()])
    assert wrong.startswith("output 0: relative difference 0.001 is over 0.0001 (absolute 0.002)")
    assert compare([x], [(x * 1.001).numpy()], noisy=[x.double() * 1.0005]) == ""
    assert compare([x], [(x * 1.001).numpy()], tolerance=0.01) == ""
    assert "type float32 became float64" in compare([x], [x.double().numpy()])
    assert compare([x], []) == "1 results expected, 0 found"


def test_doubles_measure_the_noise_of_torch() -> None:
    leaves, tree = torch.utils._pytree.tree_flatten(((torch.rand(8),), {}))
    model = torch.nn.Linear(8, 2)
    [found] = validation._with_doubles(model, leaves, tree)
    assert found.dtype == torch.float64 and model.weight.dtype == torch.float32
    assert validation._with_doubles(torch.nn.Linear(3, 3), leaves, tree) == []


@torch.library.custom_op("xoptim_validation::neg_pos", mutates_args=())
def neg_pos(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.clamp(max=0), x.clamp(min=0)


@neg_pos.register_fake
def _(x):
    return torch.empty_like(x), torch.empty_like(x)


class NegPos(torch.nn.Module):
    def forward(self, x):
        negative, positive = neg_pos(x)
        return negative.exp() + positive


def written_as_one_node(g, sts, outputs, x):
    return g.anyop.NegPos(x, outputs=outputs, domain="ai.onnx.contrib")


NEG_POS = {"xoptim_validation::neg_pos": written_as_one_node}


def test_an_operator_of_no_library():
    """onnxruntime does not load the model: the message names its domain."""
    with pytest.raises(ValidationError, match="does not load .* the library of ai.onnx.contrib"):
        to_onnx(NegPos(), (torch.randn(3, 4),), dispatcher=Dispatcher(NEG_POS), validate_onnx=True)


def test_an_operator_of_a_library():
    package = pytest.importorskip(
        "onnxruntime_extensions", reason="it has no wheel for this version of Python"
    )
    with custom_operators(package.get_library_path()):
        onx = to_onnx(
            NegPos(), (torch.randn(3, 4),), dispatcher=Dispatcher(NEG_POS), validate_onnx=True
        )
    assert [node.op_type for node in onx.graph.node] == ["NegPos", "Exp", "Add"]
