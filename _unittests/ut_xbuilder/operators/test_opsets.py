"""Opsets and IR versions."""

from __future__ import annotations

import onnx
import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.operators.opsets import (
    check_opset,
    ir_version_for,
    newest_ml,
    newest_opset,
    opsets_of,
)


def test_newest():
    assert newest_opset() == onnx.defs.onnx_opset_version()
    assert newest_ml() >= 3
    assert ir_version_for(newest_opset()) <= onnx.IR_VERSION


@pytest.mark.parametrize("opset,ir", [(1, 8), (11, 8), (15, 8), (18, 8), (19, 9), (21, 10)])
def test_lowest_ir_version(opset, ir):
    assert ir_version_for(opset) == ir
    imports = [oh.make_opsetid("", opset)]
    assert oh.find_min_ir_version_for(imports) <= ir


def test_versions_grow():
    versions = [ir_version_for(i) for i in range(1, newest_opset() + 2)]
    assert versions == sorted(versions)


@pytest.mark.parametrize("opset", [0, -1, True, 999])
def test_unknown_opset(opset):
    with pytest.raises(OptionError, match=f"Opset {opset} .*between 1 and {newest_opset()}"):
        GraphBuilder(opset)


def test_known_opset():
    assert check_opset(1) == 1
    assert GraphBuilder(newest_opset()).main_opset == newest_opset()


def test_versions_a_model_imports():
    opsets = [oh.make_opsetid("ai.onnx", 18), oh.make_opsetid("d", 2)]
    model = oh.make_model(oh.make_graph([], "g", [], []), opset_imports=opsets)
    assert opsets_of(model) == {"": 18, "d": 2}
