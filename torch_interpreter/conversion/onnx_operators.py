"""ONNX operators that a model calls itself, with ``torch.onnx.ops``: each becomes one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import torch
from onnx import helper

from xbuilder.support.user_warnings import warn_user

from ..common.errors import ConversionError
from ..dispatch.dispatcher import canonical_name
from ..writing.fx_nodes import source_line
from .interpreter import Handler, Interpreter

#: torch writes the type of an attribute, and where its values are: first, last
_VALUES = {"i": "attr_ints", "f": "attr_floats", "s": "attr_strs"}


def _symbolic(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """torch.onnx.ops.symbolic and symbolic_multi_out: any operator, with any attributes."""
    inputs, op_type, _ = args
    domain, version = kwargs.get("domain") or "", kwargs.get("version")
    if domain in ("", "ai.onnx"):
        domain = ""
        _check_opset(interpreter, node, op_type, version)
    else:
        interpreter.g.add_domain(domain, version)
    keys, values = kwargs.get("metadata_props_keys") or (), kwargs.get("metadata_props_values")
    metadata = dict(zip(keys, values or (), strict=True))
    return _add(interpreter, node, (domain, op_type), inputs, _attributes(kwargs), metadata)


def _attributes(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an operator, from the lists torch makes of them."""
    found = {}
    names, types, places = (kwargs[k] for k in ("attr_keys", "attr_types", "attr_pos"))
    for name, kind, (begin, end) in zip(names, types, places, strict=True):
        values = list(kwargs[_VALUES[kind[0]]])[begin:end]
        found[name] = values if len(kind) > 1 else values[0]
    return found


def _check_opset(
    interpreter: Interpreter, node: torch.fx.Node, op_type: str, version: int | None
) -> None:
    """Refuses an operator of the main domain that is another one at the opset of the model.

    :raises ConversionError: it does not exist, or changed since the version that is asked for
    """
    opset = interpreter.g.main_opset
    since = _since(op_type, opset)
    wanted = since if version is None else _since(op_type, version) or since
    if since is None or since != wanted:
        what = f"is the one of opset {since}" if since else "does not exist"
        raise ConversionError(
            f"{op_type} {what} in a model of opset {opset}, fx node {node.name!r}: use "
            f"to_onnx(..., target_opset={version or 'a newer one'}).\n"
            f"  source: {source_line(node)}"
        )


def _since(op_type: str, opset: int) -> int | None:
    """The version of an operator at an opset, None if it does not exist."""
    if not onnx.defs.has(op_type, opset, ""):
        return None
    return onnx.defs.get_schema(op_type, opset, "").since_version


def _add(
    interpreter: Interpreter,
    node: torch.fx.Node,
    operator: tuple[str, str],
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    metadata: dict[str, str] | None = None,
    named: Sequence[int] = (),
) -> Any:
    """Adds one node; a result nobody reads has no name.

    :param interpreter: the interpreter
    :param node: the fx node
    :param operator: domain and type
    :param inputs: results, None for one that is not given
    :param attributes: attributes, None for one that is not given
    :param metadata: properties of the node
    :param named: results that have a name even if nobody reads them
    """
    fake = node.meta["val"]
    names = interpreter.allocate(node, fake)
    facts = interpreter.facts(node, fake, names)
    several = isinstance(fake, list | tuple)
    read = [not several or facts.is_used(i) for i in range(len(names))]
    outputs = [name if read[i] or i in named else "" for i, name in enumerate(names)]
    while outputs and not outputs[-1]:
        outputs.pop()
    given = ["" if x is None else str(x) for x in inputs]
    while given and not given[-1]:
        given.pop()
    interpreter.g.make_node(
        operator[1],
        given,
        outputs,
        domain=operator[0],
        attributes=[helper.make_attribute(k, v) for k, v in attributes.items() if v is not None],
        metadata_props=metadata or None,
    )
    results = [name if used else None for name, used in zip(names, read, strict=True)]
    return interpreter.record(node, fake, results if several else results[0])


def _operator(op_type: str, version: int) -> Handler:
    """An operator of torch.onnx.ops: its tensors are inputs, its options are attributes."""

    def handle(
        interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        if interpreter.g.main_opset < version:
            raise ConversionError(
                f"{canonical_name(node.target)} needs opset {version}: use "
                f"to_onnx(..., target_opset={version}).\n  source: {source_line(node)}"
            )
        schema = onnx.defs.get_schema(op_type, interpreter.g.main_opset)
        places = {p.name: i for i, p in enumerate(schema.inputs)}
        inputs = [*args, *[None] * (len(places) - len(args))]
        for name in places.keys() & kwargs.keys():
            inputs[places[name]] = kwargs[name]
        options = {
            k: int(v) if isinstance(v, bool) else v for k, v in kwargs.items() if k not in places
        }
        present = _present_results(node, dict(zip(places, inputs, strict=False)), options)
        return _add(interpreter, node, ("", op_type), inputs, options, named=present)

    return handle


def _present_results(
    node: torch.fx.Node, inputs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[int, ...]:
    """The present keys and values of an Attention: onnxruntime computes a past only with both.

    Warns when torch computes other values than the operator does.
    """
    causal, past = options.get("is_causal"), inputs.get("past_key") is not None
    differences = []
    if options.get("softcap") and (causal or inputs.get("attn_mask") is not None):
        differences.append("torch adds the mask before the softcap, ONNX after it")
    if causal and past:
        differences.append("the causal mask of torch ignores the length of the past")
    for difference in differences:
        warn_user(
            f"{difference}: the model gives other values than torch does, "
            f"fx node {node.name!r}.\n  source: {source_line(node)}"
        )
    return (1, 2) if past else ()


ONNX_OPERATORS: dict[str, Handler] = {
    "onnx_symbolic._symbolic.default": _symbolic,
    "onnx_symbolic._symbolic_multi_out.default": _symbolic,
    "onnx.RotaryEmbedding.opset23": _operator("RotaryEmbedding", 23),
    "onnx.Attention.opset23": _operator("Attention", 23),
}
