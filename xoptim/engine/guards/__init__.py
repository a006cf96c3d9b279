"""What the engine checks of a rewrite, whoever wrote it."""
