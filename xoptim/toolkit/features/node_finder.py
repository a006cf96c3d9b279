"""A feature that finds the nodes of an operator."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from .base import GraphFeature


class NodeFinder(GraphFeature):
    """Finds the nodes of an operator, in graph order, however the graph changes.

    The store lists its nodes by operator, so nothing is searched nor kept here. Cost: O(nodes
    found).

    ::

        finder = NodeFinder()
        builder.attach_feature(finder)
        finder.query("FusedMatMul", "com.microsoft")
    """

    def records(self, op_type: str, domain: str = "") -> list[NodeRecord]:
        """The records of the nodes of an operator.

        :param op_type: the operator
        :param domain: its domain
        """
        return list(self.graph.store.bucket(domain, op_type))

    def query(self, op_type: str, domain: str = "") -> list[NodeProto]:
        """The nodes of an operator, in graph order.

        :param op_type: the operator
        :param domain: its domain
        """
        return [self.graph.store.proto(record) for record in self.records(op_type, domain)]

    def count(self, op_type: str, domain: str = "") -> int:
        """Number of nodes of an operator."""
        return len(self.graph.store.bucket(domain, op_type))
