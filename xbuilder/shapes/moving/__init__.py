"""Shape functions of operators that create, reshape, slice, sort or join tensors and sequences."""
