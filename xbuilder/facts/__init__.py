"""Type, shape, rank and known value of each result. Facts only refine."""
