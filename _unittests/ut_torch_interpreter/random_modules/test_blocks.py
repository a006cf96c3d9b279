"""Random modules give the same results as torch once they are exported and optimized."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.random_modules.blocks import (
    IMAGES,
    SEQUENCES,
    Block,
    Chain,
    RandomModule,
    random_module,
)

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions
from xoptim.testing import run_onnxruntime

#: batch and length of the example, then of what is tried
SIZES = ((2, 12), (3, 12), (1, 12), (2, 20), (1, 8))


def check_module(drawn: RandomModule, patterns: str = "default+onnxruntime") -> None:
    """Exports a module for any batch and any length, compares it with torch at several sizes."""
    axes = {0: "batch", 2: "height", 3: "width"} if drawn.of_images else {0: "batch", 1: "length"}
    model = to_onnx(
        drawn.module,
        (drawn.example(*SIZES[0]),),
        dynamic_shapes=(axes,),
        options=OptimizationOptions(patterns=patterns),
    )
    for sizes in SIZES:
        x = drawn.example(*sizes)
        with torch.no_grad():
            expected = drawn.module(x).numpy()
        (got,) = run_onnxruntime(model, {model.graph.input[0].name: x.numpy()})
        assert got.shape == expected.shape, (drawn.names, sizes)
        largest = np.abs(expected).max()
        np.testing.assert_allclose(
            got, expected, rtol=0, atol=2e-4 * (largest + 1e-3), err_msg=f"{drawn.names}, {sizes}"
        )


@pytest.mark.parametrize("name", IMAGES)
def test_block_of_images(name):
    _check_block(IMAGES[name], name, of_images=True)


@pytest.mark.parametrize("name", SEQUENCES)
def test_block_of_sequences(name):
    _check_block(SEQUENCES[name], name, of_images=False)


def _check_block(make: Block, name: str, of_images: bool) -> None:
    torch.manual_seed(0)
    check_module(RandomModule(Chain([make()], [0]).eval(), [name], of_images))


@pytest.mark.parametrize("seed", range(12))
def test_random_module(seed):
    check_module(random_module(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_modules(seed):
    check_module(random_module(seed), ("default", "default+onnxruntime")[seed % 2])
