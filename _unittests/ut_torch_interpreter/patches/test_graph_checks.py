"""Functions of symbolic numbers that torch refuses, conditions that it does not print."""

from __future__ import annotations

import pytest
import sympy
import torch
from sympy.solvers import inequalities
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.common.errors import ConversionError, ExportError
from torch_interpreter.patches.graph_checks import (
    accept_caught_errors,
    accept_symbolic_functions,
    light_conditions,
)

X = torch.randn(3, 8)
DYNAMIC = ({0: "b", 1: "n"},)


def test_a_function_of_a_size():
    number = torch._sym_log2
    check_export(lambda x: x * number(x.shape[1]), (X,), DYNAMIC, [(torch.randn(2, 5),)])


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (lambda x: x.shape[1] / 2 == 4, r"\(n / 2\) == 4 \(not n=9\)"),
        (lambda x: x.shape[1] / x.shape[0] > 2, r"2 < \(n / b\) \(not b=4\)"),
    ],
    ids=["equal", "ratio"],
)
def test_a_branch_on_a_float_of_sizes(chosen, text):
    with pytest.raises(ConversionError, match=text):
        check_export(lambda x: x * 2 if chosen(x) else x * 3, (X,), DYNAMIC)


def test_a_branch_on_the_bits_of_a_size():
    def model(x):
        return x * 2 if (x.shape[1] << 1) & 3 == 0 else x * 3

    with pytest.warns(UserWarning, match="not n=9"):
        check_export(model, (X,), DYNAMIC)


def test_an_equality_that_is_not_solved():
    """sympy raises an error on it, the one of the export says what is assumed."""

    def model(x):
        n = x.shape[1]
        return x * 2 if n / 8 == (n // 2) // 4 else x * 3

    with pytest.raises(ConversionError, match=r"\(n / 8\) == .* \(not n=9\)"):
        check_export(model, (X,), DYNAMIC)


def test_a_bound_is_its_own_solution(monkeypatch):
    """sympy is called once for what it has to solve, never for the least size of a dimension."""
    n = sympy.Symbol("n", integer=True, positive=True)
    bound, others = {sympy.Ge(n, 2)}, {sympy.Ge(n, 2), sympy.Le(n, 7)}
    solve, asked = inequalities.reduce_inequalities, []
    expected = [solve(bound, n), solve(others, n), solve(others, n)]

    def counted(conditions, symbol):
        asked.append(conditions)
        return solve(conditions, symbol)

    monkeypatch.setattr(inequalities, "reduce_inequalities", counted)
    with accept_symbolic_functions():
        found = [inequalities.reduce_inequalities(c, n) for c in (bound, others, others)]
    assert found == expected
    assert asked == [others]
    assert inequalities.reduce_inequalities is counted


class _Layer(torch.nn.Module):
    """A layer that refuses an argument, or the error of the layer inside it goes through it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x, deep=None):
        x = self.fc(x)
        return x if self.inner is None else self.inner(x, lengths=deep) if deep else self.inner(x)


class _Tries(torch.nn.Module):
    """It calls its layers with an argument they may not have."""

    def __init__(self, name, *layers):
        super().__init__()
        self.name = name
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            try:
                x = layer(x, **{self.name: 2})
            except TypeError:
                x = layer(x)
        return x


@pytest.mark.parametrize("name", ["lengths", "deep"])
def test_a_model_that_catches_the_error_of_a_layer(name):
    """torch leaves the layer, and those it calls, among the modules that are running."""
    model = _Tries(
        name, _Layer(None), torch.nn.Tanh(), _Layer(torch.nn.ReLU()), _Layer(_Layer(None))
    )
    assert check_export(model, (X,), ({0: "b"},), [(torch.randn(2, 8),)])


def test_an_error_that_no_model_catches():
    with pytest.raises(ExportError, match="unexpected keyword argument 'lengths'"):
        check_export(lambda x: torch.nn.Tanh()(x, lengths=2), (X,))


def test_the_tracer_is_restored():
    before = torch.fx.Tracer.call_module
    with pytest.raises(KeyError), accept_caught_errors():
        assert torch.fx.Tracer.call_module is not before
        raise KeyError
    assert torch.fx.Tracer.call_module is before


class _Checked(torch.nn.Module):
    """It assumes something of two sizes, and of a number of its data."""

    def forward(self, x, y, k):
        size = k.item()
        torch._check(size >= 0)
        torch._check(size <= x.shape[0])
        torch._check(x.shape[0] * 3 != y.shape[0] * 5)
        return x[:size], y if x.shape[0] * 2 > y.shape[0] else y + 1


def _conditions(program):
    """The conditions that are nodes, those torch keeps, and the state of its caches."""
    nodes = [n for n in program.graph.nodes if "_assert_scalar" in str(n.target)]
    (x, *_) = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]
    env = x.shape[0].node.shape_env
    kept = {s: [str(a.expr) for a in found] for s, found in env.deferred_runtime_asserts.items()}
    return nodes, kept, env._version_counter


def test_conditions_on_inputs_are_no_nodes():
    dims = ({0: torch.export.Dim.DYNAMIC}, {0: torch.export.Dim.DYNAMIC}, None)

    def export():
        return torch.export.export(
            _Checked(),
            (torch.randn(7, 2), torch.randn(6, 2), torch.tensor(3)),
            dynamic_shapes=dims,
            prefer_deferred_runtime_asserts_over_guards=True,
        )

    nodes, kept, version = _conditions(export())
    with light_conditions():
        fewer, same, lower = _conditions(export())
    assert same == kept and len(kept[None]) == 2 and len(kept) == 2
    assert len(fewer) == len(nodes) - 2 > 0
    assert lower == version - 2
    restored, *_ = _conditions(export())
    assert len(restored) == len(nodes)
