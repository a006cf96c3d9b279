"""Changes of the behaviour of torch while it exports a model."""
