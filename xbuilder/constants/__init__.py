"""Initializers by reference, results computed on demand, exact casts."""
