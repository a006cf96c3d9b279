"""The base of features attached to one graph at a time."""

from __future__ import annotations

from xbuilder.errors import OptionError
from xbuilder.graph.features import Feature
from xbuilder.graph.graph import Graph


class GraphFeature(Feature):
    """A feature that works on the graph it is attached to, one at a time.

    ::

        finder = NodeFinder()
        builder.attach_feature(finder)
        finder.query("Add")
    """

    _graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The graph it is attached to.

        :raises OptionError: it is attached to none
        """
        if self._graph is None:
            raise OptionError(f"{type(self).__name__} is attached to no graph.")
        return self._graph

    def on_attach(self, graph: Graph) -> None:
        """Remembers the graph.

        :raises OptionError: it is attached to another one
        """
        if self._graph is not None:
            raise OptionError(f"{type(self).__name__} is attached to another graph already.")
        self._graph = graph

    def on_detach(self, graph: Graph) -> None:
        """Forgets the graph."""
        self._graph = None
