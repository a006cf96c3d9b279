"""Options: values that are refused, text."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from xbuilder import (
    FunctionOptions,
    InferShapesOptions,
    OptimizationOptions,
    OptionError,
    OrderAlgorithm,
)


def test_order():
    assert OptimizationOptions(order="random").order == OrderAlgorithm.RANDOM
    assert OptimizationOptions(order=OrderAlgorithm.NONE).order == OrderAlgorithm.NONE
    assert OptimizationOptions(order=None).order == OrderAlgorithm.NONE
    with pytest.raises(OptionError, match="RANDOM"):
        OptimizationOptions(order="unknown")


@pytest.mark.parametrize(
    "kwargs",
    [
        {"processor": "TPU"},
        {"processor": 3},
        {"constant_size": -1},
        {"constant_size": "1024"},
        {"constant_folding": "Transpose"},
        {"verbose": "a"},
        {"max_iter": 1.5},
        {"recursive": "no"},
        {"order": 2.0},
        {"public_operators": 1},
        {"passes": "patterns"},
        {"passes": ("patterns", 3)},
        {"dump_applied_patterns": 3},
        {"profile": 1},
        {"profile": "profile.html"},
    ],
)
def test_wrong_values(kwargs):
    with pytest.raises(OptionError, match=next(iter(kwargs))):
        OptimizationOptions(**kwargs)


def test_may_fold():
    assert OptimizationOptions().may_fold("Neg")
    assert not OptimizationOptions(constant_folding=False).may_fold("Neg")
    options = OptimizationOptions(constant_folding=["Cast"])
    assert options.may_fold("Cast") and not options.may_fold("Neg")


def test_repr():
    text = repr(OptimizationOptions(patterns=None, constant_size=5))
    assert text == "OptimizationOptions(constant_size=5, patterns=None)"
    text = repr(OptimizationOptions(patterns="TransposeTranspose"))
    assert "TransposeTransposePattern" in text


def test_patterns_become_instances() -> None:
    options = OptimizationOptions(patterns="TransposeTranspose,CastCast")
    assert [p.name for p in options.patterns] == ["TransposeTranspose", "CastCast"]
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


def test_function_options():
    assert not FunctionOptions().export_as_function
    assert FunctionOptions(name="f").export_as_function
    with pytest.raises(OptionError, match="needs a name"):
        FunctionOptions(export_as_function=True)


def test_infer_shapes_options_add_up():
    both = InferShapesOptions.ONNX | InferShapesOptions.BUILDER
    assert both & InferShapesOptions.BUILDER and not both & InferShapesOptions.NEW
    assert not InferShapesOptions.NONE
