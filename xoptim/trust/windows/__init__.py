"""Validates each rewrite in its window: the nodes it removed against those it wrote."""
