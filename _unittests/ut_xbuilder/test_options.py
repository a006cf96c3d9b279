"""Options: values that are refused, text."""

from __future__ import annotations

import pytest

from xbuilder import (
    FunctionOptions,
    InferShapesOptions,
    OptimizationOptions,
    OptionError,
    OrderAlgorithm,
)
from xbuilder.options import PassOptions


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


def test_function_options():
    assert not FunctionOptions().export_as_function
    assert FunctionOptions(name="f").export_as_function
    with pytest.raises(OptionError, match="needs a name"):
        FunctionOptions(export_as_function=True)


def test_infer_shapes_options_add_up():
    both = InferShapesOptions.ONNX | InferShapesOptions.BUILDER
    assert both & InferShapesOptions.BUILDER and not both & InferShapesOptions.NEW
    assert not InferShapesOptions.NONE


def test_values_of_passes_stay_as_they_are_written() -> None:
    """Names are resolved by the options users write, and by nothing below them."""
    assert PassOptions(patterns="defaultt").patterns == "defaultt"
    assert PassOptions(profile=True).features == ()
    with pytest.raises(OptionError, match="processor"):
        PassOptions(processor="TPU")
