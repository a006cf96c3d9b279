"""Facts of new nodes, of calls to functions; what is inferred again."""
