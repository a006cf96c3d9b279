"""Questions about a graph that rewrites share: arguments, axes, neighbours, shapes."""
