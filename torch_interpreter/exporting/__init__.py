"""From a module to a graph of operators: torch.export, tracing, decompositions."""
