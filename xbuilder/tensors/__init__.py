"""Bits of tensors, and whether their content can be trusted."""
