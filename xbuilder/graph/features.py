"""Features: subscribers attached to a graph, notified of every change until they are detached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from ..errors import OptionError
from ..nodes.record import NodeRecord
from ..store.events import StoreEvent
from .graph import Graph

T = TypeVar("T")


class Feature:
    """Base class of subscribers, notified of the changes of the graphs they are attached to.

    A class overrides the methods it needs, the others cost nothing: a feature that overrides none
    of those about nodes does not even subscribe to the store. It must not change the graph during a
    notification. One feature may be attached to several graphs, the bodies of a model for instance.

    ::

        class Counter(Feature):
            def __init__(self):
                self.imported = 0

            def on_import(self, graph, node):
                self.imported += 1

        counter = Counter()
        builder.attach_feature(counter)
    """

    def on_attach(self, graph: Graph) -> None:
        """Called before the feature is notified of the changes of this graph. It may change the
        graph; it may refuse, with an error."""

    def on_detach(self, graph: Graph) -> None:
        """Called when the feature is no longer notified of this graph, which it may change."""

    def on_import(self, graph: Graph, node: NodeRecord) -> None:
        """A node joined the graph."""

    def on_prune(self, graph: Graph, node: NodeRecord) -> None:
        """A node left the graph."""

    def on_change_input(self, graph: Graph, node: NodeRecord, old: str, new: str) -> None:
        """A node reads another result, everywhere it read *old*."""

    def on_rename(self, graph: Graph, old: str, new: str) -> None:
        """A result has another name, its readers follow."""

    def on_outputs(self, graph: Graph, outputs: Sequence[str]) -> None:
        """The graph has other outputs."""

    def on_sort(self, graph: Graph, nodes: Sequence[NodeRecord]) -> None:
        """The nodes are in another order."""

    def on_change(self, graph: Graph, event: StoreEvent) -> None:
        """The graph changed. Calls the methods above: prunes, imports, then inputs.

        A feature that overrides it receives each change whole, with the places of the nodes, which
        is enough to replay it on a copy.
        """
        for node in event.removed:
            self.on_prune(graph, node)
        for node in event.added:
            self.on_import(graph, node)
        if event.redirected is not None:
            for node in event.readers:
                self.on_change_input(graph, node, *event.redirected)
        if event.renamed is not None:
            self.on_rename(graph, *event.renamed)
        if event.outputs is not None:
            self.on_outputs(graph, event.outputs)
        if event.order is not None:
            self.on_sort(graph, event.order)

    def on_pass(self, graph: Graph, name: str) -> None:
        """A pass starts."""

    def on_pass_end(self, graph: Graph, name: str) -> None:
        """A pass ends."""

    def validate(self, graph: Graph) -> str:
        """The reason why the graph must not stay as it is, an empty string if it may.

        It is called after each rewrite and after each pass, which are undone if a feature refuses
        the result. When several features refuse, the first one that was attached is named.
        """
        return ""


#: the methods of a feature that changes of a graph call
_CHANGES = (
    "on_change",
    "on_import",
    "on_prune",
    "on_change_input",
    "on_rename",
    "on_outputs",
    "on_sort",
)


class Attachment:
    """Subscribes a feature to the store of one graph.

    :param graph: the graph
    :param feature: the feature
    """

    __slots__ = ("feature", "graph")

    def __init__(self, graph: Graph, feature: Feature):
        self.graph = graph
        self.feature = feature

    def store_changed(self, event: StoreEvent) -> None:
        """Notifies the feature of a change."""
        self.feature.on_change(self.graph, event)


class Attachments(list[Attachment]):
    """The features attached to a graph, in the order they were attached."""


def overrides(feature: object, base: type, *names: str) -> bool:
    """Whether the class of a feature overrides one of some methods.

    :param feature: the feature
    :param base: the class whose methods do nothing
    :param names: names of methods
    """
    cls: Any = type(feature)
    return _overrides(cls, base, names)


@lru_cache(maxsize=256)
def _overrides(cls: type, base: type, names: tuple[str, ...]) -> bool:
    return any(getattr(cls, n) is not getattr(base, n) for n in names)


def callbacks_of(features: Iterable[T], base: type[T], name: str) -> list[Callable[..., Any]]:
    """The bound methods of this name, of the features that override it.

    :param features: features, those of another class are left out
    :param base: the class whose method does nothing
    :param name: name of the method
    """
    return [getattr(f, name) for f in features if isinstance(f, base) and overrides(f, base, name)]


def features_of(graph: Graph) -> list[Feature]:
    """Features attached to a graph, in the order they were attached."""
    return [attachment.feature for attachment in graph.notes[Attachments]]


def has_features(graph: Graph) -> bool:
    """Whether a feature is attached to a graph."""
    return bool(graph.notes[Attachments])


def attach(graph: Graph, feature: Feature) -> bool:
    """Attaches a feature to a graph.

    :param graph: the graph
    :param feature: the feature
    :return: False if it was attached already
    :raises OptionError: it is not a feature
    """
    if not isinstance(feature, Feature):
        raise OptionError(f"A feature must be an instance of Feature, not {feature!r}.")
    if any(known is feature for known in features_of(graph)):
        return False
    feature.on_attach(graph)
    attachment = Attachment(graph, feature)
    graph.notes[Attachments].append(attachment)
    if overrides(feature, Feature, *_CHANGES):
        graph.store.subscribe(attachment)
    return True


def detach(graph: Graph, feature: Feature) -> bool:
    """Detaches a feature from a graph.

    :param graph: the graph
    :param feature: the feature
    :return: False if it was not attached
    """
    attachments = graph.notes[Attachments]
    for attachment in attachments:
        if attachment.feature is feature:
            attachments.remove(attachment)
            graph.store.unsubscribe(attachment)
            feature.on_detach(graph)
            return True
    return False


@contextmanager
def attached(graph: Graph, features: Sequence[Feature]) -> Iterator[None]:
    """Attaches features for the duration of a block, except those that are attached already.

    :param graph: the graph
    :param features: the features
    """
    mine: list[Feature] = []
    try:
        for feature in features:
            if attach(graph, feature):
                mine.append(feature)
        yield
    finally:
        for feature in reversed(mine):
            detach(graph, feature)


@contextmanager
def notify_pass(graph: Graph, name: str) -> Iterator[None]:
    """Notifies the features of a graph that a pass starts, then that it ends.

    :param graph: the graph
    :param name: name of the pass
    """
    features = features_of(graph)
    for tell in callbacks_of(features, Feature, "on_pass"):
        tell(graph, name)
    try:
        yield
    finally:
        for tell in callbacks_of(features, Feature, "on_pass_end"):
            tell(graph, name)
