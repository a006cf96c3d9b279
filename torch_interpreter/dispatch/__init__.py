"""The choice of the converter of an operator: the user's, the one of a library, ours."""
