"""Shape functions of element-wise operators, products, reductions, comparisons, conversions."""
