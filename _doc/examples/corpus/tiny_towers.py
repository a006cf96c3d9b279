"""
Pictures of any size for the vision towers of transformers
==========================================================

A tower reads the patches of pictures whose sizes are in ``grid_thw``. What depends on these sizes,
positions, windows, weights of an interpolation, is computed before the model is exported, as
``transformers.vision_utils`` says, and given to the model. ``tiny_models.py`` reads this module.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch

#: function of transformers.vision_utils -> the arguments that replace its results
PRECOMPUTED = {
    "get_vision_attention_seqlens": ("cu_seqlens",),
    "get_vision_cu_seqlens": ("cu_seqlens",),
    "get_vision_position_ids": ("position_ids",),
    "get_vision_nearest_position_ids": ("nearest_position_ids",),
    "get_vision_window_index": ("window_index", "cu_window_seqlens"),
    "get_vision_interpolation_indices_and_weights": ("interp_indices", "interp_weights"),
}
ROWS = 4


def pictures_of_any_size(
    model: torch.nn.Module, config: Any, parameters: Any
) -> tuple[Callable[[int, int], dict[str, torch.Tensor]], dict[str, dict[int, str]]]:
    """How a tower is called: the patches of a picture as wide as a length, their dimensions.

    :param model: the tower
    :param config: its configuration
    :param parameters: the arguments of the model by name
    """
    names = ("hidden_states", "pixel_values")
    patches = next(name for name in names if name in parameters)
    grid = next(name for name in parameters if name.endswith("grid_thw"))
    depth = getattr(config, "temporal_patch_size", getattr(config, "patch_temporal", 1))
    width = 3 * depth * config.patch_size**2

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        sizes = torch.tensor([[1, ROWS, 2 * length]])
        given = {patches: torch.randn(2 * ROWS * length, width), grid: sizes}
        if "merge_sizes" in parameters:
            given["merge_sizes"] = torch.tensor([2])
        with _recorded(type(model)) as found, torch.no_grad():
            model(**given)
        return given | found

    return inputs, {patches: {0: "patches"}}


@contextlib.contextmanager
def _recorded(cls: type) -> Iterator[dict[str, torch.Tensor]]:
    """The results of ``transformers.vision_utils`` while a model of a class runs."""
    found: dict[str, torch.Tensor] = {}
    module = sys.modules[cls.__module__]

    def recorder(function: Callable[..., Any], keys: tuple[str, ...]) -> Callable[..., Any]:
        @wraps(function)
        def record(*args: Any, **kwargs: Any) -> Any:
            results = function(*args, **kwargs)
            values = results if isinstance(results, tuple) else (results,)
            found.update(zip(keys, values, strict=False))
            return results

        return record

    with contextlib.ExitStack() as stack:
        for name, keys in PRECOMPUTED.items():
            if hasattr(module, name):
                function = recorder(getattr(module, name), keys)
                stack.enter_context(patch.object(module, name, function))
        yield found
