"""Branches, loops, scans, regions run in another mode."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from ut_torch_interpreter.export_checks import check_export, op_types, run_ort

from torch_interpreter import ConversionError, to_onnx

X = torch.randn(2, 3).abs()


class Cond(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 2)
        self.b = torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda x: self.a(x) + x.shape[0], lambda x: self.b(x) * 2.5, (x,)
        )


class NestedCond(Cond):
    def forward(self, x):
        def negative(x):
            return torch.cond(x.max() > -1, lambda x: self.b(x), lambda x: self.a(x) * 2.5, (x,))

        return torch.cond(x.sum() > 0, lambda x: self.a(x), negative, (x,)) + 1


def test_cond():
    onx = check_export(Cond(), (X,), None, [(-X,)])
    assert "If" in op_types(onx)
    check_export(Cond(), (X,), ({0: "a"},), [(-X,), (torch.cat([X, X]),)])


def _cond_graph(yes, no):
    """The graph torch.compile gives a backend; torch.export accepts no None."""
    return make_fx(lambda x: cond_op(x.sum() > 0, yes, no, (x,)), tracing_mode="fake")(X)


def test_branches_that_return_none():
    graph = _cond_graph(lambda x: (None, x + 1, None), lambda x: (None, x - 1, None))
    onx = to_onnx(graph, (X,))
    assert [o.name for o in onx.graph.output] == ["output_1"]
    for x in (X, -X):
        (got,) = run_ort(onx, [x])
        np.testing.assert_allclose(got, x + 1 if x.sum() > 0 else x - 1)


def test_branches_that_return_only_none():
    graph = _cond_graph(lambda x: (None,), lambda x: (None,))
    wrapped = make_fx(lambda x: (graph(x), x * 2)[1], tracing_mode="fake")(X)
    assert "If" not in op_types(to_onnx(wrapped, (X,)))


def test_one_branch_returns_none():
    graph = _cond_graph(lambda x: (x + 1, x * 2), lambda x: (x - 1, x * 3))
    (output,) = graph.false_graph_0.graph.find_nodes(op="output")
    output.args = ((output.args[0][0], None),)
    with pytest.raises(ConversionError, match="'cond_else_branch' returns None"):
        to_onnx(graph, (X,))


def test_nested_cond():
    check_export(NestedCond(), (X,), ({0: "a"},), [(-X,), (-X / 100,), (X[:1],)])


def test_branches_share_the_weights():
    model = NestedCond()
    onx = check_export(model, (X,), optimize=False)
    assert {n for n, _ in model.named_parameters()} <= {i.name for i in onx.graph.initializer}


def test_cond_with_several_outputs_and_captures():
    def model(x, y):
        return torch.cond(x.sum() > 0, lambda x: (x + y, x * 2), lambda x: (x - y, y + 0), (x,))

    check_export(model, (X, X + 1), None, [(-X, X)])


def test_cond_on_a_dimension():
    def model(x):
        return torch.cond(x.shape[0] > 3, lambda x: x + 1, lambda x: x - 1, (x,))

    check_export(model, (X,), ({0: "a"},), [(torch.cat([X, X]),)])


def test_while_loop():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x, n):
            def body(i, x):
                return i + 1, self.linear(x) * 0.5

            return while_loop(lambda i, x: i < n, body, (torch.tensor(0), x))

    others = [(X, torch.tensor(0)), (X, torch.tensor(6))]
    onx = check_export(Model(), (X, torch.tensor(3)), None, others)
    assert "Loop" in op_types(onx)


def test_scan():
    def model(x, init):
        return scan(lambda c, y: (c + y, (c + y) * 2), init, x, dim=0)

    onx = check_export(model, (torch.randn(5, 3), torch.randn(3)))
    assert "Scan" in op_types(onx)
    check_export(
        model, (torch.randn(5, 3), torch.randn(3)), ({0: "n"}, None), [(torch.randn(7, 3), X[0])]
    )


def test_map():
    """map is a Scan without state, it reads what is around it."""

    def model(x, y):
        return torch_map(lambda a, b: (a @ b, a.sum()), x, y)

    others = [(torch.randn(6, 3, 3), torch.randn(3, 2))]
    args = torch.randn(4, 3, 3), torch.randn(3, 2)
    assert "Scan" in op_types(check_export(model, args, ({0: "n"}, None), others))


def test_regions():
    def no_grad(x):
        with torch.no_grad():
            y = x * 2
        return y + 1

    check_export(no_grad, (X,))

    def autocast(x):
        with torch.autocast("cpu", enabled=False):
            y = x * 2
        return y + 1

    check_export(autocast, (X,))
