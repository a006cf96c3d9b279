"""Random chains of nodes, shared by the tests of folded products and sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from xoptim.testing import optimize_with, run_onnxruntime

#: a model and its inputs
Case = tuple[onnx.ModelProto, dict[str, np.ndarray]]


def check_chain(
    model: onnx.ModelProto, feeds: dict[str, np.ndarray], patterns: Sequence[str], verifies: bool
) -> None:
    """The model after the patterns gives the results of the model before, and is not longer."""
    try:
        expected = run_onnxruntime(model, feeds)
    except Exception:  # constants that do not broadcast
        return
    got = optimize_with(model, list(patterns), verifies)[0]
    assert len(got.graph.node) <= len(model.graph.node)
    for a, b in zip(expected, run_onnxruntime(got, feeds), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(1, np.abs(a).max(initial=0)))


def chain_tests(
    chains: SearchStrategy[Case], patterns: Sequence[str]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Makes two tests of chains: a few of them, and many, which is slow.

    :param chains: makes cases
    :param patterns: the patterns to apply
    """

    def test_of(examples: int) -> Callable[[], None]:
        @settings(max_examples=examples, deadline=None)
        @given(chains)
        def test(case: Case) -> None:
            check_chain(*case, patterns, verifies=examples < 100)

        return test

    return test_of(60), pytest.mark.slow(test_of(1500))
