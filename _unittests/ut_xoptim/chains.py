"""Chains of unary operators, an engine that checks everything."""

from __future__ import annotations

from typing import Any

import onnx

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text


def chain(*op_types: str, outputs: str = "", dims: str = "a") -> onnx.ModelProto:
    """Unary operators one after the other: results are r0, r1, ..., Y."""
    names = ["X", *(f"r{i}" for i in range(len(op_types) - 1)), "Y"]
    rows = [f"{names[i + 1]} = {op}({names[i]})" for i, op in enumerate(op_types)]
    body = "\n".join(rows)
    return model_from_text(f"agraph (float[{dims}] X) => (float[{dims}] Y{outputs}) {{ {body} }}")


def engine(model: onnx.ModelProto, patterns: Any, **kwargs: Any) -> GraphBuilderPatternOptimization:
    """An optimizer that checks the store after each iteration."""
    builder = GraphBuilder(model, infer_shapes_options=True)
    kwargs.setdefault("verifies", True)
    return GraphBuilderPatternOptimization(builder, patterns, **kwargs)


def types(optimizer: GraphBuilderPatternOptimization) -> list[str]:
    """Operator types, in order."""
    return [n.op_type for n in optimizer.iter_nodes()]


def applied(rows: list[dict[str, Any]]) -> list[str]:
    """Names of the patterns, in the order of their applications."""
    return [
        r["pattern"][len("apply_") :]
        for r in rows
        if r["pattern"].startswith("apply_") and r["instances"]
    ]
