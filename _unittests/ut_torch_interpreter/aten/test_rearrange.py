"""Triangles, flips, rolls, grids, diagonals."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import ExportOptions
from torch_interpreter.common.errors import ConversionError

X = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
DYNAMIC = ({0: "a", 1: "b"},)
OTHERS = [(torch.randn(5, 7, 4),), (X[:1, :1],)]


@pytest.mark.parametrize("name", ["tril", "triu"])
@pytest.mark.parametrize("diagonal", [0, 1, -2])
def test_triangle(name, diagonal):
    fct = getattr(torch, name)
    check_export(lambda x: fct(x, diagonal), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: fct(x, diagonal), (X > 3,))
    check_export(lambda x: fct(x, diagonal), (X.to(torch.int64),))


def test_triangle_of_booleans_is_one_node():
    def masked(x):
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return torch.zeros_like(seen, dtype=x.dtype).masked_fill(seen, -1.0)

    model = check_export(masked, (X,), DYNAMIC, OTHERS)
    assert "Cast" not in [n.op_type for n in model.graph.node]


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (-1, 1)], ids=str)
def test_quarters_of_a_turn(k, dims):
    check_export(lambda x: x.rot90(k, dims), (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("dims", [(0,), (1, 2), (-1,), ()], ids=str)
def test_flip(dims):
    check_export(lambda x: x.flip(dims), (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("shifts", [1, -1, 5])
@pytest.mark.parametrize("dims", [None, 0, 2])
def test_roll(shifts, dims):
    check_export(lambda x: x.roll(shifts, dims), (X,))
    if dims is not None:
        check_export(lambda x: x.roll(shifts, dims), (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("shift", [1, -1])
def test_roll_by_one_reads_no_size(shift):
    model = check_export(lambda x: x.roll(shift, 1), (X,), DYNAMIC, [*OTHERS, (X[:, :0],)])
    assert [n.op_type for n in model.graph.node] == ["Slice", "Slice", "Concat"]


def test_roll_several():
    check_export(lambda x: x.roll((1, 2), (0, 1)), (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid(indexing):
    a, b = torch.arange(3.0), torch.arange(4.0)
    check_export(
        lambda x, y: torch.meshgrid(x, y, indexing=indexing),
        (a, b),
        ({0: "a"}, {0: "b"}),
        [(torch.arange(5.0), torch.arange(2.0))],
    )


@pytest.mark.parametrize("offset", [0, 1, -1, 10])
def test_diagonal(offset):
    check_export(lambda x: x.diagonal(offset, 1, 2), (X,), ({0: "a"},), [(X[:1],)])
    check_export(lambda x: x.diagonal(offset), (X,))


@pytest.mark.parametrize("offset", [0, 1, -2])
def test_diagonal_with_dynamic_dimensions(offset):
    x = torch.rand(5, 4)
    others = [(torch.rand(shape),) for shape in [(4, 5), (3, 3), (2, 7), (1, 1), (0, 3)]]
    check_export(lambda x: x.diagonal(offset), (x,), DYNAMIC, others)
    check_export(lambda x: x.diagonal(offset), (x,), ({1: "b"},), [(torch.rand(5, 2),)])
    cube = torch.rand(5, 2, 4)
    others = [(torch.rand(3, 2, 6),), (torch.rand(6, 1, 3),)]
    dynamic = ({0: "a", 1: "b", 2: "c"},)
    check_export(lambda x: x.diagonal(offset, 2, 0), (cube,), dynamic, others)


def test_trace_with_dynamic_dimensions():
    check_export(torch.trace, (torch.rand(3, 5),), DYNAMIC, [(torch.rand(4, 2),)])


def test_as_strided():
    check_export(lambda x: torch.as_strided(x, (2, 3), (4, 2), 1), (X,))


def test_as_strided_dynamic():
    def windows(x):
        n = x.shape[1]
        return torch.as_strided(x, (x.shape[0], n - 1, 2), (n, 1, 1))

    def shifted(x):
        return torch.as_strided(x, (2, x.shape[1]), (x.shape[1], 1), x.shape[1])

    others = [(torch.rand(5, 7),)]

    def diagonal(x):
        return torch.as_strided(x, (x.shape[0],), (x.shape[1] + 1,))

    for fct in (windows, shifted, diagonal):
        check_export(fct, (torch.rand(3, 4),), ({0: "a", 1: "b"},), others)


@pytest.mark.parametrize("decompositions", [None, "all"])
def test_write_in_a_row_with_dynamic_sizes(decompositions):
    def write(x, index, values):
        x = x.clone()
        row = x[1, :]
        row[index] = values
        return x

    any_size = torch.export.Dim.DYNAMIC
    args = torch.rand(3, 4), torch.tensor([0, 2]), torch.tensor([7.0, 8.0])
    others = [(torch.rand(2, 5), torch.tensor([4, 1, 3]), torch.rand(3))]
    options = ExportOptions(decomposition_table=decompositions)
    dynamic = ({0: any_size, 1: any_size}, {0: "k"}, {0: "k"})
    check_export(write, args, dynamic, others, export_options=options)
    check_export(write, args, export_options=options)


def test_as_strided_of_a_view():
    check_export(lambda x: torch.as_strided(x[1:], (2, 2), (1, 2), 5), (torch.rand(4, 4),))
    check_export(lambda x: torch.as_strided(x[1:], (2, 2), (1, 2)), (torch.rand(4, 4),))


STRIDED = {
    "before_the_view": lambda x: x[1:].as_strided((2, 2), (4, 1), 0),
    "columns": lambda x: x[1:, 1:].as_strided((2, 2), (4, 1)),
    "transposed": lambda x: x.t()[1:].as_strided((2, 2), (1, 4)),
    "transposed_with_offset": lambda x: x.t().as_strided((2, 2), (1, 4), 1),
    "steps": lambda x: x[::2].as_strided((2, 2), (8, 1)),
    "contiguous": lambda x: x.t().contiguous()[1:].as_strided((2, 2), (4, 1)),
    "reshaped": lambda x: x.t().reshape(2, 8)[1:].as_strided((2, 2), (4, 1)),
    "seen": lambda x: x.reshape(2, 8)[1:].as_strided((2, 2), (4, 1), 1),
    "cast": lambda x: x[1:].to(torch.float64).as_strided((2, 2), (4, 1), 1),
    "computed": lambda x: (x.t() + 1).as_strided((2, 2), (1, 4), 2),
}


@pytest.mark.parametrize("fct", STRIDED.values(), ids=list(STRIDED))
def test_as_strided_reads_the_storage(fct):
    check_export(fct, (torch.randn(4, 4),))


def test_as_strided_of_a_part_of_an_argument():
    def fct(x):
        return x[:, 1:].as_strided((2, 2), (1, 1))

    # the argument is contiguous, as the input of the ONNX model is
    check_export(fct, (torch.randn(8, 4)[:, 1:].contiguous(),))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone().resize_(2, 3),
        lambda x: (x.t() * 2).resize_(3, 2) + 1,
        lambda x: x.clone().resize_as_(torch.zeros(2, 8)),
        lambda x: x[1:].resize_(2, 3),
    ],
    ids=["fewer", "transposed", "same", "view"],
)
def test_resized(function):
    check_export(function, (torch.rand(4, 4),))


def test_resized_to_more():
    with pytest.raises(ConversionError, match="not larger"):
        check_export(lambda x: torch.ops.aten.resize(x, [5, 4])[:2], (torch.rand(4, 4),))


def test_resized_in_another_format():
    options = {"memory_format": torch.channels_last}
    with pytest.raises(ConversionError, match="no converter for torch.channels_last"):
        check_export(
            lambda x: torch.ops.aten.resize(x, [1, 2, 2, 2], **options) + 0, (torch.rand(4, 4),)
        )


def test_as_strided_before_the_part_of_a_storage_it_is_given():
    def fct(x):
        return x.as_strided((2, 2), (1, 2), 3)

    with pytest.raises(ConversionError, match="before a view in its storage"):
        check_export(fct, (torch.randn(20)[5:],))


def test_scatter_in_strides_and_diagonals():
    x, y = torch.randn(4, 4), torch.randn(2, 2)
    check_export(lambda x, y: torch.as_strided_scatter(x, y, (2, 2), (4, 1), 5), (x, y))
    for offset in (0, 1, -2):
        source = torch.randn(4 - abs(offset))
        check_export(lambda x, y: torch.diagonal_scatter(x, y, offset), (x, source))  # noqa: B023
    check_export(
        lambda x, y: torch.diagonal_scatter(x, y, 1, 2, 0),
        (torch.randn(3, 2, 5), torch.randn(2, 2)),
    )


ROLLS = {
    "half": lambda x: torch.roll(x, x.shape[1] // 2, 1),
    "backwards": lambda x: x.roll(-(x.shape[1] // 2), -2),
    "two dimensions": lambda x: torch.roll(x, (x.shape[0] - 1, x.shape[1] // 3), (0, 1)),
    "static dimension": lambda x: torch.roll(x, x.shape[1], 2),
    "flat": lambda x: torch.roll(x, x.shape[1] + 1),
    "one size": lambda x: torch.roll(x, 5, 1),
    "fftshift": lambda x: torch.fft.fftshift(x, dim=1),
    "ifftshift": lambda x: torch.fft.ifftshift(x),
}


@pytest.mark.parametrize("name", sorted(ROLLS))
def test_roll_by_a_size(name):
    check_export(ROLLS[name], (X,), DYNAMIC, OTHERS)


WINDOWS = {
    "last": lambda x: x.unfold(-1, 16, 8),
    "one step": lambda x: x.unfold(2, 3, 1),
    "first": lambda x: x.unfold(0, 1, 1),
    "transposed": lambda x: x.transpose(0, 2).unfold(0, 16, 8),
    "of a part": lambda x: x[:, :, 1:].unfold(2, 4, 3),
    "twice": lambda x: x.unfold(2, 4, 4).unfold(2, 2, 1),
    "weighted": lambda x: (x + 1).unfold(-1, 16, 8) * torch.hann_window(16),
    "frames": lambda x: x.unfold(-1, 16, 8).reshape(x.shape[0], -1, 16),
}


@pytest.mark.parametrize("name", sorted(WINDOWS))
def test_unfold(name):
    x = torch.randn(2, 3, 64)
    others = [(torch.randn(3, 2, 100),), (torch.randn(1, 1, 17),)]
    check_export(WINDOWS[name], (x,), ({0: "b", 1: "c", 2: "t"},), others)
    check_export(WINDOWS[name], (x,))


def test_unfold_of_a_number():
    check_export(lambda x: x.sum().unfold(0, 1, 1), (X,))
