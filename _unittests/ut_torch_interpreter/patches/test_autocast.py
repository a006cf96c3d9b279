"""Regions run with autocast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from torch_interpreter import to_onnx
from torch_interpreter.patches.autocast import graph_modules, has_autocast, without_type_checks

X = torch.randn(3, 4)


class Nested(torch.nn.Module):
    """The second layer is out of a region which is in another one."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.first(x)
            with torch.autocast("cpu", enabled=False):
                return self.second(y.float())


def _checks(program):
    nodes = [n for m in graph_modules(program) for n in m.graph.nodes]
    return [n for n in nodes if "_assert_tensor_metadata" in str(n.target)]


def test_types_dynamo_expects_are_removed_from_a_copy():
    program = torch.export.export(Nested(), (X,), strict=True)
    assert has_autocast(program.graph)
    count = len(_checks(program))
    changed = without_type_checks(program)
    assert count and not _checks(changed)
    to_onnx(program)
    assert len(_checks(program)) == count


def test_no_region():
    assert not has_autocast(torch.export.export(torch.nn.ReLU(), (X,)).graph)


class Disabled(torch.nn.Module):
    """A region that disables autocast, as rotary embeddings and linear attentions have."""

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            y = x.float() * 2
            y += 1
        return y.relu()


def test_a_region_that_disables_autocast_is_not_decomposed(monkeypatch):
    def fails(*args, **kwargs):
        raise AssertionError("torch runs the program again")

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", fails)
    program = torch.export.export(Disabled(), (X,))
    assert any("wrap_with_autocast" in str(n.target) for n in program.graph.nodes)
    model = to_onnx(Disabled(), (X,))
    (found,) = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: X.numpy()})
    np.testing.assert_allclose(found, Disabled()(X).numpy(), rtol=1e-6)


def test_a_region_inside_another_one():
    assert not has_autocast(torch.export.export(Disabled(), (X,)).graph)
    assert has_autocast(torch.export.export(Nested(), (X,)).graph)


def test_the_autocast_of_the_caller():
    """The model is exported as out of it, and says so once."""
    model = torch.nn.Linear(4, 4)
    model.register_forward_hook(lambda module, args, result: result.detach())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with pytest.warns(UserWarning, match="out of torch.autocast") as found:
            onx = to_onnx(model, (X,), validate_onnx=True)
        assert torch.is_autocast_enabled("cpu")
    assert sum("autocast" in str(w.message) for w in found) == 1
    (got,) = ReferenceEvaluator(onx).run(None, {onx.graph.input[0].name: X.numpy()})
    np.testing.assert_allclose(got, model(X).numpy(), rtol=1e-5, atol=1e-6)


def test_a_model_that_is_already_exported(recwarn):
    program = torch.export.export(Disabled(), (X,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        onx = to_onnx(program)
    assert [node.op_type for node in onx.graph.node][-1] == "Relu"
    assert not [w for w in recwarn if "autocast" in str(w.message)]


def exported_module(model):
    return torch.export.export(model, (X,)).module()


@pytest.mark.parametrize("trace", [torch.fx.symbolic_trace, exported_module])
def test_a_model_that_is_already_traced(trace):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    graph = trace(model)
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.warns(UserWarning, match="out of torch.autocast"),
    ):
        onx = to_onnx(graph, (X,), validate_onnx=True)
    (got,) = ReferenceEvaluator(onx).run(None, {onx.graph.input[0].name: X.numpy()})
    np.testing.assert_allclose(got, model(X).detach().numpy(), rtol=1e-5, atol=1e-6)
