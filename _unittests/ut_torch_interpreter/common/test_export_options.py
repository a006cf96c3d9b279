"""Options of the export, strategies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, assert_same, check_export, op_types, run_ort

from torch_interpreter import Dispatcher, ExportError, ExportOptions, to_onnx
from torch_interpreter.exporting.decompositions import has_inplace
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

X = torch.randn(3, 4)
OPTIONS = OptimizationOptions(patterns=None)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x):
        return torch.nn.functional.hardswish(self.linear(x))


@pytest.mark.parametrize(
    "strategy",
    [
        "none",
        "strict",
        "strict-dec",
        "strict-decall",
        "nostrict",
        "nostrict-dec",
        "nostrict-decall",
        "jit",
        "jit-dec",
        "fallback",
        "fallback-dec",
        "fallback-decall",
        "dec",
        "decall",
        "tracing",
        "fake",
        "example",
    ],
)
def test_strategies(strategy):
    options = ExportOptions(strategy=strategy)
    assert options.label == strategy
    model = Model()
    onx = to_onnx(model, (X,), export_options=options, options=OPTIONS)
    assert_same(model(X), run_ort(onx, [X]), 1e-5)
    assert ("HardSwish" in op_types(onx)) == ("dec" not in strategy)
    if not strategy.startswith("jit"):
        check_export(model, (X,), ({0: "a"},), [(X[:1],)], export_options=strategy)


def test_dynamo_is_strict():
    assert ExportOptions(dynamo=True).strict
    onx = to_onnx(Model(), (X,), export_options=ExportOptions(dynamo=True), options=OPTIONS)
    assert "HardSwish" in op_types(onx)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"strategy": "unknown"},
        {"jit": True, "strict": True},
        {"jit": True, "fallback": True},
        {"fake": True, "example_branches": True},
        {"strategy": "fallback", "example_branches": True},
        {"save_ep": "no_folder/prefix"},
        {"save_ep": 3},
        {"save_ep": ("prefix", "1")},
        {"save_ep": ("prefix", 1, 2)},
        {"aten_as_function": "aten.histc.default"},
        {"tracing_module_leaves": {torch.nn.Linear}},
        {"decomposition_table": "some"},
        {"backed_size_oblivious": "maybe"},
    ],
)
def test_wrong_options(kwargs):
    with pytest.raises(OptionError):
        ExportOptions(**kwargs)


def test_decompositions_change_the_graph():
    plain = to_onnx(Model(), (X,), options=OPTIONS)
    decomposed = to_onnx(Model(), (X,), export_options="dec", options=OPTIONS)
    assert "HardSwish" in op_types(plain)
    assert "HardSwish" not in op_types(decomposed)


def test_decomposition_table():
    def mine(x):
        return torch.cos(x)

    options = ExportOptions(decomposition_table={torch.ops.aten.sin.default: mine})
    onx = to_onnx(Fct1(torch.sin), (X,), export_options=options, options=OPTIONS)
    assert op_types(onx) == ["Cos"]


def test_fallback_reports(capsys):
    class StrictOnly(torch.nn.Module):
        def forward(self, x):
            if torch.compiler.is_dynamo_compiling():
                return x * 2
            return x * 2 if x.sum() > -1e6 else x

    options = ExportOptions(strategy="fallback")
    onx = to_onnx(StrictOnly(), (X,), export_options=options, verbose=1, options=OPTIONS)
    text = capsys.readouterr().out
    assert "strategy nostrict failed" in text and "strategy strict works" in text
    assert_same(X * 2, run_ort(onx, [X]), 1e-5)


class Branch(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > -1e6 else x


@pytest.mark.parametrize("dynamic_shapes", [None, ({0: "a"},)], ids=["static", "dynamic"])
def test_fallback_does_not_freeze_a_branch(dynamic_shapes):
    options = ExportOptions(strategy="fallback")
    with pytest.raises(ExportError, match="failed with every strategy") as info:
        to_onnx(Branch(), (X,), export_options=options, dynamic_shapes=dynamic_shapes)
    for name in ExportOptions.FALLBACKS:
        assert name in str(info.value)
    assert not {"jit", "example"} & set(ExportOptions.FALLBACKS)


def test_candidates_of_fallback():
    """A table of decompositions is the one of every strategy that is tried."""

    def names(**kwargs):
        return [o.label for o in ExportOptions(fallback=True, **kwargs).candidates()]

    assert names() == list(ExportOptions.FALLBACKS)
    assert names(decomposition_table="default") == ["nostrict-dec", "strict-dec"]
    assert names(strategy="fallback-decall") == ["nostrict-decall", "strict-decall"]
    table = {torch.ops.aten.sin.default: torch.cos}
    tried = ExportOptions(fallback=True, decomposition_table=table).candidates()
    assert [(o.strict, o.decomposition_table) for o in tried] == [(False, table), (True, table)]


def test_jit_is_asked_for():
    onx = to_onnx(Branch(), (X,), export_options="jit", options=OPTIONS)
    assert_same(X * 2, run_ort(onx, [X]), 1e-5)


def test_remove_inplace():
    def inplace(x):
        y = x + 1
        y.mul_(2)
        return y

    program = torch.export.export(Fct1(inplace), (X,))
    assert has_inplace(program.graph)
    assert not has_inplace(program.run_decompositions({}).graph)
    check_export(inplace, (X,))
    seen = []

    def multiply(g, sts, outputs, x, y):
        seen.append(y)
        return g.op.Mul(x, np.array(y, dtype=np.float32), outputs=outputs)

    for remove in (True, False):
        options = ExportOptions(remove_inplace=remove)
        dispatcher = Dispatcher({"aten::mul_.Tensor": multiply})
        onx = to_onnx(Fct1(inplace), (X,), export_options=options, dispatcher=dispatcher)
        assert_same((X + 1) * 2, run_ort(onx, [X]), 1e-5)
        assert seen == ([] if remove else [2])


def test_operators_without_converter_are_decomposed():
    from torch_interpreter.writing.registry import find_converter

    assert find_converter("aten.special_entr.default") is None
    assert find_converter("aten.hinge_embedding_loss.default") is None
    check_export(lambda x: torch.nn.functional.hinge_embedding_loss(x, torch.ones(3, 4)), (X,))


def test_save_ep(tmp_path):
    prefix = tmp_path / "program"
    options = ExportOptions(save_ep=str(prefix))
    to_onnx(Model(), (X,), export_options=options, options=OPTIONS)
    assert "aten.linear" in (tmp_path / "program.ep.txt").read_text()
    assert isinstance(torch.export.load(f"{prefix}.pt2"), torch.export.ExportedProgram)


@pytest.mark.parametrize("size, saved", [(0, False), (39, False), (40, True)])
def test_save_ep_without_large_weights(tmp_path, size, saved):
    """The weights have 10 floats."""
    options = ExportOptions(save_ep=(tmp_path / "program", size))
    to_onnx(Model(), (X,), export_options=options, options=OPTIONS)
    assert (tmp_path / "program.ep.txt").exists()
    assert (tmp_path / "program.pt2").exists() == saved


def test_validate_ep():
    to_onnx(Model(), (X,), export_options=ExportOptions(validate_ep=1e-4), options=OPTIONS)


def test_strict_failure_message():
    class Refused(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(ExportError, match="What to try") as info:
        to_onnx(Refused(), (X,), export_options="strict")
    assert "strategy strict" in str(info.value)


class _Autocast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            z = torch.relu(y)
            with torch.autocast("cpu", enabled=False):
                w = y.float() @ self.linear.weight
            s = torch.softmax(y, dim=-1)
        return y.float(), z.float(), w, s.float()


@pytest.mark.parametrize("strategy", ["nostrict", "nostrict-dec", "strict", "strict-dec", "decall"])
def test_autocast_regions(strategy):
    x = torch.randn(5, 4)
    check_export(_Autocast(), (x,), ({0: "b"},), [(x[:2],)], atol=2e-2, export_options=strategy)
