"""Converts a model to a newer opset with the converter of onnx.

The converter of onnx only handles nodes. It loses local functions, metadata and sparse
initializers, and fails on models over 2 GB. It receives a small model without the weights, and only
the nodes it changes are copied back.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.inliner import inline_local_functions
from onnx.numpy_helper import to_array
from onnx.version_converter import convert_version

from xbuilder.errors import OptionError, XoptimError, short_message
from xbuilder.files.model_files import load_model
from xbuilder.files.tensor_sites import is_external, iter_tensor_sites
from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.domains import main_domain
from xbuilder.operators.opsets import opsets_of

#: weights of more bytes are hidden from the converter
_LARGE = 1024
#: operators whose meaning changed and which the converter does not convert: first opset with the
#: new meaning
_LEFT_WRONG = {"GroupNormalization": 21, "Hardmax": 13}


class OpsetConversionError(XoptimError):
    """A model cannot be converted to another opset.

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[2, 3] x) => (float[2, 3] y) { y = Hardmax(x) }"
        >>> try:
        ...     convert_opset(model_from_text(text, opset=12), 13)
        ... except OpsetConversionError as e:
        ...     print(str(e).split(" and ")[0])
        Hardmax has another meaning from opset 13 on
    """


def convert_opset(model: ModelProto | str | Path, target_opset: int) -> ModelProto:
    """Converts a model to a newer opset of the main domain; the other domains are kept.

    Local functions are inlined. Weights are not read and those in other files stay there, so a
    model of any size is converted. The parts that need no conversion are unchanged.

    :param model: the model, it is not modified, or its path
    :param target_opset: the opset to reach
    :return: another model
    :raises OptionError: the target is older than the model, or onnx does not know it
    :raises OpsetConversionError: the converter of onnx cannot do it, the message names the operator

    .. code-block:: python

        model = convert_opset("model.onnx", 21)
        verify_models("model.onnx", model).raise_if_different()
    """
    source = model if isinstance(model, ModelProto) else load_model(model).proto
    opset, newest = opsets_of(source).get("", 1), onnx.defs.onnx_opset_version()
    if not opset <= target_opset <= newest:
        raise OptionError(
            f"target_opset={target_opset}: a model of opset {opset} can be converted to an opset "
            f"between {opset} and {newest}."
        )
    if opset == target_opset:
        converted = ModelProto()
        converted.CopyFrom(source)
        return converted
    return _Conversion(source, opset, target_opset).run()


class _Conversion:
    """One conversion: *light* is the model without its weights, which are inputs."""

    def __init__(self, source: ModelProto, known: int, target: int):
        self.source, self.known, self.target = source, known, target
        self.light = _without_weights(source)
        if source.functions:
            self.light = self._inlined()
        self.nodes = list(self.light.graph.node)
        self.constants = {n.output[0]: n for n in self.nodes if _is_large_constant(n)}
        self._check()

    def _inlined(self) -> ModelProto:
        try:
            return inline_local_functions(self.light, convert_version=True)
        except Exception as e:
            raise OpsetConversionError(f"onnx cannot inline the local functions: {e}") from e

    def _check(self) -> None:
        """Refuses operators that the converter would convert wrongly without an error."""
        for site in iter_tensor_sites(self.light):
            if is_external(site.tensor) and not _makes_one_of(site.node, self.constants):
                raise OpsetConversionError(
                    f"The data of {site.tensor.name!r} is in another file and in a body: it cannot "
                    f"be converted, put it in the model first (xoptim optimize -p none --external "
                    f"embed)."
                )
        for node in all_nodes(self.nodes):
            first = _LEFT_WRONG.get(node.op_type, 0)
            if not main_domain(node.domain) and self.known < first <= self.target:
                raise OpsetConversionError(
                    f"{node.op_type} has another meaning from opset {first} on and the converter "
                    f"of onnx does not change it: choose an opset below {first}."
                )

    def run(self) -> ModelProto:
        """Runs the converter of onnx, then copies the nodes it changed to a copy of the model."""
        light = self._light_graph()
        try:
            changed = convert_version(light, self.target)
        except Exception as e:
            raise OpsetConversionError(
                f"onnx cannot convert the model from opset {self.known} to {self.target}: "
                f"{self._reason(e)}"
            ) from e
        if opsets_of(changed).get("", 1) != self.target:
            raise OpsetConversionError(f"onnx stopped at opset {opsets_of(changed).get('', 1)}.")
        return self._merged(changed.graph)

    def _light_graph(self) -> ModelProto:
        light = ModelProto()
        light.CopyFrom(self.light)
        del light.graph.node[:]
        light.graph.node.extend(n for n in self.nodes if not _makes_one_of(n, self.constants))
        for name, node in self.constants.items():
            light.graph.input.append(_declared(node.attribute[0].t, name))
        return light

    def _reason(self, error: Exception) -> str:
        """The message of the converter, with the operators it may be about."""
        text = short_message(error)
        here = sorted({n.op_type for n in all_nodes(self.nodes) if n.op_type in text})
        return f"{text}{f' (operators {here})' if here else ''}"

    def _merged(self, changed: GraphProto) -> ModelProto:
        result = ModelProto()
        result.CopyFrom(self.source)
        del result.graph.node[:]
        del result.functions[:]
        makers = {tuple(node.output): node for node in self.nodes}
        result.graph.node.extend(self.constants.values())
        for node in changed.node:
            result.graph.node.append(_chosen(node, makers.get(tuple(node.output))))
        known = {i.name for i in self.light.graph.initializer}
        result.graph.initializer.extend(i for i in changed.initializer if i.name not in known)
        if self.source.functions:
            # the inliner may have renamed nodes whose name is the name of a result of a function
            del result.graph.value_info[:]
        del result.opset_import[:]
        kept = opsets_of(self.light)
        used = {main_domain(n.domain) for n in all_nodes(result.graph.node)}
        kept = {d: v for d, v in kept.items() if d in used or not self.source.functions}
        kept[""] = self.target
        result.opset_import.extend(oh.make_opsetid(d, v) for d, v in kept.items())
        lowest = oh.find_min_ir_version_for(list(result.opset_import), ignore_unknown=True)
        result.ir_version = max(result.ir_version, lowest)
        return result


def _is_large_constant(node: NodeProto) -> bool:
    if node.op_type != "Constant" or main_domain(node.domain) or len(node.attribute) != 1:
        return False
    tensor = node.attribute[0].t
    return node.attribute[0].name == "value" and (is_external(tensor) or _is_large(tensor))


def _makes_one_of(node: NodeProto | None, names: Collection[str]) -> bool:
    return node is not None and any(name in names for name in node.output)


def _is_large(tensor: TensorProto) -> bool:
    return int(tensor.ByteSize()) > _LARGE


def _declared(tensor: TensorProto, name: str) -> ValueInfoProto:
    info: ValueInfoProto = oh.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
    return info


def _without_weights(source: ModelProto) -> ModelProto:
    """A copy of a model whose large initializers are inputs."""
    light = ModelProto(
        ir_version=max(source.ir_version, 4),
        opset_import=source.opset_import,
        functions=source.functions,
    )
    graph = light.graph
    graph.name = source.graph.name or "graph"
    graph.node.extend(source.graph.node)
    graph.input.extend(source.graph.input)
    graph.output.extend(source.graph.output)
    graph.value_info.extend(source.graph.value_info)
    inputs = {i.name for i in source.graph.input}
    for tensor in source.graph.initializer:
        # an initializer that is an input as well is not constant
        if tensor.name not in inputs:
            if is_external(tensor) or _is_large(tensor):
                graph.input.append(_declared(tensor, tensor.name))
            else:
                graph.initializer.append(tensor)
    for sparse in source.graph.sparse_initializer:
        dense = TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
        graph.input.append(_declared(dense, sparse.values.name))
    return light


def _chosen(node: NodeProto, original: NodeProto | None) -> NodeProto:
    """The original node if it is unchanged, else the new one with its documentation."""
    if original is None:
        return node
    if _same(node, original):
        return original
    if node.op_type == original.op_type:
        node.doc_string = original.doc_string
        node.metadata_props.extend(original.metadata_props)
        node.device_configurations.extend(original.device_configurations)
    return node


def _same(node: NodeProto, original: NodeProto) -> bool:
    """Whether two nodes compute the same thing. Names of values in bodies must be equal; types of
    results, which the converter adds, do not count."""
    if (node.op_type, main_domain(node.domain)) != (
        original.op_type,
        main_domain(original.domain),
    ):
        return False
    if list(node.input) != list(original.input) or list(node.output) != list(original.output):
        return False
    found = {a.name: a for a in node.attribute}
    expected = {a.name: a for a in original.attribute}
    return found.keys() == expected.keys() and all(
        _same_attribute(found[name], expected[name]) for name in found
    )


def _same_attribute(found: AttributeProto, expected: AttributeProto) -> bool:
    if found.type == AttributeProto.GRAPH:
        return len(found.g.node) == len(expected.g.node) and all(
            _same(n, m) for n, m in zip(found.g.node, expected.g.node, strict=True)
        )
    one, two = (oh.get_attribute_value(a) for a in (found, expected))
    if isinstance(one, TensorProto):
        return np.array_equal(to_array(one), to_array(two))
    return bool(one == two)
