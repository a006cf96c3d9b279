"""Proofs about the elements of a result: zeros, infinities, masks, positions, one value."""
