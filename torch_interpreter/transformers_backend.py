"""A backend of ``transformers.exporters``, registered when this module is imported.

::

    from torch_interpreter.transformers_backend import XoptimConfig, XoptimExporter

    exporter = XoptimExporter()
    exported = exporter.export_for_generation(model, inputs, XoptimConfig(dynamic=True))
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import onnx_ir
import torch
from transformers.cache_utils import Cache
from transformers.exporters.auto import register_backend
from transformers.exporters.configs import DynamoConfig
from transformers.exporters.exporter_dynamo import (
    DynamoExporter,
    get_auto_dynamic_shapes,
    register_pytree_node,
)
from transformers.exporters.exporter_onnx import OnnxExporter
from transformers.exporters.metadata import ExportMetadata, record_output_structure
from transformers.exporters.runners.runner_onnx import OnnxModelRunner
from transformers.exporters.utils import (
    disambiguate_io_names,
    get_leaf_tensors,
    patch_model_outputs,
    prepare_for_export,
)

from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

from .to_onnx import to_onnx

_shape_options: Any = torch.fx.experimental._config
#: name of the format in the registry of transformers
FORMAT = "xoptim"


@dataclass
class XoptimConfig(DynamoConfig):
    """The options of the export of a model of transformers by this project.

    The other options are those of ``DynamoConfig``: ``dynamic``, ``dynamic_shapes``, ``strict``.

    :param export_format: the name of the format
    :param opset_version: opset of the model, the default one of :func:`to_onnx` if it is None
    :param optimize: optimizes the model
    :param patterns: the rewrites, ``"default+onnxruntime"`` for those of onnxruntime as well
    """

    export_format: str = FORMAT
    opset_version: int | None = None
    optimize: bool = True
    patterns: str = "default"


class XoptimExporter(OnnxExporter):
    """Exports a model of transformers, or its parts, with :func:`torch_interpreter.to_onnx`.

    The graph comes from transformers (``DynamoExporter``), with its patches of models; inputs and
    outputs have the names of its own exporter to ONNX, and its runner runs them.
    """

    export_format = FORMAT
    config_class = XoptimConfig
    required_packages: ClassVar[list[str]] = ["torch", "onnx", "onnx_ir"]
    tested_versions: ClassVar[dict[str, str]] = {}

    def export_for_generation(
        self, model: Any, sample_inputs: MutableMapping[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Exports the parts of a generative model, which take the mask of a text if the example
        has one.

        :param model: a model that generates
        :param sample_inputs: the arguments of its method ``generate``
        :param args: those of the method of transformers
        :param kwargs: those of the method of transformers
        """
        return super().export_for_generation(model, with_padding(sample_inputs), *args, **kwargs)

    def export_program(
        self, model: Any, sample_inputs: MutableMapping[str, Any], config: XoptimConfig
    ) -> tuple[onnx_ir.Model, ExportMetadata]:
        """Exports one graph.

        :param model: a model, or a part of one
        :param sample_inputs: the arguments of its method ``forward``
        :param config: the options
        :return: the model, and what the runner needs to know
        :raises OptionError: the options ask for a quantization, which is for the other exporters
        """
        if config.quantizer is not None:
            raise OptionError(
                "XoptimConfig takes no quantizer: export without one, then quantize the model."
            )
        with registered_caches(cache_classes()):
            return self._export(model, sample_inputs, config)

    def _export(
        self, model: Any, sample_inputs: MutableMapping[str, Any], config: XoptimConfig
    ) -> tuple[onnx_ir.Model, ExportMetadata]:
        model, sample_inputs, flags = prepare_for_export(model, sample_inputs)
        if config.dynamic and config.dynamic_shapes is None:
            config = copy.copy(config)
            config.dynamic_shapes = automatic_shapes(sample_inputs)
        given = {**sample_inputs, **flags}
        # a batch, a cache of one token stay dynamic
        with (
            patch_model_outputs(model) as (_, names, traced),
            _shape_options.patch(backed_size_oblivious=config.dynamic),
        ):
            exported, metadata = DynamoExporter.export_program(self, model, given, config)
        inputs, outputs = disambiguate_io_names(_input_names(sample_inputs), list(names))
        onx = to_onnx(
            exported,
            input_names=inputs,
            output_names=outputs,
            target_opset=config.opset_version,
            optimize=config.optimize,
            options=OptimizationOptions(patterns=config.patterns),
        )
        record_output_structure(metadata, traced[-1])
        return onnx_ir.from_proto(onx), metadata


class XoptimRunner(OnnxModelRunner):
    """Runs an exported graph with onnxruntime.

    :param metadata: what the exporter recorded
    :param session: the graph, loaded
    """

    def __init__(self, metadata: ExportMetadata, session: Any) -> None:
        every = cache_classes()
        with registered_caches(every):
            super().__init__(metadata, session)
        self.caches = [cls for cls in every if cls in _types(self.out_spec)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph on the arguments of the method ``forward``, see ``ModelRunner``."""
        with registered_caches(self.caches):
            return super().__call__(*args, **self._with_mask(kwargs))

    def _with_mask(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments with a mask of ones: transformers gives none if no token is padding."""
        known = self.metadata.kwargs.get("attention_mask", {})
        ids = kwargs.get("input_ids")
        if known.get("rank") != 2 or kwargs.get("attention_mask") is not None or ids is None:
            return kwargs
        dtype = getattr(torch, known["dtype"])
        length = _length_with_past(ids, kwargs)
        mask = torch.ones(ids.shape[0], length, dtype=dtype, device=ids.device)
        return {**kwargs, "attention_mask": mask}


def _length_with_past(ids: torch.Tensor, kwargs: dict[str, Any]) -> int:
    """The number of tokens until the last one, when none is padding. A cache does not always tell:
    a part returns a sliding window without what it dropped, a recurrence counts nothing."""
    positions = kwargs.get("position_ids")
    if isinstance(positions, torch.Tensor) and positions.dim() == 2 and positions.numel():
        return int(positions.max()) + 1
    caches = [v for v in kwargs.values() if isinstance(v, Cache)]
    past = 0
    with contextlib.suppress(ValueError):  # no layer of attention
        past = max((int(c.get_seq_length()) for c in caches), default=0)
    return past + ids.shape[1]


def _types(spec: Any) -> set[type]:
    """The classes a tree of values is made of."""
    return {spec.type}.union(*map(_types, spec.children()))


def cache_classes() -> list[type]:
    """The classes of caches of transformers."""
    found, stack = dict[type, None](), [Cache]
    while stack:
        for cls in stack.pop().__subclasses__():
            if cls not in found:
                found[cls] = None
                stack.append(cls)
    return list(found)


@contextlib.contextmanager
def registered_caches(classes: Collection[type]) -> Iterator[None]:
    """Registers caches as the exporters of transformers do, for a while.

    Their runners read the tensors of a cache in the order of these registrations, those of
    :func:`to_onnx` have another one: they come back after.

    :param classes: classes of caches
    """
    pytree = torch.utils._pytree
    nodes = pytree.SUPPORTED_NODES
    ours = {cls: nodes[cls] for cls in classes if cls in nodes and _is_ours(nodes[cls])}
    written = {cls: pytree.SUPPORTED_SERIALIZED_TYPES[cls] for cls in ours}
    for cls in ours:
        pytree._deregister_pytree_node(cls)
    added = [cls for cls in classes if cls not in nodes]
    for cls in added:
        register_pytree_node(cls)
    try:
        yield
    finally:
        for cls in added:
            pytree._deregister_pytree_node(cls)
        for cls, node in ours.items():
            pytree.register_pytree_node(
                cls,
                node.flatten_fn,
                node.unflatten_fn,
                serialized_type_name=written[cls].serialized_type_name,
                to_dumpable_context=written[cls].to_dumpable_context,
                from_dumpable_context=written[cls].from_dumpable_context,
                flatten_with_keys_fn=node.flatten_with_keys_fn,
            )


def _is_ours(node: Any) -> bool:
    return bool(node.flatten_fn.__module__.startswith(f"{__package__}."))


def automatic_shapes(inputs: MutableMapping[str, Any]) -> dict[str, Any]:
    """Every dimension is dynamic, but the length of an argument of one token, which is a step of a
    decoder: it decides whether the attention is causal.

    :param inputs: the arguments of the method ``forward`` of a model
    """
    shapes: dict[str, Any] = get_auto_dynamic_shapes(dict(inputs))
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and value.dim() > 1 and value.shape[1] == 1:
            shapes[name] = {**shapes[name], 1: torch.export.Dim.STATIC}
    return shapes


def with_padding(inputs: MutableMapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``generate``, where a token is padding if the mask of a text has none:
    transformers drops such a mask, and its parts would not take any.

    :param inputs: the arguments; a mask beside something else than tokens stays as it is

    >>> with_padding({"input_ids": torch.ones(1, 3), "attention_mask": torch.ones(1, 3)})
    {'input_ids': tensor([[1., 1., 1.]]), 'attention_mask': tensor([[0., 1., 1.]])}
    """
    mask = inputs.get("attention_mask")
    is_text = set(inputs) == {"input_ids", "attention_mask"}
    if not is_text or not isinstance(mask, torch.Tensor) or mask.dim() != 2 or mask.shape[1] < 2:
        return dict(inputs)
    if mask.numel() == 0 or not bool(mask.all()):
        return dict(inputs)
    padded = mask.clone()
    padded[0, 0] = 0
    return {**inputs, "attention_mask": padded}


def _input_names(inputs: MutableMapping[str, Any]) -> list[str]:
    """The names of the tensors among some arguments, in the order torch flattens them."""
    names = {id(tensor): name for name, tensor in get_leaf_tensors(inputs).items()}
    leaves = torch.utils._pytree.tree_leaves(dict(inputs))
    return [names[id(leaf)] for leaf in leaves if isinstance(leaf, torch.Tensor)]


register_backend(XoptimExporter, XoptimRunner)
