"""Products of matrices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from onnx.reference import ReferenceEvaluator
from ut_torch_interpreter.export_checks import check_export, op_types

from torch_interpreter import Dispatcher, to_onnx

torch.manual_seed(0)
A, B = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
V = torch.randn(4)


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias):
    model = torch.nn.Linear(4, 3, bias=bias)
    onx = check_export(model, (A,), ({0: "a", 1: "b"},), [(torch.randn(5, 1, 4),), (A[:0],)])
    assert op_types(onx) == ["MatMul", "Add"][: 1 + bias]
    names = {i.name for i in onx.graph.initializer}
    assert names == {name for name, _ in model.named_parameters()}
    check_export(model, (V,))


def test_linear_names_without_optimization():
    onx = check_export(torch.nn.Linear(4, 3), (A,), optimize=False)
    assert op_types(onx) == ["Transpose", "MatMul", "Add"]


def test_matmul():
    check_export(torch.matmul, (A, B), ({0: "a"}, {0: "a"}), [(A[:1], B[:1])])
    check_export(torch.matmul, (A, B[0]))
    check_export(torch.matmul, (A[0], B))
    check_export(torch.matmul, (A, V))
    check_export(torch.matmul, (V, B))
    check_export(torch.bmm, (A, B))
    check_export(torch.mm, (A[0], B[0]))
    check_export(torch.mv, (A[0], V))
    check_export(torch.dot, (V, V * 2))
    check_export(torch.matmul, (A[0].to(torch.int64), B[0].to(torch.int64)))
    check_export(torch.matmul, (A.to(torch.float16), B.to(torch.float16)), atol=1e-2)


@pytest.mark.parametrize("scales", [(1, 1), (0.5, 2), (0, 1), (1, 0.25)], ids=str)
def test_addmm(scales):
    beta, alpha = scales
    bias = torch.randn(3, 5)
    check_export(lambda x, y, z: torch.addmm(x, y, z, beta=beta, alpha=alpha), (bias, A[0], B[0]))
    check_export(lambda x, y, z: torch.baddbmm(x, y, z, beta=beta, alpha=alpha), (bias, A, B))
    check_export(lambda x, y, z: torch.addbmm(x, y, z, beta=beta, alpha=alpha), (bias, A, B))
    check_export(
        lambda x, y, z: torch.addmv(x, y, z, beta=beta, alpha=alpha), (bias[:, 0], A[0], V)
    )


def test_outer():
    check_export(torch.outer, (V, V[:3]))
    check_export(lambda x, y, z: torch.addr(x, y, z, beta=2, alpha=3), (A[0], V[:3], V))


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "bij,bjk->ik", "bij, bjk -> bki", "bij,bjk"])
def test_einsum(equation):
    check_export(
        lambda x, y: torch.einsum(equation, x, y), (A, B), ({0: "a"}, {0: "a"}), [(A[:1], B[:1])]
    )


def test_einsum_of_two_types():
    check_export(lambda x, y: torch.einsum("i,j->ij", x, y), (torch.arange(3), V), ({0: "a"}, {}))


def test_others():
    check_export(lambda x, y: torch.linalg.vecdot(x, y), (A, A + 1))
    check_export(torch.linalg.det, (torch.randn(2, 3, 3),), atol=1e-4)
    check_export(torch.nn.Bilinear(4, 5, 3), (A[0], torch.randn(3, 5)))
    check_export(torch.chain_matmul, (A[0], B[0]))


def nodes_of(onx):
    return [n.op_type for n in onx.graph.node]


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_cdist(p):
    x, y = torch.randn(2, 5, 4), torch.randn(2, 6, 4)
    y[0, 1] = x[0, 2]  # no distance
    dims = ({0: "batch", 1: "rows"}, {0: "batch", 1: "others"})
    others = [(torch.randn(3, n, 4), torch.randn(3, m, 4)) for n, m in ((1, 2), (30, 40))]
    onx = check_export(lambda x, y: torch.cdist(x, y, p), (x, y), dims, others, atol=1e-4)
    assert "MatMul" not in nodes_of(onx)


@pytest.mark.parametrize("mode, rows, multiplies", [
    ("use_mm_for_euclid_dist", 5, True),
    ("use_mm_for_euclid_dist_if_necessary", 5, False),
    ("use_mm_for_euclid_dist_if_necessary", 30, True),
    ("donot_use_mm_for_euclid_dist", 30, False),
])  # fmt: skip
def test_cdist_by_products(mode, rows, multiplies):
    def model(x, y):
        return torch.cdist(x, y, compute_mode=mode), torch.cdist(x[0], y, 1.0, mode)

    args, others = [(torch.randn(2, n, 4), torch.randn(6, 4)) for n in (rows, 28)]
    onx = check_export(model, args, ({0: "batch", 1: "rows"}, None), [others], atol=1e-4)
    assert ("MatMul" in nodes_of(onx)) == multiplies


@pytest.mark.parametrize("p", [0.0, 2.0, float("inf")])
@pytest.mark.parametrize("rows", [2, 30])
def test_cdist_without_columns(p, rows):
    check_export(lambda x, y: torch.cdist(x, y, p), (torch.randn(rows, 0), torch.randn(3, 0)))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, float("inf")])
def test_pdist(p):
    """As many pairs as the rows make, none for one row."""
    x = torch.randn(5, 4)
    x[3] = x[1]  # no distance
    others = [(torch.randn(n, 4),) for n in (0, 1, 2, 8)]
    fct = lambda x: torch.nn.functional.pdist(x, p)  # noqa: E731
    assert "Compress" in nodes_of(check_export(fct, (x,), ({0: "rows"},), others))
    assert "Compress" not in nodes_of(check_export(fct, (x,)))
    check_export(fct, (torch.randn(3, 0),))
    check_export(fct, (x[:1],))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("keepdim", [False, True])
def test_pairwise_distance(p, keepdim):
    x, y = torch.randn(5, 4), torch.randn(1, 4)
    dims, others = ({0: "rows"}, None), [(x[:2], y), (x[:0], y)]
    fct = lambda x, y: torch.pairwise_distance(x, y, p, 0.1, keepdim)  # noqa: E731
    check_export(fct, (x, y), dims, others)
    check_export(fct, (x[0], y[0].double()))


def test_euclidean_distance():
    call = torch.ops.aten._euclidean_dist
    check_export(lambda x, y: call(x, y), (A, torch.randn(2, 6, 4)), atol=1e-4)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_cdist_backward(p):
    rows = torch.randn(2, 6, 4)
    rows[0, 1] = A[0, 2]  # no distance
    grad, distance = torch.randn(2, A.shape[1], 6), torch.cdist(A, rows, p)
    call = torch.ops.aten._cdist_backward
    check_export(lambda g, x, y, d: call(g, x, y, p, d), (grad, A, rows, distance))


def test_trilinear():
    x, y, weight = torch.randn(5, 3), torch.randn(5, 4), torch.randn(2, 3, 4)
    call = torch.ops.aten._trilinear
    check_export(
        lambda x, w, y: call(x, w, y, [1, 3], [0], [1, 2], [2, 3]), (x, weight, y), atol=1e-5
    )


@pytest.mark.parametrize(
    "function", [torch.det, lambda x: torch.ops.aten._linalg_det(x)[0]], ids=["det", "with factors"]
)
def test_det(function):
    x = torch.randn(2, 3, 3)
    assert op_types(check_export(function, (x,), ({0: "n"},), [(x[:1],)], atol=1e-4)) == ["Det"]


@torch.library.custom_op("xoptim_matmul::grouped", mutates_args=())
def _grouped(x: torch.Tensor, w: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """Rows after the last group are zeros, as the operator of transformers gives them."""
    starts = [0, *offs.tolist()]
    groups = [x[a:b] @ m for (a, b), m in zip(pairwise(starts), w, strict=True)]
    return torch.cat([*groups, x.new_zeros(x.shape[0] - starts[-1], w.shape[2])])


@_grouped.register_fake
def _(x, w, offs):
    return x.new_empty(x.shape[0], w.shape[2])


class _Grouped(torch.nn.Module):
    def forward(self, x, w, offs):
        return _grouped(x, w, offs)


def _groups() -> dict[str, Any]:
    from torch_interpreter.writing.registry import find_converter

    return {
        "dispatcher": Dispatcher(
            {
                name: find_converter("aten._grouped_mm.default")
                for name in ("grouped", "grouped_columns")
            }
        )
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_grouped_mm(dtype):
    """Groups without rows, first, last, all of them; rows after the last group; no row."""
    x, weights = torch.randn(6, 4).to(dtype), torch.randn(3, 4, 5).to(dtype)
    ends = [[1, 4, 6], [0, 0, 6], [6, 6, 6], [0, 6, 6], [2, 3, 4], [0, 0, 0]]
    others = [(x, weights, torch.tensor(end, dtype=torch.int32)) for end in ends]
    others.append((x[:0], weights, torch.zeros(3, dtype=torch.int32)))
    check_export(
        _Grouped(),
        (x, weights, torch.tensor([2, 2, 6], dtype=torch.int32)),
        ({0: "rows"}, None, None),
        others,
        atol=1e-5 if dtype == torch.float32 else 1e-2,
        **_groups(),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_grouped_mm_of_any_number_of_groups(dtype):
    x, weights = torch.randn(6, 4).to(dtype), torch.randn(4, 4, 5).to(dtype)

    def given(*ends, rows=6):
        return x[:rows], weights[: len(ends)], torch.tensor(ends, dtype=torch.int32)

    check_export(
        _Grouped(),
        given(2, 2, 6),
        ({0: "rows"}, {0: "groups"}, {0: "groups"}),
        [given(1, 4, 5, 6), given(0, 6), given(2, 4), given(3), given(0, 0, rows=0)],
        atol=1e-2 if dtype == torch.float16 else 1e-5,
        **_groups(),
    )


def test_grouped_mm_bfloat16():
    """onnxruntime multiplies no bfloat16 on CPU, the reference evaluator does."""

    class Model(torch.nn.Module):
        def forward(self, x, w, offs):
            return _grouped(x.bfloat16(), w.bfloat16(), offs).float()

    args = (torch.randn(6, 4), torch.randn(3, 4, 5), torch.tensor([2, 2, 6], dtype=torch.int32))
    onx = to_onnx(Model(), args, **_groups())
    feeds = dict(zip([i.name for i in onx.graph.input], [a.numpy() for a in args], strict=True))
    (got,) = ReferenceEvaluator(onx).run(None, feeds)
    torch.testing.assert_close(Model()(*args), torch.from_numpy(got), atol=0.05, rtol=0.02)


def test_grouped_mm_of_two_matrices():
    x, weights = torch.randn(3, 6), torch.randn(6, 5)

    @torch.library.custom_op("xoptim_matmul::grouped_columns", mutates_args=())
    def grouped_columns(x: torch.Tensor, w: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        starts = [0, *offs.tolist()]
        return torch.stack([x[:, a:b] @ w[a:b] for a, b in pairwise(starts)])

    @grouped_columns.register_fake
    def _(x, w, offs):
        return x.new_empty(offs.shape[0], x.shape[0], w.shape[1])

    check_export(
        lambda x, w, o: grouped_columns(x, w, o),
        (x, weights, torch.tensor([2, 6], dtype=torch.int32)),
        None,
        [(x, weights, torch.tensor([1, 4], dtype=torch.int32))],
        **_groups(),
    )
    check_export(
        lambda x, w, o: grouped_columns(x, w, o),
        (x, weights, torch.tensor([2, 6], dtype=torch.int32)),
        (None, None, {0: "groups"}),
        [(x, weights, torch.tensor(ends, dtype=torch.int32)) for ends in ([1, 4, 4], [5])],
        **_groups(),
    )


def test_vdot_of_real_vectors_is_not_decomposed(capsys):
    check_export(torch.vdot, (V, V * 2), verbose=1)
    assert "decomposed" not in capsys.readouterr().out


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0,)], ids=str)
def test_vecdot_of_nothing(shape):
    check_export(torch.linalg.vecdot, (torch.empty(shape), torch.empty(shape)))


def test_vecdot_of_rows_that_may_be_empty():
    x = torch.rand(3, 4)
    others = [(x[:0], x[:0]), (x[:, :0], x[:, :0])]
    check_export(torch.linalg.vecdot, (x, x + 1), ({0: "a", 1: "b"}, {0: "a", 1: "b"}), others)


def test_outer_of_booleans():
    x, y = torch.tensor([True, False]), torch.tensor([True, True, False])
    check_export(torch.outer, (x, y))
    m = torch.zeros(2, 3, dtype=torch.bool)
    m[1, 2] = True
    check_export(torch.addr, (m, x, y))


def test_addr_ignores_what_beta_removes():
    nan = torch.full((2, 3), torch.nan)
    check_export(lambda x, a, b: torch.addr(x, a, b, beta=0, alpha=2), (nan, V[:2], V[:3]))
