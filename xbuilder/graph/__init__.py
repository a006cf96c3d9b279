"""One graph or body, what all graphs of a model share, the features attached to a graph."""
