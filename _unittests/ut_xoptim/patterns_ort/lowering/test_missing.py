"""The standard operators whose newest definition onnxruntime does not load, and what becomes of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import onnx
import pytest
from onnx import NodeProto
from ut_xbuilder.nodes.one_node_models import STANDARD, OneNode, schema_models

from xbuilder import GraphBuilder
from xbuilder.nodes.loading import loads
from xbuilder.operators.opsets import newest_opset
from xbuilder.runtimes.installed import installed_version
from xbuilder.runtimes.kernel_table import shipped_kernels
from xoptim import GraphBuilderPatternOptimization, RewriteContext
from xoptim.authoring.roots import Sweep
from xoptim.engine.matching import Claims, match_pattern
from xoptim.patterns_ort.lowering.functions import MissingFunctionPattern
from xoptim.patterns_ort.lowering.missing import MissingRewrite, may_be_missing
from xoptim.patterns_ort.lowering.types import MissingTypePattern
from xoptim.testing import model_from_text, optimize_with

TABLE = shipped_kernels("CPU")
#: types a model usually has; an operator that onnxruntime loads for some of them is not missing
USUAL = {f"tensor({t})" for t in ("bool", "float", "int32", "int64", "int8", "string", "uint8")}
#: operator without kernel at the newest opset -> the rewrite that makes it load, or why none can
MISSING = {
    "Bernoulli": "MissingBernoulli",
    "CausalConvWithState": "onnxruntime expands it where the shapes are known",
    "DequantizeLinear": "MissingDequantizeLinear",
    "GlobalLpPool": "MissingGlobalLpPool",
    "ImageDecoder": "it reads image files",
    "MaxRoiPool": "the window of a region depends on the region",
    "Multinomial": "MissingMultinomial",
    "Optional": "an optional input or output of the model",
    "OptionalGetElement": "MissingOptionalGetElement",
    "OptionalHasElement": "MissingOptionalHasElement",
    "QuantizeLinear": "MissingQuantizeLinear",
    "RandomNormal": "MissingRandomNormal",
    "RandomNormalLike": "MissingRandomNormal",
    "RandomUniform": "MissingRandomUniform",
    "RandomUniformLike": "MissingRandomUniform",
    "RoiAlign": "MissingRoiAlign",
    "SwiGLU": "MissingFunction",
    "Swish": "MissingFunction",
}
#: attributes without which a rewrite refuses
GIVEN = {
    "RandomNormal": {"shape": [2]},
    "RandomUniform": {"shape": [2]},
    "RoiAlign": {"sampling_ratio": 2},
}


def usual_models(schema: onnx.defs.OpSchema) -> Iterator[OneNode]:
    """Models of the newest definition, on usual types."""
    opset = newest_opset() if schema.domain == "" else schema.since_version
    return (one for one in schema_models(schema, [opset]) if set(one.types) <= USUAL)


def is_loaded(one: OneNode) -> bool:
    return loads(TABLE, one.node(), one.opset, one.elem_types)


def missing_operators() -> set[str]:
    schemas = [s for s in onnx.defs.get_all_schemas() if s.domain in STANDARD and not s.deprecated]
    models = {s.name: list(usual_models(s)) for s in schemas}
    return {name for name, found in models.items() if found and not any(map(is_loaded, found))}


needs_same_runtime = pytest.mark.skipif(
    TABLE.runtime != f"onnxruntime {installed_version()}" or newest_opset() != 28,
    reason="another version of onnxruntime or of onnx is installed than the one of the list",
)


@needs_same_runtime
def test_every_operator_is_listed() -> None:
    assert missing_operators() == set(MISSING)


@needs_same_runtime
@pytest.mark.parametrize(
    "op_type", [op for op, how in MISSING.items() if how.startswith("Missing")]
)
def test_becomes_what_loads(op_type: str) -> None:
    """For one usual type at least."""
    done = []
    for one in usual_models(onnx.defs.get_schema(op_type)):
        given = GIVEN.get(op_type, {})
        model = replace(one, attributes={**one.attributes, **given}).model()
        # pooling needs a rank, a scale is one number
        rank = 4 if op_type == "GlobalLpPool" else 0
        for info in model.graph.input if rank or "quantize" in op_type.lower() else ():
            info.type.tensor_type.shape.SetInParent()
            dims = [onnx.TensorShapeProto.Dimension() for _ in range(rank)]
            info.type.tensor_type.shape.dim.extend(dims)
        found, _, _ = optimize_with(model, MISSING[op_type])
        done.append(op_type not in {n.op_type for n in found.graph.node if not n.domain})
    assert any(done)


def test_no_missing_operator_is_left_out() -> None:
    """An operator that has no kernel for a model may be missing for the types of this model."""
    opset, wrong = newest_opset(), set()
    roots = {*MissingFunctionPattern.roots, *MissingTypePattern.roots}
    for schema in map(onnx.defs.get_schema, sorted(roots)):
        for one in schema_models(schema, [opset]):
            types = frozenset(one.elem_types)
            keys = frozenset({("", schema.name)})
            if not TABLE.runs(schema.name, "", opset, one.elem_types) and not may_be_missing(
                TABLE, keys, opset, types, frozenset()
            ):
                wrong.add((schema.name, types))
    assert wrong == set()


class Counted(MissingRewrite):
    """Refuses what it looks at."""

    roots = "Relu", "Det"
    seen: ClassVar[list[str]] = []

    def rewrite(self, g: RewriteContext, node: NodeProto) -> None:
        self.seen.append(node.op_type)


@pytest.mark.parametrize("kind, expected", [("float", []), ("double", ["Det"])])
def test_only_looks_at_what_may_be_missing(kind: str, expected: list[str]) -> None:
    """Unless a subscriber wants the reasons."""
    text = f"g ({kind}[a, 3, 3] x) => ({kind}[a] y) {{ r = Relu(x) y = Det(r) }}"
    g = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
    pattern, reasons = Counted(), []
    Counted.seen = []
    match_pattern(g, pattern, Sweep(g.store), Claims(), [])
    assert Counted.seen == expected
    pattern.listener = reasons.append
    match_pattern(g, pattern, Sweep(g.store), Claims(), [])
    assert len(reasons) == 2
