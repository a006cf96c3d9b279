"""Runs an operator on a wider type, where onnxruntime has no kernel for the type it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import onnx
from onnx import AttributeProto, NodeProto, TensorProto
from onnx.helper import (
    make_attribute,
    make_graph,
    make_model,
    make_opsetid,
    make_tensor_type_proto,
    make_value_info,
)

from xbuilder.nodes.loading import loads_written, refuses
from xbuilder.operators.op_schemas import schema_of
from xbuilder.operators.op_traits import having
from xbuilder.runtimes.installed import kernel_table

from ...authoring import NewNode, NewResult, RewriteContext, RewriteResult
from ...catalogue import register_pattern
from ..kernels import runtime_has_kernel
from .definitions import definitions
from .missing import MissingRewrite, require_missing

_FLOAT, _DOUBLE, _FLOAT16 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
_INT8, _UINT8 = TensorProto.INT8, TensorProto.UINT8
_INT32, _INT64 = TensorProto.INT32, TensorProto.INT64
_FLOATS8 = frozenset(
    {
        TensorProto.FLOAT8E4M3FN,
        TensorProto.FLOAT8E4M3FNUZ,
        TensorProto.FLOAT8E5M2,
        TensorProto.FLOAT8E5M2FNUZ,
    }
)
#: type -> those that hold all its values, the narrowest first; an integer that does not fit in the
#: type when it comes back loses the bits that it would have lost there
WIDER: Mapping[int, tuple[int, ...]] = {
    **dict.fromkeys((_FLOAT16, TensorProto.BFLOAT16), (_FLOAT, _DOUBLE)),
    **dict.fromkeys(_FLOATS8, (_FLOAT,)),
    _FLOAT: (_DOUBLE,),
    TensorProto.BOOL: (_UINT8, _INT32),
    **dict.fromkeys((TensorProto.INT2, TensorProto.INT4), (_INT8, _INT32)),
    **dict.fromkeys((TensorProto.UINT2, TensorProto.UINT4), (_UINT8, _INT32)),
    **dict.fromkeys((_INT8, _UINT8, TensorProto.INT16, TensorProto.UINT16), (_INT32, _INT64)),
    **dict.fromkeys((_INT32, TensorProto.UINT32), (_INT64,)),
}
#: types whose operators have kernels
_USUAL = frozenset({0, _FLOAT, _INT32, _INT64, TensorProto.STRING, TensorProto.UINT64})
#: attributes that give the type of a result
_RESULT_TYPES = ("dtype", "output_datatype")
#: operators that change types or read them as bits, that hold values of any type, or that another
#: rewrite replaces
_NOT_WIDENED = having("owns_graphs") | {
    *("BitCast", "Cast", "CastLike", "Constant", "ImageDecoder", "SequenceConstruct"),
    *("Optional", "OptionalGetElement", "OptionalHasElement"),
    *("DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"),
}
#: operators that compute fractions of integers
_FRACTIONS = frozenset({"Col2Im", "GridSample", "Resize"})
#: operators whose casts are written where a session would insert them
_WRITTEN = frozenset({"Cos", "Log", "Sin"})
_OPERATORS = tuple(
    sorted(
        {
            schema.name
            for schema in onnx.defs.get_all_schemas()
            if not schema.domain and not schema.deprecated and schema.inputs
        }
        - _NOT_WIDENED
    )
)


@register_pattern(
    "onnxruntime",
    "fix",
    roots=_OPERATORS,
    precision="rounding",
    aliases=("MissingCosSin", "MissingRange", "MissingReduceMax", "MissingTopK"),
)
class MissingTypePattern(MissingRewrite):
    """Add(x, y) -> Cast(Add(Cast(x to float), Cast(y to float))) for a type without kernel.

    1. bfloat16, float16 and the floats of 8 bits become float, or double. Casts to a wider type are
       exact; a result is computed in float, then rounded once.
    2. Integers become wider ones, a bool an integer.
    3. Only the inputs whose kernels are missing change; a type that an attribute gives changes too.
    4. The wider operator has a kernel, or the function that defines it has kernels.
    """

    usual = _USUAL

    def rewrite(self, g: RewriteContext, node: NodeProto) -> RewriteResult:
        """See :class:`Rewrite`."""
        if _has_usual_types(g, node):
            return g.no("the kernel exists for this type")
        return _on_wider_types(g, node)


def _on_wider_types(g: RewriteContext, node: NodeProto) -> RewriteResult:
    types = [g.type_of(name) if name else 0 for name in node.input]
    given = [g.type_or_none(name) or 0 if name else 0 for name in node.output]
    g.require(all(t or not name for t, name in zip(given, node.output, strict=True)), "no tensor")
    if types[0] != _FLOAT16 or node.op_type not in _WRITTEN:
        require_missing(g, node, types)
        table, opset = kernel_table("CPU"), g.main_opset
        written = loads_written(table, node, opset, types, given, definitions)
        g.require(not written, "onnxruntime loads the function that defines the operator")
    else:
        g.require(not g.has_processor("CUDA"), "another processor may have the kernel")
        has_kernel = runtime_has_kernel(g, node.op_type, node.input[0])
        g.require(not has_kernel, "the kernel exists for this type")
    wider = next(_loaded(node, g.main_opset, types, given), None)
    new_types, attributes, results = g.known(wider, "onnxruntime has no kernel for a wider type")
    changed = zip(node.input, types, new_types, strict=True)
    casts = {name: g.op.Cast(name, to=new) for name, old, new in changed if old != new}
    made = g.like(node, *[casts.get(name, name) for name in node.input], **attributes)
    return [
        _back(g, made, i, old, new) if old else None
        for i, (old, new) in enumerate(zip(given, results, strict=True))
    ]


def _has_usual_types(g: RewriteContext, node: NodeProto) -> bool:
    """Whether every input and every result of a node has a type whose operators have kernels."""
    facts, record = g.facts, g.record(node)
    for names in (record.inputs, record.outputs):
        for name in names:
            if name and facts[name].type not in _USUAL:
                return False
    return True


def _back(g: RewriteContext, made: NewNode, index: int, old: int, new: int) -> NewNode | NewResult:
    """A result in the type it has to have. Infinite floats of 8 bits stay infinite."""
    result = made if made.outputs == 1 else made[index]
    if old == new:
        return result
    return g.op.Cast(result, to=old, saturate=0 if old in _FLOATS8 else None)


def _loaded(
    node: NodeProto, opset: int, types: Sequence[int], given: Sequence[int]
) -> Iterator[tuple[list[int], dict[str, int], list[int]]]:
    """The wider types that onnxruntime has kernels for, those that change the fewest inputs first:
    the types of the inputs, the attributes that change, the types of the results."""
    table = kernel_table("CPU")
    for new_types, attributes in _choices(node, opset, types):
        pairs = {*zip(types, new_types, strict=True)}
        wider = _widened(node, attributes)
        results = _result_types(wider, opset, new_types, given)
        back = {*zip(results, given, strict=False)}
        if len(results) != len(given) or any(o != n and n not in WIDER.get(o, ()) for n, o in back):
            continue
        casts = [(a, b) for a, b in pairs | back if a != b]
        if all(table.runs("Cast", "", opset, [a], [b]) for a, b in casts) and loads_written(
            table, wider, opset, new_types, results, definitions
        ):
            yield new_types, attributes, results


def _choices(
    node: NodeProto, opset: int, types: Sequence[int]
) -> list[tuple[list[int], dict[str, int]]]:
    """Types that may replace those of a node, with the attributes that say so, the fewest changes
    first; the inputs of one type parameter have one type."""
    schema = schema_of(node.op_type, "", opset)
    if schema is None:
        return []
    last = len(schema.inputs) - 1
    parameters = [schema.inputs[min(i, last)].type_str for i in range(len(types))]
    kinds = {p: t for p, t in zip(parameters, types, strict=True) if t and "(" not in p}
    kinds.update((a.name, a.i) for a in node.attribute if a.name in _RESULT_TYPES)
    narrow = {TensorProto.BOOL} if node.op_type in _FRACTIONS else set()
    options = [(t, *(() if t in narrow else WIDER.get(t, ()))) for t in kinds.values()]
    found = []
    for chosen in product(*options):
        new = dict(zip(kinds, chosen, strict=True))
        if new != kinds:
            changed = [new.get(p, t) if t else 0 for p, t in zip(parameters, types, strict=True)]
            attributes = {n: new[n] for n in _RESULT_TYPES if n in new and new[n] != kinds[n]}
            found.append((changed, attributes))
    return sorted(found, key=lambda c: sum(a != b for a, b in zip(c[0], types, strict=True)))


def _widened(node: NodeProto, attributes: Mapping[str, int]) -> NodeProto:
    """The node alone with other attributes. Kernels refuse a layout that another rewrite removes:
    it is left out."""
    left = {*attributes, "layout"} if refuses(node) else {*attributes}
    kept: list[AttributeProto] = [a for a in node.attribute if a.name not in left]
    kept += [make_attribute(name, value) for name, value in attributes.items()]
    alone = NodeProto(op_type=node.op_type, domain=node.domain, attribute=kept)
    alone.input.extend(f"x{i}" if name else "" for i, name in enumerate(node.input))
    alone.output.extend(f"y{i}" if name else "" for i, name in enumerate(node.output))
    return alone


def _result_types(
    node: NodeProto, opset: int, types: Sequence[int], given: Sequence[int]
) -> list[int]:
    """The types of the results of a node, none if it refuses those of its inputs."""
    inputs = [
        make_value_info(name, make_tensor_type_proto(kind, None))
        for name, kind in zip(node.input, types, strict=True)
        if name
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    model = make_model(
        make_graph([node], "one", inputs, outputs), opset_imports=[make_opsetid("", opset)]
    )
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True)
    except onnx.shape_inference.InferenceError:
        return []
    found = {o.name: o.type.tensor_type.elem_type for o in inferred.graph.output}
    # a result that inference does not know has the type it had
    return [found.get(name) or old for name, old in zip(node.output, given, strict=True)]
