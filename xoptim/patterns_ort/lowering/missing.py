"""The operators onnxruntime does not load on the CPU a model is meant for."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from itertools import product
from math import prod

from onnx import NodeProto, TensorProto

from xbuilder.nodes.loading import RECURRENT, loads, refuses
from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.operators.op_schemas import schema_of
from xbuilder.operators.op_traits import FLOATS, HALF_FLOATS
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.kernel_table import KernelTable
from xbuilder.tensors.bits import pretty_type

from ...authoring import GraphQueries, MatchResult, NewNode, Rewrite, RewriteContext
from ...authoring.patterns import matches_nothing

#: combinations of types of an operator beyond which none is tried
_MOST = 256


class MissingRewrite(Rewrite):
    """Base of the rewrites of any operator without kernel. They look at no operator that has
    kernels for all the types of the graph, which is most models."""

    def matcher(
        self, g: GraphQueries, matched: list[MatchResult]
    ) -> Callable[[NodeRecord], MatchResult | None]:
        """Looks at the operators that may have no kernel."""
        look = super().matcher(g, matched)
        if self.listener is not None:
            return look
        types = frozenset(g.facts.all_types())
        keys = frozenset(g.store.bucket_keys())
        found = may_be_missing(kernel_table("CPU"), keys, g.main_opset, types, self.usual)
        if not found:
            return matches_nothing
        return lambda record: look(record) if record.op_type in found else None


@lru_cache(maxsize=256)
def may_be_missing(
    table: KernelTable, keys: Set[Key], opset: int, types: Set[int], usual: Set[int]
) -> frozenset[str]:
    """The operators of the main domain that may have no kernel for some types.

    :param table: the kernels
    :param keys: domains and types of the nodes
    :param opset: version of the main domain
    :param types: the element types of the results
    :param usual: types that do not count without another one

    >>> from xbuilder.runtimes.kernel_table import shipped_kernels
    >>> keys = frozenset({("", "Det"), ("", "Relu")})
    >>> types = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE})
    >>> sorted(may_be_missing(shipped_kernels("CPU"), keys, 22, types, frozenset()))
    ['Det']
    """
    if types <= usual:
        return frozenset()
    return frozenset(
        op_type
        for domain, op_type in keys
        if not domain and _may_be_missing(table, op_type, opset, types, usual)
    )


def _may_be_missing(
    table: KernelTable, op_type: str, opset: int, types: Set[int], usual: Set[int]
) -> bool:
    schema = schema_of(op_type, "", opset)
    if schema is None or op_type in RECURRENT:
        return True
    texts = {kind: f"tensor({pretty_type(kind)})" for kind in types if kind}
    names = [c.type_param_str for c in schema.type_constraints]
    allowed = [set(c.allowed_type_strs) for c in schema.type_constraints]
    for found in allowed:
        if "tensor(float)" in found:  # files give other floats to definitions that ignore them
            found.update(texts[kind] for kind in FLOATS.intersection(texts))
    choices = [[k for k, text in texts.items() if text in found] or [0] for found in allowed]
    if any(not i.is_homogeneous for i in schema.inputs) or prod(map(len, choices)) > _MOST:
        return True
    inputs, outputs = ([v.type_str for v in vs] for vs in (schema.inputs, schema.outputs))
    for chosen in product(*choices):
        if not usual >= set(chosen):
            kinds = dict(zip(names, chosen, strict=True))
            given, made = ([kinds.get(p, 0) for p in ps] for ps in (inputs, outputs))
            if not table.runs(op_type, "", opset, given, made):
                return True
    return False


def require_missing(g: RewriteContext, node: NodeProto, types: Sequence[int]) -> None:
    """Refuses an operator that onnxruntime loads, and a model meant for another processor, which
    may have the kernel.

    :param node: the operator, of the main domain
    :param types: element type of each input, 0 if it is missing or not compared
    """
    g.require(not g.has_processor("CUDA"), "another processor may have the kernel")
    record, facts, table = g.record(node), g.facts, kernel_table("CPU")
    results = [facts[name].type for name in record.outputs]
    # most nodes have a kernel, found without their shapes
    loaded = table.runs(record.op_type, "", g.main_opset, types, results) and not refuses(node)
    if not loaded:
        shapes = [facts[name].shape if name else None for name in record.inputs]
        loaded = loads(table, node, g.main_opset, types, results, shapes)
    g.require(not loaded, "onnxruntime loads the operator")


def missing_types(g: RewriteContext, node: NodeProto) -> list[int]:
    """The element types of the inputs of an operator, 0 for a missing one, once
    :func:`require_missing` accepts it; an unknown type is refused.

    :param node: the operator, of the main domain
    """
    facts = g.facts
    types = [facts[name].type or g.type_of(name) if name else 0 for name in g.inputs(node)]
    require_missing(g, node, types)
    return types


def in_float(g: RewriteContext, name: str, kind: int) -> str | NewNode:
    """A result in float, which holds all numbers of float16 and bfloat16.

    :param name: the result
    :param kind: its element type
    """
    return g.op.Cast(name, to=TensorProto.FLOAT) if kind in HALF_FLOATS else name


def from_float(g: RewriteContext, found: NewNode, kind: int) -> NewNode:
    """A result computed in float, in the type it has to have.

    :param found: the result
    :param kind: float16, bfloat16, or another type that it already has
    """
    made: NewNode = g.op.Cast(found, to=kind) if kind in HALF_FLOATS else found
    return made
