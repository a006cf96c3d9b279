"""torch.linspace and affine_grid of dynamic dimensions."""

from __future__ import annotations

import ctypes

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import Fct1, Fct2, check_export

from torch_interpreter import ExportError, to_onnx

#: what torch.linspace is asked for
SPACES = {
    "bounds": lambda n: torch.linspace(-1, 1, n),
    "named": lambda n: torch.linspace(start=2.5, end=-0.25, steps=n, dtype=torch.float64).float(),
    "size": lambda n: torch.linspace(0.5, n - 0.5, n, dtype=torch.float32),
    "one value": lambda n: torch.linspace(3, 3, n),
    "integers": lambda n: torch.linspace(0, 10, n, dtype=torch.int64),
    "logarithmic": lambda n: torch.logspace(0, 1, n),
    "base 2": lambda n: torch.logspace(start=-1, end=2.5, steps=n, base=2),
    "hann": lambda n: torch.hann_window(n),
    "symmetric hann": lambda n: torch.hann_window(n, periodic=False),
    "hamming": lambda n: torch.hamming_window(n, False),
    "blackman": lambda n: torch.blackman_window(n, dtype=torch.float64).float(),
    "bartlett": lambda n: torch.bartlett_window(n),
    "frequencies": lambda n: torch.fft.fftfreq(n, 0.5),
    "positive frequencies": lambda n: torch.fft.rfftfreq(2 * n - 2),
}


@pytest.mark.parametrize("name", sorted(SPACES))
def test_linspace(name):
    others = [(torch.randn(2, n),) for n in (1, 2, 3, 8, 101)]
    check_export(lambda x: x + SPACES[name](x.shape[1]), (torch.randn(2, 5),), ({1: "n"},), others)


def test_linspace_of_known_steps_is_the_one_of_torch():
    onx = check_export(lambda x: x + torch.linspace(-1, 1, 5), (torch.randn(2, 5),))
    assert [n.op_type for n in onx.graph.node] == ["Add"]


def test_a_tensor_is_no_sequence_of_c_after_the_export():
    """Replacing ``__getitem__`` of tensors would make them one for good: torch.onnx looks at it."""
    is_sequence = ctypes.pythonapi.PySequence_Check
    is_sequence.argtypes = [ctypes.py_object]
    to_onnx(torch.nn.GRU(3, 4), (torch.ones(5, 2, 3),), dynamic_shapes=({0: "n"},))
    assert not is_sequence(torch.ones(()))


def test_linspace_is_the_one_of_torch_after_the_export():
    before = torch.linspace, torch.affine_grid_generator, torch.fft.fftfreq, F.one_hot
    check_export(lambda x: x + torch.linspace(0, 1, x.shape[1]), (torch.randn(2, 5),), ({1: "n"},))
    after = torch.linspace, torch.affine_grid_generator, torch.fft.fftfreq, F.one_hot
    assert after == before


@pytest.mark.parametrize("offset", [0, 1, -1])
@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_indices_of_a_triangle(name, offset):
    others = [(torch.randn(n, m),) for n, m in ((2, 3), (5, 4), (6, 6))]
    check_export(
        lambda x: getattr(torch, name)(x.shape[0], x.shape[1], offset),
        (torch.randn(3, 5),),
        ({0: "n", 1: "m"},),
        others,
    )


def test_classes():
    check_export(
        lambda x: F.one_hot(torch.arange(x.shape[0]) % 3, x.shape[1]),
        (torch.randn(4, 5),),
        ({0: "n", 1: "m"},),
        [(torch.randn(7, 3),)],
    )
    check_export(lambda i: F.one_hot(i, 5), (torch.tensor([1, 4, 0]),), ({0: "n"},))


@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(align_corners):
    dims = {0: "batch", 2: "height", 3: "width"}
    sizes = ((3, 1, 6, 10), (1, 2, 1, 7), (2, 2, 2, 1))
    check_export(
        lambda x, theta: F.affine_grid(theta, x.shape, align_corners=align_corners),
        (torch.randn(2, 2, 5, 8), torch.randn(2, 2, 3)),
        (dims, {0: "batch"}),
        [(torch.randn(s[0], 2, *s[2:]), torch.randn(s[0], 2, 3)) for s in sizes],
    )


def test_affine_grid_of_a_volume():
    dims = {0: "batch", 2: "depth", 3: "height", 4: "width"}
    check_export(
        lambda x, theta: F.affine_grid(theta, x.shape, align_corners=False),
        (torch.randn(2, 1, 4, 5, 6), torch.randn(2, 3, 4)),
        (dims, {0: "batch"}),
        [(torch.randn(3, 1, 2, 3, 7), torch.randn(3, 3, 4))],
    )


def test_a_picture_is_moved():
    dims = {0: "batch", 2: "height", 3: "width"}

    def moved(x, theta):
        return F.grid_sample(x, F.affine_grid(theta, x.shape, False), align_corners=False)

    check_export(
        moved,
        (torch.randn(2, 2, 5, 8), torch.randn(2, 2, 3)),
        (dims, {0: "batch"}),
        [(torch.randn(3, 2, 6, 10), torch.randn(3, 2, 3))],
    )


def test_kronecker_product_of_any_sizes():
    def model(x, y):
        return torch.kron(x, y), torch.kron(x[0], y)

    args, other = (torch.randn(3, 4), torch.randn(5, 6)), (torch.randn(2, 4), torch.randn(7, 6))
    check_export(model, args, ({0: "a"}, {0: "b"}), [other])


def test_what_is_taken_along_a_dimension_of_any_size():
    """Shapes are broadcast, but for this dimension; without one, the tensors are flat."""

    def taken(x, i):
        row = torch.take_along_dim(x[:1], indices=i, dim=1)
        return torch.take_along_dim(x, i, 1), row, x.take_along_dim(i[:1], -1), x.take_along_dim(i)

    def sizes(a, b, n):
        return torch.randn(a, b, n), torch.randint(0, 2, (a, b, n))

    dims = ({0: "a", 1: "b", 2: "n"},) * 2
    check_export(taken, sizes(3, 4, 5), dims, [sizes(2, 6, 3), sizes(5, 2, 9)])


@pytest.mark.parametrize("name", ["randn", "rand"])
@pytest.mark.parametrize("generator", [None, torch.Generator()])
def test_a_draw_of_any_size_with_a_generator(name, generator):
    def model(x):
        draw = getattr(torch, name)
        return x + 0 * draw(x.shape, generator=generator), draw(2, x.shape[1])[:, :0]

    check_export(model, (torch.randn(2, 3),), ({0: "a", 1: "b"},), [(torch.randn(4, 5),)])


POOLS = {
    "default stride": lambda x: F.max_pool1d(x, 3),
    "everything": lambda x: F.max_pool1d(x, 3, stride=2, padding=1, dilation=2, ceil_mode=True),
    "module": torch.nn.MaxPool1d(2, padding=1),
    "lists": lambda x: torch.max_pool1d(x, [2], [1], [0]),
}


@pytest.mark.parametrize("name", sorted(POOLS))
def test_max_pool1d(name):
    pool = POOLS[name]
    dims = {0: "batch", 2: "length"}
    x, others = torch.randn(2, 3, 12), [(torch.randn(4, 3, 17),), (torch.randn(1, 3, 7),)]
    check_export(lambda x: pool(x) * 2, (x,), (dims,), others)
    check_export(lambda x: pool(x) * 2, (x[0],), ({1: "length"},), [(torch.randn(3, 9),)])


WHOLE = {
    "maximum of a length": lambda x: F.max_pool1d(x[0], x.size(3)),
    "mean of a length": lambda x: F.avg_pool1d(x[0], kernel_size=[x.size(3)], stride=1),
    "maximum of pictures": lambda x: F.max_pool2d(x, kernel_size=x.size()[2:]),
    "mean of pictures": lambda x: F.avg_pool2d(x, (x.size(-2), x.size(-1)), ceil_mode=True),
    "maximum of rows": lambda x: F.max_pool2d(x, (3, x.size(3)), (2, 1), padding=(1, 0)),
    "mean of columns": lambda x: F.avg_pool2d(x, (x.size(2), 3), (1, 2), (0, 1), False, False),
    "power": lambda x: F.lp_pool2d(x, 2, x.shape[2:]),
    "mean of volumes": lambda x: F.avg_pool3d(x[None], (1, x.size(2), x.size(3))),
}


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_pooling_over_a_whole_dimension(name):
    dims = {0: "batch", 2: "height", 3: "width"}
    others = [(torch.randn(2, 3, 9, 8),), (torch.randn(3, 3, 4, 7),)]
    check_export(WHOLE[name], (torch.randn(1, 3, 6, 5),), (dims,), others)


def test_a_text_is_pooled():
    class Convolutions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(torch.nn.Conv1d(4, 6, k) for k in (2, 3))

        def forward(self, x):
            found = [torch.relu(part(x.transpose(1, 2))) for part in self.parts]
            return torch.cat([F.max_pool1d(y, y.size(2)).squeeze(2) for y in found], 1)

    onx = check_export(
        Convolutions(),
        (torch.randn(1, 7, 4),),
        ({0: "batch", 1: "length"},),
        [(torch.randn(3, 12, 4),)],
    )
    kinds = [n.op_type for n in onx.graph.node]
    assert kinds.count("ReduceMax") == 2 and "MaxPool" not in kinds


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.avg_pool1d(x, x.size(2), padding=2),
        lambda x: F.avg_pool2d(x[None], (1, x.size(2)), divisor_override=3),
    ],
)
def test_a_pooling_that_also_counts_something_else_is_refused(pool):
    with pytest.raises(ExportError, match="'length'"):
        to_onnx(Fct1(pool), (torch.randn(2, 3, 8),), dynamic_shapes=({2: "length"},))


def test_a_pooling_over_half_a_dimension_warns():
    pool = Fct1(lambda x: F.max_pool1d(x, x.size(2) // 2))
    with pytest.warns(UserWarning, match=r"right for 4 <= length, \(length // 2\) == 4"):
        to_onnx(pool, (torch.randn(2, 3, 8),), dynamic_shapes=({2: "length"},))


#: parts that are longer than the dimension of the arguments, which has 10 columns
PARTS = {
    "the first": lambda x: x[:, :12],
    "the last": lambda x: x[..., -12:] * 2,
    "one column in two of the last": lambda x: x[:, -12::2],
    "after the first": lambda x: x[:, 12:],
    "before the last": lambda x: x[:, :-12],
    "some": lambda x: x[:, -12:-3].mean(1),
    "several": lambda x: torch.cat([x[:, -12:], x[:, :15]], 1),
    "in place": lambda x: (x * 2)[:, :12].add_(1),
    "counted": lambda x: x[:, :12].sum(1) / x[:, :12].shape[1],
}


@pytest.mark.parametrize("name", sorted(PARTS))
@pytest.mark.parametrize("optimize", [False, True])
def test_a_part_that_is_longer_than_the_arguments(name, optimize):
    others = [(torch.randn(3, n),) for n in (7, 11, 12, 13, 16, 24)]
    dims = ({0: "batch", 1: "length"},)
    check_export(PARTS[name], (torch.randn(2, 10),), dims, others, optimize=optimize)
    patterns = {"options": "default"} if optimize else {}
    check_export(PARTS[name], (torch.randn(2, 10),), dims, others, optimize=optimize, **patterns)


@pytest.mark.parametrize("columns", [11, 12, 18])
def test_pieces_that_are_joined_again(columns, recwarn):
    others = [(torch.randn(3, n),) for n in (2, 7, 10, 12, 13, 21)]
    dims = ({0: "batch", 1: "length"},)
    for model in (
        lambda x: torch.cat(x.split(3, 1), 1),
        lambda x: torch.cat(torch.split(x, 4, dim=-1), 1),
        lambda x: torch.cat(x.split(100, 1), 1),
        lambda x: x.split(3, 1)[0] + 1,
    ):
        check_export(model, (torch.randn(2, columns),), dims, others)
    assert not [w for w in recwarn if "right for" in str(w.message)]


def test_pieces_whose_number_counts():
    model = Fct1(lambda x: torch.cat(x.split(3, 1)[::-1], 1))
    with pytest.warns(UserWarning, match="right for length <= 12: a decision"):
        to_onnx(model, (torch.randn(2, 12),), dynamic_shapes=({1: "length"},))


def test_pieces_of_known_lengths():
    onx = check_export(lambda x: x.split(4, 1), (torch.randn(2, 10),), ({0: "batch"},))
    assert [n.op_type for n in onx.graph.node] == ["Split"]


#: lists of tensors of any length that are joined
REPEATED = {
    "stack": lambda x, n: torch.stack([x] * n, dim=1),
    "axis": lambda x, n: torch.stack([x, -x] * n, axis=-1),
    "cat": lambda x, n: torch.cat([x, x + 1] * n, -1),
    "concat": lambda x, n: torch.concat(n * (x,)),
    "twice": lambda x, n: torch.cat([x] * n * 2),
    "known": lambda x, n: torch.cat([torch.stack([x, -x], axis=-1), x.unsqueeze(-1)], axis=-1) * n,
}


@pytest.mark.parametrize("name", sorted(REPEATED))
def test_a_list_of_tensors_of_any_length(name):
    def model(x, y):
        return REPEATED[name](x, y.shape[0])

    sizes = [(torch.randn(2, 3), torch.randn(n, 2)) for n in (4, 1, 7)]
    check_export(model, sizes[0], ({}, {0: "n"}), sizes[1:])


def test_a_list_of_tensors_that_is_read_has_a_known_length():
    def model(x, y):
        many = [x] * y.shape[0]
        return torch.cat([*many, x * 2])

    with pytest.raises(ExportError, match="became 4"):
        to_onnx(Fct2(model), (torch.randn(2, 3), torch.randn(4, 2)), dynamic_shapes=({}, {0: "n"}))
