"""The options users write: passes and patterns by name, text."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from xbuilder import GraphBuilder, OptimizationOptions, OptionError
from xbuilder.builder.optimization_options import as_options
from xoptim import EasyPatternOptimization


def test_repr():
    text = repr(OptimizationOptions(patterns=None, constant_size=5))
    assert text == "OptimizationOptions(constant_size=5, patterns=None)"
    text = repr(OptimizationOptions(patterns="TransposeTranspose"))
    assert text == "OptimizationOptions(patterns=['TransposeTransposePattern'])"


def test_notebook():
    text = OptimizationOptions(patterns="TransposeTranspose", constant_size=5)._repr_html_()
    assert "<td>constant_size</td><td>5</td>" in text and "1: TransposeTransposePattern" in text
    assert "max_iter" not in text, "as by default"
    assert "<td>patterns</td><td>none</td>" in OptimizationOptions(patterns=None)._repr_html_()


class Mine(EasyPatternOptimization):
    """Neg(Neg(x)) -> x."""

    def match_pattern(self, g, x):
        """Neg(Neg(x))."""
        return g.op.Neg(g.op.Neg(x))

    def apply_pattern(self, g, x):
        """x."""
        return g.op.Identity(x)


@pytest.mark.parametrize(
    "options",
    [
        {"patterns": "default+onnxruntime"},
        {"patterns": None, "order": None, "processor": "CUDA"},
        {"positive_dims": ["n"], "order": "RANDOM", "passes": ("patterns", "control_flow")},
        {"patterns": "CastCast,MultiHeadAttention3D(with_mask=True)"},
        {"patterns": ["CastCast", Mine()]},
    ],
)
def test_repr_is_pasted(options) -> None:
    made = OptimizationOptions(**options)
    again = eval(repr(made), {"OptimizationOptions": OptimizationOptions, "Mine": Mine})
    assert repr(again) == repr(made) and again.order is made.order
    assert [type(p) for p in again.patterns or ()] == [type(p) for p in made.patterns or ()]


def test_patterns_become_instances() -> None:
    options = OptimizationOptions(patterns="TransposeTranspose,CastCast")
    assert sorted(p.name for p in options.patterns) == ["CastCast", "TransposeTranspose"]
    assert options.patterns is options.patterns and len(OptimizationOptions().patterns) > 50
    assert OptimizationOptions(patterns=None).patterns is None
    assert OptimizationOptions(patterns=[]).patterns == []
    again = copy.deepcopy(dataclasses.replace(options, max_iter=2))
    assert again.patterns == options.patterns and again != options
    options.patterns = "CastCast"
    assert [p.name for p in options.patterns] == ["CastCast"]


@pytest.mark.parametrize("patterns", ["defaultt", "default-Unknown", ["CastCast", "Unknown"], 3])
def test_an_unknown_pattern_is_refused_at_once(patterns: object) -> None:
    with pytest.raises(OptionError, match="pattern"):
        OptimizationOptions(patterns=patterns)


def test_an_unknown_pass_is_refused_at_once() -> None:
    with pytest.raises(OptionError, match="Unknown pass 'zzz', known: .*'patterns'"):
        OptimizationOptions(passes=("patterns", "zzz"))
    with pytest.raises(OptionError, match="Unknown pass 'pattern', did you mean patterns"):
        OptimizationOptions(passes=("pattern",))
    options = OptimizationOptions(passes=["patterns", "order"])
    assert dataclasses.replace(options, verbose=1).passes == ["patterns", "order"]


def test_a_builder_made_without_options_resolves_them_when_they_are_read() -> None:
    builder = GraphBuilder(18)
    assert builder.graph.scope.options.patterns == "default"
    options = builder.optimization_options
    assert len(options.patterns) > 50 and builder.optimization_options is options
    assert builder.child().optimization_options is options


def test_names_of_patterns_are_options():
    found = as_options("CastCast+NotNot")
    assert {p.name for p in found.patterns} == {"CastCast", "NotNot"}
    assert as_options("none").patterns is None and as_options(None) is None
    assert as_options(found) is found
    with pytest.raises(OptionError, match="options expects OptimizationOptions, the names"):
        as_options(3, "options")
