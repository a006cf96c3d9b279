"""The facade: random models through every pass, views, parameters."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from ut_xbuilder.graph_checks import check_stores, op_types, optimized, parse, run_onnxruntime
from ut_xbuilder.random_graphs import RandomModel, feeds

from xbuilder import GraphBuilder, OptimizationOptions, VirtualTensor, pretty_onnx


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def check_random(seed, infer, patterns=None):
    model = RandomModel(seed).model()
    content = model.SerializeToString(deterministic=True)
    builder = GraphBuilder(
        model,
        infer_shapes_options=infer,
        optimization_options=OptimizationOptions(patterns=patterns, verifies=patterns is not None),
    )
    after = builder.to_onnx()
    check_stores(builder)
    assert model.SerializeToString(deterministic=True) == content
    before, optimal = session(model), session(after)
    for i in range(6):
        inputs = feeds(i, override=i % 2 == 1)
        expected, got = before.run(None, inputs), optimal.run(None, inputs)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)
    again = GraphBuilder(
        after, infer_shapes_options=infer, optimization_options=OptimizationOptions(patterns=patterns)
    )
    assert sorted(op_types(again.to_onnx())) == sorted(op_types(after)), "not a fixed point"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.booleans())
def test_random_models(seed, infer):
    check_random(seed, infer)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_random_models_with_patterns(seed):
    check_random(seed, True, "default")
