"""Every tensor of a model."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper as onh
from ut_xbuilder.files.external_models import EXPECTED_PLACES, make_everywhere, make_model

from xbuilder.files.tensor_sites import is_external, iter_external_tensors, iter_tensor_sites


def test_iter_external_tensors_goes_everywhere():
    model = make_everywhere()
    names = [t.name for t in iter_external_tensors(model)]
    assert {n: names.count(n) for n in names} == EXPECTED_PLACES
    assert len(list(iter_tensor_sites(model))) == len(names)
    assert [t.name for t in iter_external_tensors(model.functions[0])] == [
        "function_default",
        "function_constant",
    ]
    assert next(iter_external_tensors(model.graph.node[1])).name == "constant"


def test_embedded_tensors_are_not_external():
    model = make_model(onh.from_array(np.zeros(3, dtype=np.float32), "W"))
    assert not is_external(model.graph.initializer[0])
    assert list(iter_external_tensors(model)) == []
