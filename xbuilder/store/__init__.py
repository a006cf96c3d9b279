"""The store of the nodes of a graph, the only place where they change, and its events."""
