"""What rewrites share to read a graph: arguments, axes, neighbours, shapes."""
