"""Symbolic dimensions: a dimension is an integer or a text, symbols are integers >= 0.

Example::

    >>> from xbuilder.dims import add, prove_equal, sub
    >>> sub(add("a", "b"), "b"), prove_equal("2*a", "a+a"), prove_equal("a", "b")
    ('a', True, None)
"""

from .api import (
    Dim,
    Shape,
    add,
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    exact_div,
    floordiv,
    is_static,
    mod,
    mul,
    neg,
    normalize,
    prod,
    sub,
    substitute,
    symbols,
    total,
)
from .axes import normalize_axes, normalize_axis
from .broadcast import broadcast_dim, broadcast_shapes, same_shape
from .constraints import Constraints
from .errors import DimensionError
from .prove import prove_equal, prove_ge
from .zeros import is_plain, zero_cases

__all__ = [
    "Constraints",
    "Dim",
    "DimensionError",
    "Shape",
    "add",
    "broadcast_dim",
    "broadcast_shapes",
    "ceildiv",
    "dim_max",
    "dim_min",
    "evaluate",
    "exact_div",
    "floordiv",
    "is_plain",
    "is_static",
    "mod",
    "mul",
    "neg",
    "normalize",
    "normalize_axes",
    "normalize_axis",
    "prod",
    "prove_equal",
    "prove_ge",
    "same_shape",
    "sub",
    "substitute",
    "symbols",
    "total",
    "zero_cases",
]
