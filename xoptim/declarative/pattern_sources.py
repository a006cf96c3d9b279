"""Checks the functions or models that define a pattern, before anything is matched."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from xbuilder.errors import OptionError
from xbuilder.files.tensor_sites import is_external, iter_tensor_sites
from xbuilder.nodes.subgraphs import captured_names, subgraphs_of
from xbuilder.tensors.checks import content_problem

_NAMES: dict[str, int] = dict(TensorProto.DataType.items())
_NUMPY_NAME = re.compile(r"(float|int|uint|complex)\d+|bool_")
#: annotations that give no element type: names of results are strings
_NEUTRAL = (inspect.Parameter.empty, None, Any, str, object)
_NEUTRAL_TEXTS = ("str", "Any", "typing.Any", "object", "None")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def element_type_of(annotation: Any) -> int:
    """Element type an annotation gives, 0 when it gives none.

    :param annotation: `TensorProto.FLOAT`, its name, `np.float32`, `float`, `str`..., or the text
        of one of them, the form python keeps of an annotation in most modules
    :return: one of ``TensorProto.DataType``
    :raises OptionError: if the annotation means something else, a shape for example

    ::

        element_type_of("TensorProto.FLOAT")  # 1
        element_type_of(np.int64)  # 7
    """
    text = annotation.strip("'\" ") if isinstance(annotation, str) else None
    if any(annotation is v for v in _NEUTRAL) or text in _NEUTRAL_TEXTS:
        return 0
    code = None
    if text is not None:
        code = _type_of_name(text.rsplit(".", 1)[-1]) if re.fullmatch(r"[\w.]+", text) else None
    elif isinstance(annotation, type) and annotation in (float, bool):
        code = _NAMES[annotation.__name__.upper()]
    elif isinstance(annotation, int) and not isinstance(annotation, bool):
        code = annotation if annotation in _NAMES.values() else None
    elif isinstance(annotation, np.dtype) or (
        isinstance(annotation, type) and issubclass(annotation, np.generic)
    ):
        code = _type_of_name(np.dtype(annotation).name)
    if code is None:
        raise OptionError(
            f"annotation {annotation!r} is not understood: expected an element type such as "
            "TensorProto.FLOAT, or str; a shape is checked in validate_mapping."
        )
    return code


def _type_of_name(name: str) -> int | None:
    if name.upper() in _NAMES:
        return _NAMES[name.upper()]
    if _NUMPY_NAME.fullmatch(name):
        try:
            return int(oh.np_dtype_to_tensor_dtype(np.dtype(name)))
        except (ValueError, TypeError, KeyError):
            return None
    return None


def input_types(function: Callable[..., Any], what: str) -> tuple[dict[str, int], frozenset[str]]:
    """Inputs of a pattern: the arguments of a function after the graph, with their element types.

    :param function: bound method `match_pattern` or `apply_pattern`
    :param what: its name, for the messages
    :return: name -> element type, 0 for any; the names of those that may be missing
    :raises OptionError: if an argument cannot stand for one result
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as e:
        raise OptionError(f"{what} is expected to be a method: {e}.") from e
    types: dict[str, int] = {}
    optional: set[str] = set()
    for i, parameter in enumerate(parameters):
        if i > 0 and parameter.kind is parameter.VAR_KEYWORD:
            continue  # **kwargs, which receives nothing
        default = parameter.default
        if parameter.kind not in _POSITIONAL or default not in (parameter.empty, None):
            raise OptionError(
                f"{what}: argument {str(parameter)!r} is not expected, every argument after the "
                "graph stands for one result; its default value may be None: the input is optional."
            )
        if i > 0:
            try:
                annotation, may_be_missing = strip_optional(parameter.annotation)
                types[parameter.name] = element_type_of(annotation)
            except OptionError as e:
                raise OptionError(f"{what}, argument {parameter.name!r}: {e}") from e
            if may_be_missing or default is None:
                optional.add(parameter.name)
    if not parameters:
        raise OptionError(f"{what} must have the graph as first argument.")
    return types, frozenset(optional)


def strip_optional(annotation: Any) -> tuple[Any, bool]:
    """An annotation without the part that lets an input be missing, and whether it had one.

    ::

        strip_optional("str | None")  # ("str", True)
    """
    if isinstance(annotation, str):
        text, bar, none = annotation.strip("'\" ").rpartition("|")
        return (text.strip(), True) if bar and none.strip() == "None" else (annotation, False)
    arguments: list[Any] = list(getattr(annotation, "__args__", ()))
    if len(arguments) == 2 and arguments[1] is type(None):
        return arguments[0], True
    return annotation, False


def check_same_inputs(matched: dict[str, int], applied: dict[str, int], name: str) -> None:
    """Checks that `match_pattern` and `apply_pattern` have the same inputs.

    :param matched: the result of :func:`input_types` for the first one
    :param applied: its result for the second one
    :param name: name of the pattern
    :raises OptionError: if their numbers differ, or if a type is only given by the second one;
        one that both give is the one of the first, which is checked
    """
    if len(matched) != len(applied):
        raise OptionError(
            f"Pattern {name}: match_pattern takes {len(matched)} inputs {list(matched)}, "
            f"apply_pattern {len(applied)} {list(applied)}: the same ones are expected."
        )
    for (first, wanted), (second, given) in zip(matched.items(), applied.items(), strict=True):
        if given and not wanted:
            raise OptionError(
                f"Pattern {name}: the type of argument {second!r} of apply_pattern must be given "
                f"to argument {first!r} of match_pattern, which is the one that is checked."
            )


def check_results(outputs: Any, what: str) -> list[str]:
    """Checks the value that `match_pattern` or `apply_pattern` returns.

    :param outputs: the value, one name or several
    :param what: the function, for the messages
    :return: the names
    :raises OptionError: if the value is not made of names
    """
    names = [outputs] if isinstance(outputs, str) else outputs
    right = isinstance(names, (list, tuple)) and all(isinstance(n, str) and n for n in names)
    if not right or not names:
        raise OptionError(f"{what} must return the names of its results, not {outputs!r}.")
    return list(names)


def matchability_error(
    nodes: Iterable[NodeProto], inputs: Sequence[str], outputs: Sequence[str]
) -> str:
    """The reason why a graph cannot be matched.

    :param nodes: its nodes
    :param inputs: names of its inputs
    :param outputs: names of its results
    :return: an empty string if nothing is wrong
    """
    nodes = list(nodes)
    read = {name for node in nodes for name in node.input}
    made = {name for node in nodes for name in node.output}
    unused = [name for name in inputs if name not in read]
    if unused:
        return f"its input {unused[0]!r} is read by no node"
    direct = [name for name in outputs if name not in made]
    if direct:
        return f"its output {direct[0]!r} is not the result of a node"
    if len(set(outputs)) < len(outputs):
        return f"its outputs {list(outputs)} must be different"
    return ""


def capturing_subgraph(nodes: Iterable[NodeProto]) -> str:
    """The name of a subgraph that reads a result of the graph around it: no pattern supports it.

    :param nodes: nodes of a pattern
    :return: an empty string if there is none
    """
    for node in nodes:
        for _, graph in subgraphs_of(node):
            captured = captured_names(graph)
            if captured:
                return f"a subgraph of node {_describe(node)} reads {next(iter(captured))!r}"
    return ""


def check_pattern_model(model: Any, what: str) -> ModelProto:
    """Checks that a model can be one side of a pattern.

    :param model: the argument of the user
    :param what: which one, for the messages
    :return: the model
    :raises OptionError: if it is no model, is empty, not valid, or has functions, sparse
        initializers or subgraphs that read the results of the model
    """
    if not isinstance(model, ModelProto):
        raise OptionError(
            f"The {what} of a pattern must be a ModelProto, not {type(model).__name__}; a file is "
            "loaded with onnx.load."
        )
    graph = model.graph
    reason = ""
    if not graph.output:
        reason = "it is empty, nodes and outputs are expected"
    elif not model.opset_import:
        reason = "it imports no opset"
    elif model.functions:
        reason = "it has local functions, onnx.inliner.inline_local_functions removes them"
    elif graph.sparse_initializer:
        reason = "it has sparse initializers"
    reason = (
        reason
        or _why_not_a_graph(graph)
        or capturing_subgraph(graph.node)
        or _why_no_content(graph)
    )
    if reason:
        raise OptionError(f"The {what} of a pattern cannot be used: {reason}.")
    return model


def _why_not_a_graph(graph: GraphProto) -> str:
    names: set[str] = set()
    for name in [*(i.name for i in graph.input), *(i.name for i in graph.initializer)]:
        if not name or name in names:
            return f"name {name!r} is empty or is the one of several inputs or initializers"
        names.add(name)
    for node in graph.node:
        missing = [n for n in node.input if n and n not in names]
        if missing:
            return (
                f"node {_describe(node)} reads {missing[0]!r} which is no input, no initializer "
                "and no result of a node before it"
            )
        for name in filter(None, node.output):
            if name in names:
                return f"name {name!r} is the one of several results"
            names.add(name)
    lost = [o.name for o in graph.output if o.name not in names]
    return f"nothing computes its output {lost[0]!r}" if lost else ""


def _why_no_content(graph: GraphProto) -> str:
    for tensor, *_ in iter_tensor_sites(graph):
        if is_external(tensor):
            return f"the content of {tensor.name!r} is in another file, onnx.load reads it as well"
        problem = content_problem(tensor)
        if problem:
            return f"tensor {tensor.name!r} is damaged, {problem}"
    return ""


def _describe(node: NodeProto) -> str:
    return f"{node.name!r} ({node.op_type})" if node.name else node.op_type
