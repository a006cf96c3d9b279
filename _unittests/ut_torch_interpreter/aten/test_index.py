"""Reading some elements."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch.nn import functional as F
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
Z = torch.arange(140, dtype=torch.float32).reshape(7, 4, 5)
I = torch.tensor([2, 0, 1, -1])  # noqa: E741
J = torch.tensor([1, 3, 0, 2])
DYNAMIC = ({0: "a"},)
OTHERS = [(Z,), (X[:1],)]
SLICES = {
    "start": lambda x: x[1:],
    "end": lambda x: x[:, :2],
    "negative": lambda x: x[-2:],
    "negative_end": lambda x: x[:-1],
    "step": lambda x: x[:, ::2],
    "both": lambda x: x[1:3, 1:4:2],
    "beyond": lambda x: x[1:100],
    "select": lambda x: x[0],
    "select_last": lambda x: x[..., -1],
    "newaxis": lambda x: x[:, None, 0],
    "narrow": lambda x: x.narrow(1, 1, 2),
    "symbolic": lambda x: x[: x.shape[0] // 2],
    "symbolic_select": lambda x: x[x.shape[0] - 1],
    "everything": lambda x: x[:] + 1,
}


@pytest.mark.parametrize("name", sorted(SLICES))
def test_slice(name):
    check_export(SLICES[name], (X,))
    check_export(SLICES[name], (X,), DYNAMIC, [(Z,)])


def test_whole_slice_is_nothing():
    assert op_types(check_export(lambda x: x[:, :] + 1, (X,), DYNAMIC)) == ["Add"]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_index_select(dim):
    index = torch.tensor([2, 0, 2])
    check_export(
        lambda x, i: x.index_select(dim, i), (X, index), ({0: "a"}, {0: "i"}), [(Z, index[:1])]
    )
    check_export(lambda x, i: x.index_select(dim, i), (X, index.to(torch.int32)))


def test_gather():
    index = torch.tensor([[0, 1], [2, 0]])
    check_export(lambda x, i: x.gather(0, i), (X[:, 0], index))
    check_export(lambda x, i: x.gather(1, i), (X[:2, :, 0], index), ({0: "a"}, {0: "a"}))
    check_export(lambda x, i: x.gather(-1, i), (X[0], torch.tensor([[4], [0], [1], [1]])))
    check_export(lambda x, i: x.gather(0, i), (torch.tensor(2.0), torch.tensor(0)))
    check_export(lambda x, i: x.take(i), (X, torch.tensor([[0, 59], [30, 1]])))


def test_embedding():
    model = torch.nn.Embedding(10, 4, padding_idx=0)
    check_export(model, (torch.tensor([[1, 2], [0, 9]]),), DYNAMIC, [(torch.tensor([[5, 5]]),)])
    check_export(model, (torch.tensor(3),))


ADVANCED = {
    "first": lambda x, i, j: x[i],
    "middle": lambda x, i, j: x[:, i],
    "last": lambda x, i, j: x[..., i],
    "two": lambda x, i, j: x[i, j],
    "last two": lambda x, i, j: x[:, i, j],
    "separated": lambda x, i, j: x[i, :, j],
    "three": lambda x, i, j: x[i, j, i],
    "matrix": lambda x, i, j: x[i.reshape(2, 2)],
    "broadcast": lambda x, i, j: x[i[:, None], j],
    "broadcast separated": lambda x, i, j: x[i[:, None], :, j],
    "slice and index": lambda x, i, j: x[1:, j],
    "list": lambda x, i, j: x[:, [0, 2]],
    "scalar": lambda x, i, j: x[i[0]],
}


@pytest.mark.parametrize("name", sorted(ADVANCED))
def test_index(name):
    check_export(ADVANCED[name], (X, I, J))
    check_export(
        ADVANCED[name],
        (X, I, J),
        ({0: "a"}, None, None),
        [(Z, I, J)],
    )


#: indices whose dimensions are apart, in a tensor of four dimensions
OUTER = {
    "two": lambda x, i, j: x[:, :, i[:, None], j],
    "exchanged": lambda x, i, j: x[:, i, j[:, None]],
    "separated": lambda x, i, j: x[:, i[:, None], :, j],
    "dimensions of one between those of the other": lambda x, i, j: x[
        :, :, i.reshape(2, 1, 2), j[:, None]
    ],
    "three": lambda x, i, j: x[:, i[:, None, None], j[:, None], i],
    "unfold": lambda x, i, j: F.unfold(x, (2, 3), padding=1, stride=2),
}


@pytest.mark.parametrize("name", sorted(OUTER))
def test_indices_along_their_own_dimensions(name):
    x, other = torch.randn(2, 3, 4, 5), torch.randn(3, 3, 6, 7)
    i, j = torch.tensor([0, 2, -1, 1]), torch.tensor([2, 0, 1])
    dims = ({0: "a", 2: "h", 3: "w"}, None, {0: "n"})
    model = check_export(OUTER[name], (x, i, j), dims, [(other, i, torch.tensor([1, 2, 0, -1]))])
    assert "GatherND" not in [node.op_type for node in model.graph.node]


def test_index_int32_and_dynamic_index():
    check_export(lambda x, i: x[i], (X, I.to(torch.int32)))
    check_export(lambda x, i: x[i, i], (X, I), (None, {0: "n"}), [(X, I[:1]), (X, I[:0])])


def test_mask():
    mask = X[:, :, 0] > 5
    check_export(lambda x, m: x[m], (X, mask), ({0: "a"}, {0: "a"}), [(Z, Z[:, :, 0] > 50)])
    check_export(lambda x, m: x[m], (X, X > 30))
    check_export(lambda x, m: x[m], (X, torch.tensor([True, False, True])))
    check_export(lambda x, m: x[:, m], (X, torch.tensor([True, False, True, True])))
    check_export(lambda x, m: x.masked_select(m), (X, X[:1] > 30))


def test_a_mask_of_all_dimensions_or_of_the_first_is_a_compress():
    found = check_export(lambda x, m: x[m], (X, X > 30), ({0: "a"}, {0: "a"}), [(Z, Z < 0)])
    assert op_types(found) == ["Reshape", "Compress"]
    mask, other = X[:, 0, 0] > 5, Z[:, 0, 0] > 0
    found = check_export(lambda x, m: x[m] * 2, (X, mask), ({0: "a"}, {0: "a"}), [(Z, other)])
    assert op_types(found) == ["Compress", "Mul"]
    check_export(lambda x, m: x[m], (X[0, 0], X[0, 0] > 2))


def test_nonzero():
    check_export(lambda x: (x > 20).nonzero(), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.where(x > 20), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.argwhere(x > 20), (X,))


def test_one_hot():
    labels = torch.tensor([[0, 2], [1, 3]])
    check_export(lambda x: torch.nn.functional.one_hot(x, 5), (labels,), DYNAMIC, [(labels[:1],)])


def test_isin():
    tests = torch.tensor([1.0, 30.0, 59.0])
    check_export(torch.isin, (X, tests), ({0: "a"}, None), [(Z, tests)])
    check_export(lambda x, t: torch.isin(x, t, invert=True), (X, tests))


@pytest.mark.parametrize("value", [0.0, -2.5])
def test_positions_in_a_scalar(value):
    check_export(lambda x: (torch.nonzero(x), torch.argwhere(x)), (torch.tensor(value),))
    check_export(lambda x: torch.where(x), (torch.tensor(value),))


def test_isin_nothing():
    check_export(torch.isin, (torch.rand(2, 3), torch.empty(0)))


def test_the_depth_of_one_hot_is_a_scalar():
    onx = check_export(lambda x: torch.nn.functional.one_hot(x, 5), (torch.tensor([1, 4]),))
    typed = onnx.shape_inference.infer_shapes(onx)
    infos = [*typed.graph.value_info, *typed.graph.initializer]
    depth = next(n.input[1] for n in onx.graph.node if n.op_type == "OneHot")
    found = next(i for i in infos if i.name == depth)
    dims = found.dims if isinstance(found, onnx.TensorProto) else found.type.tensor_type.shape.dim
    assert len(dims) == 0


def test_one_hot_of_a_scalar():
    check_export(lambda x: torch.nn.functional.one_hot(x, 5), (torch.tensor(2),))


@pytest.mark.parametrize(("start", "length"), [(-3, 3), (-3, 2), (-1, 1), (1, 2)])
def test_narrow_from_the_end(start, length):
    x = torch.randn(2, 8)
    dims, others = ({1: torch.export.Dim("n", min=4)},), [(torch.randn(2, 5),)]
    check_export(lambda x: x.narrow(1, start, length), (x,), dims, others)
    check_export(lambda x: x.narrow(1, start, length), (x,))


@pytest.mark.parametrize("size", [0, 2, 9])
@pytest.mark.parametrize("shape", [(5,), (2, 3), ()])
def test_nonzero_static(size, shape):
    x = torch.tensor([0.0, 2.0, 0.0, -1.0, 3.0, 0.0])[: max(1, torch.zeros(shape).numel())]
    x = x.reshape(shape)
    dims, others = (({0: "n"},), [(torch.ones(4, *shape[1:]),)]) if shape else (None, ())
    check_export(lambda x: torch.nonzero_static(x, size=size), (x,), dims, others)
    check_export(lambda x: torch.nonzero_static(x, size=size, fill_value=7), (x,))
