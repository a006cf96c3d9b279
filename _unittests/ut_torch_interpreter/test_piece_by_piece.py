"""The parts of a model that does not export."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import Dispatcher, ExportError, export_piece_by_piece, observe_calls
from xbuilder.errors import OptionError


class Branch(torch.nn.Module):
    """Python looks at the content of a tensor."""

    def forward(self, x):
        return x if x.sum() > 0 else -x


class Block(torch.nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.inside = torch.nn.ModuleList(inside)
        self.unused = torch.nn.Linear(3, 3)

    def forward(self, x, scale=1.0):
        x = self.first(x)
        for module in self.inside:
            x = module(x)
        return x.add_(scale)


CALLS = [(torch.randn(2, 4),), (torch.randn(5, 4), 1.0), {"x": torch.randn(3, 4)}]


def test_a_model_that_exports():
    kept = [c[0].clone() for c in CALLS[:2]]
    piece = export_piece_by_piece(Block([torch.nn.ReLU()]), CALLS)
    assert piece.status == "exported" and not piece.parts and not piece.culprits
    assert piece.calls == 3 and piece.arguments["dynamic_shapes"]["x"] == {0: "x_0"}
    assert all(torch.equal(a, c[0]) for a, c in zip(kept, CALLS, strict=False))


def test_the_part_that_fails():
    model = torch.nn.Sequential(Block([torch.nn.ReLU(), Branch()]), torch.nn.Linear(4, 2))
    piece = export_piece_by_piece(model, [(torch.randn(n, 4),) for n in (2, 5)])
    found = {p.name: p.status for p in piece.walk()}
    assert found == {
        "": "fails in 0",
        "0": "fails in 0.inside.1",
        "0.first": "exported",
        "0.inside.0": "exported",
        "0.inside.1": "fails",
        "1": "exported",
    }
    (culprit,) = piece.culprits
    assert culprit.module is model[0].inside[1] and isinstance(culprit.error, ExportError)
    last = piece.parts[-1]
    x = torch.randn(7, 4)
    assert_same(model[1](x), run_ort(last.onx, [x]), 1e-5)


def test_the_table():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Branch())
    lines = str(export_piece_by_piece(model, [(torch.randn(2, 4),)])).splitlines()
    assert lines[0].split() == ["name", "class", "calls", "nodes", "status"]
    assert lines[1].split() == ["(model)", "Sequential", "1", "fails", "in", "1"]
    assert lines[2].split() == ["0", "Linear", "1", "1", "exported"]
    assert lines[3].split() == ["1", "Branch", "1", "fails"]
    assert "data-dependent expression" in lines[4]
    assert len(lines) == 5


def test_a_part_that_differs():
    def wrong(g, sts, outputs, x):
        return g.op.Neg(x, outputs=outputs)

    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    options = {"dispatcher": Dispatcher({"aten::tanh": wrong})}
    piece = export_piece_by_piece(model, [(torch.randn(2, 4),)], **options)
    assert [p.status for p in piece.walk()] == ["fails in 1", "exported", "differs"]
    unseen = export_piece_by_piece(model, [(torch.randn(2, 4),)], validate_onnx=False, **options)
    assert unseen.status == "exported"


def test_the_cache_of_the_caller_does_not_change():
    transformers = pytest.importorskip("transformers")

    class Step(torch.nn.Module):
        def forward(self, x, cache):
            keys, _ = cache.update(x, x, 0)
            return keys.sum(dim=2)

    def cache(length):
        made = transformers.DynamicCache()
        made.update(torch.randn(1, 2, length, 4), torch.randn(1, 2, length, 4), 0)
        return made

    calls = [(torch.randn(1, 2, 3, 4), cache(n)) for n in (5, 6)]
    piece = export_piece_by_piece(Step(), calls)
    assert piece.status == "exported"
    assert [c.get_seq_length() for _, c in calls] == [5, 6]
    assert [list(s) for s in piece.arguments["dynamic_shapes"]["cache"][0]] == [[2]]


class Top(torch.nn.Module):
    """The middle fails twice, with other arguments."""

    def __init__(self, middle):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.middle = middle
        self.last = torch.nn.Linear(4, 2)

    def forward(self, x):
        x, y = self.middle(self.first(x), x, scale=2.0)
        return self.last(self.middle(y, y=x)[1]).sum(dim=1)


class Pair(torch.nn.Module):
    def forward(self, x, y, scale=1.0):
        return (x, y * scale) if x.sum() > 0 else (y * scale, x)


def test_what_fails_is_an_operator():
    model = Top(Pair())
    calls = [(torch.randn(n, 4),) for n in (2, 5)]
    piece = export_piece_by_piece(model, calls, failing_as_operators=True)
    assert piece.status == "exported without middle" and piece.culprits[0].status == "fails"
    found = [(n.domain, n.op_type, len(n.output)) for n in piece.onx.graph.node]
    assert found.count(("pieces", "Pair_middle", 2)) == 2
    (output,) = piece.onx.graph.output
    assert [d.dim_param for d in output.type.tensor_type.shape.dim] == ["x_0"]
    assert "exported without middle" in str(piece).splitlines()[1]
    assert "forward" not in vars(model.middle)


def test_an_operator_keeps_the_converters_of_the_user():
    def twice(g, sts, outputs, x, *args):
        return g.op.Add(x, x, outputs=outputs)

    dispatcher = Dispatcher({"aten::relu": twice})
    model = torch.nn.Sequential(torch.nn.ReLU(), Branch())
    calls = [(torch.randn(n, 4),) for n in (2, 5)]
    piece = export_piece_by_piece(
        model, calls, validate_onnx=False, failing_as_operators=True, dispatcher=dispatcher
    )
    assert [n.op_type for n in piece.onx.graph.node] == ["Add", "Branch_1"]
    assert list(dispatcher.registered_functions) == ["aten::relu"]


class Squares(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 1e6 else x.new_zeros(x.shape[0] ** 2, 4)


class InPlace(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 1e6 else x.add_(1)


@pytest.mark.parametrize(
    "part, message",
    [(Squares(), r"no dimension of its arguments gives the sizes"), (InPlace(), "it modifies")],
)
def test_what_cannot_be_an_operator(part, message):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), part)
    calls = [(torch.randn(n, 4),) for n in (2, 4, 5)]
    piece = export_piece_by_piece(model, calls, failing_as_operators=True)
    assert piece.status == "fails in 1" and piece.onx is None and not piece.operators
    with pytest.raises(OptionError, match=f"Module '1' cannot be an operator: {message}"):
        raise piece.error


def test_no_call():
    with pytest.raises(OptionError, match="was not called"):
        export_piece_by_piece(torch.nn.ReLU(), [])


def test_observed_calls():
    """The inputs and the outputs of the parts are kept."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Branch())
    with observe_calls(model) as seen:
        for n in (2, 5):
            model(torch.randn(n, 4))
    piece = export_piece_by_piece(model, seen.calls)
    assert piece.arguments["dynamic_shapes"] == {"input": {0: "input_0"}}
    linear, branch = (part.observed.calls[1] for part in piece.parts)
    assert torch.equal(linear.args[0], seen.calls[1].args[0])
    assert torch.equal(linear.result, branch.args[0])
    assert torch.equal(branch.result, seen.calls[1].result)
