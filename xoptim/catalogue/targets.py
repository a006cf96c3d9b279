"""The target that runs the optimized model: the patterns and the operators that suit it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from onnx import ModelProto, NodeProto

from xbuilder.errors import OptionError
from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.domains import main_domain
from xbuilder.operators.opsets import opsets_of
from xbuilder.support.close_names import closest_names

#: the selection and the processor a target replaces, those by default
_PATTERNS, _PROCESSOR = "default", "CPU"


class Target(NamedTuple):
    """A runtime, or all of them.

    :param patterns: the sets it gains from
    :param processor: the processor it is for
    :param standard: whether it only runs the operators onnx defines

    Example::

        >>> TARGETS["onnxruntime-cuda"]
        Target(patterns='default+onnxruntime', processor='CUDA', standard=False)
    """

    patterns: str = _PATTERNS
    processor: str = _PROCESSOR
    standard: bool = True


TARGETS = {
    "any": Target(),
    "onnxruntime": Target("default+onnxruntime", standard=False),
    "onnxruntime-cuda": Target("default+onnxruntime", "CUDA", standard=False),
    "openvino": Target(),
    "tensorrt": Target(processor="CUDA"),
}


def get_target(name: str) -> Target:
    """A target by its name.

    :param name: a key of `TARGETS`
    :raises OptionError: there is none

    ::

        get_target("onnxruntime").patterns  # 'default+onnxruntime'
    """
    if name not in TARGETS:
        close = ", ".join(map(repr, closest_names(name, TARGETS)))
        hint = f"Did you mean {close}?" if close else f"Expected one of {list(TARGETS)}."
        raise OptionError(f"Unknown target {name!r}. {hint}")
    return TARGETS[name]


def target_options(
    name: str | None, patterns: Any, processor: str, public_operators: bool = False
) -> dict[str, Any]:
    """The options of an optimization for a target: the values by default give way to its own.

    :param name: the target, None for no constraint
    :param patterns: the selection of the user
    :param processor: the processor of the user
    :param public_operators: the option of the user
    :raises OptionError: there is no such target
    """
    target = None if name is None else get_target(name)
    if target is not None:
        is_default = isinstance(patterns, str) and patterns == _PATTERNS
        patterns = target.patterns if is_default else patterns
        processor = target.processor if processor == _PROCESSOR else processor
        public_operators = public_operators or target.standard
    return {
        "target": name,
        "patterns": patterns,
        "processor": processor,
        "public_operators": public_operators,
    }


def check_target(name: str, before: ModelProto, after: ModelProto) -> None:
    """Checks that an optimization wrote no operator its target does not run.

    :param name: the target
    :param before: the model that was read: what it holds is not checked
    :param after: the optimized one
    :raises OptionError: onnx does not define one of the new operators, and the target needs it
    """
    if not get_target(name).standard:
        return
    new = sorted(_unknown(after) - _unknown(before))
    if new:
        raise OptionError(
            f"Target {name!r} runs the operators of onnx, the patterns wrote {', '.join(new)}: "
            "choose other patterns, those of the target by default, or --target onnxruntime."
        )


def _unknown(model: ModelProto) -> set[str]:
    """The operators of a model that onnx does not define, local functions excepted."""
    opsets = opsets_of(model)
    local = {(f.domain, f.name) for f in model.functions}
    holders: Iterable[Iterable[NodeProto]] = [f.node for f in model.functions]
    return {
        f"{node.domain}.{node.op_type}" if main_domain(node.domain) else node.op_type
        for nodes in (model.graph.node, *holders)
        for node in all_nodes(nodes)
        if (node.domain, node.op_type) not in local
        and not _is_defined(node.op_type, main_domain(node.domain), opsets)
    }


def _is_defined(op_type: str, domain: str, opsets: dict[str, int]) -> bool:
    """Whether onnx has a schema for an operator."""
    from xbuilder.passes.public_operators import is_public

    known = {"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"}
    return domain in known and is_public(op_type, domain, opsets.get(domain))
