"""From a graph of operators to a builder: nodes, control flow, local functions."""
