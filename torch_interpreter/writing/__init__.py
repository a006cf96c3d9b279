"""The graph as a converter of an operator sees it."""
