"""Rewrites given as two small graphs."""
