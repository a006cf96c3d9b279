"""The tensor a view is taken from, when the view has another value."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter.exporting.inverse_views import inverse

ops = torch.ops.aten
X = torch.arange(24.0).reshape(4, 6)
VIEWS = {
    "select": (ops.select.int, (1, -2)),
    "slice": (ops.slice.Tensor, (0, 1, 4, 2)),
    "narrow": (ops.narrow.default, (1, 2, 3)),
    "diagonal": (ops.diagonal.default, (1,)),
    "permute": (ops.permute.default, ([-1, 0],)),
    "transpose": (ops.transpose.int, (0, 1)),
    "t": (ops.t.default, ()),
    "view": (ops.view.default, ([2, 12],)),
    "flatten": (ops.flatten.using_ints, ()),
    "unsqueeze": (ops.unsqueeze.default, (1,)),
    "alias": (ops.alias.default, ()),
}


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_inverse(name):
    op, args = VIEWS[name]
    graph = torch.fx.Graph()
    source, value = graph.placeholder("source"), graph.placeholder("value")
    source.meta["val"] = X
    view = graph.call_function(op, (source, *args))
    graph.output(inverse(graph, view, source, value))
    expected = X.clone()
    modified = op(expected, *args)
    modified.mul_(-1)
    found = torch.fx.GraphModule({}, graph)(X.clone(), op(X, *args) * -1)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("op,args", [(ops.expand.default, ([4, 6],)), (ops.view.dtype, ())])
def test_no_inverse(op, args):
    graph = torch.fx.Graph()
    source, value = graph.placeholder("source"), graph.placeholder("value")
    view = graph.call_function(op, (source, *args))
    assert inverse(graph, view, source, value) is None
