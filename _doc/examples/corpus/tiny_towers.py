"""
Pictures and sounds for the towers of transformers
==================================================

A tower reads the patches of pictures whose sizes are in ``grid_thw``. What depends on these sizes,
positions, windows, weights of an interpolation, is computed before the model is exported, as
``transformers.vision_utils`` says, and given to the model. So are the bounds of the windows of a
sound. ``tiny_models.py`` reads this module.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch

ROWS = 4
#: how the patches of 8 pixels are given, when they are not flat
SHAPES = {"kimi_k25_vision": (-1, 3, 8, 8), "inkling2_vision": (-1, 16, 16, 3)}


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
    side = config.patch_size
    shape = SHAPES.get(config.model_type, (-1, 3 * depth * side**2))

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        unit = 2 if grid == "image_grid_thw" else 1  # patches, or what is merged into a token
        sizes = torch.tensor([[1, ROWS // unit, 2 * length // unit]])
        given = {
            patches: torch.randn(2 * ROWS * length, 3 * depth * side**2).reshape(shape),
            grid: sizes,
        }
        if "merge_sizes" in parameters:
            given["merge_sizes"] = torch.tensor([2])
        with _recorded(type(model)) as found, torch.no_grad():
            model(**given)
        return given | found

    return inputs, {patches: {0: "patches"}}


def patches_in_a_row(
    model: torch.nn.Module,
) -> tuple[Callable[[int, int], dict[str, torch.Tensor]], dict[str, dict[int, str]]]:
    """How a tower is called that reads the patches of a picture in a row, and how many of them are
    in a column and in a row of the picture.

    :param model: the tower
    """

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        given = {
            "pixel_values": torch.randn(1, 3, 8, 8 * 2 * ROWS * length),
            "target_sizes": torch.tensor([[ROWS, 2 * length]]),
        }
        with _recorded(type(model)) as found, torch.no_grad():
            model(**given)
        return given | found

    return inputs, {"pixel_values": {3: "patches"}}


def sounds_in_windows(
    model: torch.nn.Module, frames: int
) -> tuple[Callable[[int, int], dict[str, torch.Tensor]], dict[str, dict[int, str]]]:
    """How a tower is called that reads sounds in windows of frames.

    :param model: the tower
    :param frames: number of frames of each sound
    """

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        given = {
            "input_features": torch.randn(batch, 16, frames),
            "input_features_mask": torch.ones(batch, frames).long(),
        }
        with _recorded(type(model)) as found, torch.no_grad():
            model(**given)
        return given | found

    batch = {0: "batch"}
    return inputs, {"input_features": batch, "input_features_mask": batch}


class _Names(dict[str, Any]):
    """Named arguments that remember which ones are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def pop(self, key: str, default: Any = None) -> Any:  # type: ignore[override]
        """The default, as nothing was computed before."""
        self.asked.append(key)
        return default


@contextlib.contextmanager
def _recorded(cls: type) -> Iterator[dict[str, torch.Tensor]]:
    """The tensors that the ``get_vision_`` and ``get_audio_`` functions return while a model of a
    class runs, under the names of the arguments they would be read from."""
    found: dict[str, torch.Tensor] = {}
    module = sys.modules[cls.__module__]

    def recorder(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def record(*args: Any, **kwargs: Any) -> Any:
            names = _Names()
            results = function(*args, **{**kwargs, "kwargs": names})
            values = results if isinstance(results, tuple) else (results,)
            if len(names.asked) == len(values):
                pairs = zip(names.asked, values, strict=True)
                found.update({n: v for n, v in pairs if isinstance(v, torch.Tensor)})
            return results

        return record

    with contextlib.ExitStack() as stack:
        for name, function in list(vars(module).items()):
            if (
                name.startswith(("get_vision_", "get_audio_"))
                and "kwargs" in inspect.signature(function).parameters
            ):
                stack.enter_context(patch.object(module, name, recorder(function)))
        yield found
