"""Writes the functions that define operators, where onnxruntime has no kernel and ignores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import FunctionProto, NodeProto

from xbuilder.nodes.loading import runs_function
from xbuilder.operators.domains import main_domain
from xbuilder.runtimes.installed import kernel_table

from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import register_pattern
from .definitions import DEFINED, definitions
from .missing import MissingRewrite, missing_types

_SCHEMAS: list[Any] = list(onnx.defs.get_all_schemas())  # the stubs do not tell functions
#: the operators whose definition has a function
_FUNCTIONS = tuple(
    sorted(
        DEFINED.union(
            schema.name
            for schema in _SCHEMAS
            if not schema.domain and (schema.has_function or schema.has_context_dependent_function)
        )
    )
)


@register_pattern("onnxruntime", "fix", roots=_FUNCTIONS)
class MissingFunctionPattern(MissingRewrite):
    """Swish(x, alpha) -> Mul(x, Sigmoid(Mul(x, alpha))): the function that defines an operator.

    1. onnxruntime has no kernel for the operator; it replaces operators by their functions by
       itself, but not those written before one of their operators changed (Swish from opset 25 on),
       nor those that call them (SwiGLU).
    2. It has kernels for the operators of the function, or for those of their functions.
    3. Where it has none, or where the definition has no function, one of ours: Acosh, Hardmax,
       InstanceNormalization in double, NonZero and OneHot in other types.
    """

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
        """See :class:`Rewrite`."""
        return _written(g, node)


def _written(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    types = missing_types(g, node)
    given = [g.type_or_none(name) or 0 for name in node.output]
    known = definitions(node, g.main_opset, types)
    g.require(known, "the definition has no function")
    written = (f for f in known if _runs(g, f, types, given))
    function = g.known(next(written, None), "onnxruntime does not load the function either")
    values: dict[str, Any] = dict(zip(function.input, node.input, strict=False))
    for inner in function.node:
        new = NewNode(
            inner.op_type,
            [values[name] if name else None for name in inner.input],
            {a.name: a for a in inner.attribute},
            main_domain(inner.domain),
            outputs=len(inner.output),
        )
        values.update((name, new[i]) for i, name in enumerate(inner.output))
    results = zip(node.output, function.output, strict=False)
    return {outer: values[name] for outer, name in results if outer}


def _runs(
    g: RewriteContext, function: FunctionProto, types: Sequence[int], given: Sequence[int]
) -> bool:
    table = kernel_table("CPU")
    return runs_function(table, function, g.main_opset, types, given, definitions)
