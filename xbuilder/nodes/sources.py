"""The source of a node in a torch model: modules, operator, lines of code, kept in its metadata.

The keys and their values are those of ``torch.onnx``, which viewers show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from onnx import NodeProto, StringStringEntryProto

from .functions import all_nodes

#: the modules of a node with their classes, in one text
NAMESPACE = "namespace"
#: paths of the modules a node is in, then its own name
SCOPES = "pkg.torch.onnx.name_scopes"
#: classes of these modules, then the operator of torch
CLASSES = "pkg.torch.onnx.class_hierarchy"
#: lines of the user's code
TRACE = "pkg.torch.onnx.stack_trace"
#: the operators of torch a fused node computes, one a line
FUSED = "xoptim.fused"
#: a fused node lists at most so many operators
_MOST_FUSED = 32


class NodeSource(NamedTuple):
    """The place in a torch model that a node comes from.

    :param scopes: paths of the modules, the model (an empty path) first, then the name of the node
        in the graph of torch
    :param classes: classes of these modules, then the operator of torch
    :param trace: lines of the user's code, as in a traceback
    """

    scopes: tuple[str, ...]
    classes: tuple[str, ...]
    trace: str = ""

    @property
    def module(self) -> str:
        """Path of the innermost module, empty for the model itself."""
        return self.scopes[-2] if len(self.scopes) > 1 else ""

    @property
    def label(self) -> str:
        """One line: the module, the name of the node in the graph of torch, the operator."""
        path = f"{self.module}/" if self.module else ""
        operator = f": {self.classes[-1]}" if self.classes else ""
        return f"{path}{self.scopes[-1]}{operator}"

    def metadata(self) -> dict[str, str]:
        """The metadata of a node that comes from here."""
        spaces = (f"{s}: {c}" for s, c in zip(self.scopes, self.classes, strict=False))
        found = {
            NAMESPACE: "/".join(spaces),
            CLASSES: repr(list(self.classes)),
            SCOPES: repr(list(self.scopes)),
        }
        return {**found, TRACE: self.trace} if self.trace else found

    def called(self, path: str, name: str) -> NodeSource:
        """The source of the call of a function that holds a module the node is in.

        :param path: path of the module
        :param name: name of the function
        """
        count = self.scopes.index(path) + 1
        return NodeSource((*self.scopes[:count], name), (*self.classes[:count], name))

    def within(self, call: NodeSource) -> NodeSource:
        """The source of a node of a function once a call is inlined.

        :param call: the source of the call, ``self`` is relative to the module it calls, or is the
            operator that is the whole function
        :return: ``self`` if it is not relative to it
        """
        if len(self.scopes) == 1 and self.classes == call.classes[-1:]:
            return NodeSource(call.scopes, call.classes, self.trace or call.trace)
        if len(self.scopes) == 1 or self.classes[:1] != call.classes[-2:-1]:
            return self
        inside = [f"{call.module}.{scope}" for scope in self.scopes[1:-1]]
        scopes = *call.scopes[:-1], *inside, self.scopes[-1]
        return NodeSource(scopes, (*call.classes[:-1], *self.classes[1:]), self.trace)


class NodeMetadata:
    """The metadata of a node, read once.

    Attribute `props` holds the pairs, `by_key` the same ones by key, `source` the place in a torch
    model they give, None if they do not say it, `labels` the operators of torch the node computes:
    several for a fused node.

    :param node: the node
    """

    __slots__ = ("by_key", "labels", "props", "source")

    def __init__(self, node: NodeProto):
        self.props = node.metadata_props[:]
        by_key = self.by_key = dict[str, StringStringEntryProto]()
        for p in self.props:
            by_key[p.key] = p
        scopes, classes = by_key.get(SCOPES), by_key.get(CLASSES)
        trace, fused = by_key.get(TRACE), by_key.get(FUSED)
        self.source, alone = _source_and_labels(
            "" if scopes is None else scopes.value,
            "" if classes is None else classes.value,
            "" if trace is None else trace.value,
        )
        written = "" if fused is None else fused.value
        self.labels: Sequence[str] = written.split("\n") if written else alone


def source_of(node: NodeProto) -> NodeSource | None:
    """The source of a node, None if its metadata does not say it.

    >>> node = NodeProto(op_type="Relu")
    >>> write_source(node, NodeSource(("", "act", "relu"), ("M", "ReLU", "aten.relu.default")))
    >>> found = source_of(node)
    >>> found.module, found.label
    ('act', 'act/relu: aten.relu.default')

    :param node: a node
    """
    return NodeMetadata(node).source


def write_source(node: NodeProto, source: NodeSource) -> None:
    """Writes the source of a node in its metadata.

    :param node: a node no graph owns yet
    :param source: its source, which replaces the one it has
    """
    metadata = source.metadata()
    kept = [p for p in node.metadata_props if p.key not in metadata]
    del node.metadata_props[:]
    node.metadata_props.extend(kept)
    for key, value in metadata.items():
        node.metadata_props.add(key=key, value=value)


def move_sources(nodes: Sequence[NodeProto], call: NodeProto) -> None:
    """Gives the nodes of a function, once inlined, their source in the graph that calls it.

    Nothing is done if the call does not say its own. Cost: O(nodes) otherwise.

    :param nodes: copies of the nodes of the function
    :param call: the call
    """
    outer = source_of(call)
    if outer is None:
        return
    for node in all_nodes(nodes):
        inner = source_of(node)
        moved = outer if inner is None else inner.within(outer)
        if moved != inner:
            write_source(node, moved)
            if outer.module and node.name:
                node.name = f"{outer.module}.{node.name}"


def fused_metadata(replaced: Sequence[NodeMetadata]) -> dict[str, str]:
    """The metadata that lists the operators a new node computes, and their lines of code: empty
    unless there are several.

    :param replaced: the metadata of the nodes it replaces
    """
    found: dict[str, None] = {}
    for old in replaced:
        found.update(dict.fromkeys(old.labels))
    if len(found) < 2:
        return {}
    labels = list(found)
    traces = list(dict.fromkeys([old.source.trace for old in replaced if old.source]))
    listed = [*labels[:_MOST_FUSED], *(["..."] if len(labels) > _MOST_FUSED else [])]
    return {FUSED: "\n".join(listed), TRACE: "\n".join(filter(None, traces[:_MOST_FUSED]))}


def complete_metadata(
    node: NodeProto, more: Iterable[StringStringEntryProto], written: Mapping[str, str]
) -> None:
    """Adds metadata to a node. Each pair is copied once, since a trace may have many lines.

    :param node: the node
    :param more: pairs to add
    :param written: pairs that prevail over those of the node and over the others, not written when
        they are empty
    """
    mine = node.metadata_props[:]
    if written and mine:
        del node.metadata_props[:]
        node.metadata_props.extend([p for p in mine if p.key not in written])
    node.metadata_props.extend([p for p in more if p.key not in written] if written else more)
    for key, value in written.items():
        if value:
            node.metadata_props.add(key=key, value=value)


def fused_labels(node: NodeProto) -> list[str]:
    """The operators of torch a node computes, see :attr:`NodeSource.label`.

    :param node: a node
    :return: several for a fused node, none if its metadata does not say it
    """
    return list(NodeMetadata(node).labels)


@lru_cache(maxsize=1024)
def _source_and_labels(
    scopes: str, classes: str, trace: str
) -> tuple[NodeSource | None, tuple[str, ...]]:
    """The place in a torch model that three texts of a node give, and its label, read once for all
    the nodes that come from there."""
    paths = _texts(scopes)
    if not paths:
        return None, ()
    source = NodeSource(paths, _texts(classes), trace)
    return source, (source.label,)


@lru_cache(maxsize=1024)
def _texts(written: str) -> tuple[str, ...]:
    """A list of texts written as Python does, empty if it is not one."""
    try:
        found = ast.literal_eval(written)
    except (SyntaxError, ValueError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
