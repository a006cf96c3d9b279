"""The bits of tensors: element types, packing, checks of their content, half floats."""
