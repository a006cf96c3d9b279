"""Which converter takes an operator: the user's, the one of a library, ours."""
