"""Converters of torch operators, by family. Importing this package registers all of them."""

from ..registry import find_converter
from . import (  # noqa: F401, each one registers its converters
    activation,
    attention,
    binary,
    compare,
    complex_functions,
    complex_linear,
    complex_tensors,
    computed,
    conv,
    creation,
    embedding_bag,
    flash_attention,
    fourier,
    index,
    loss,
    matmul,
    norm,
    pixel,
    pool,
    prims,
    quantize,
    rearrange,
    recurrent,
    reduce,
    resize,
    scatter,
    sort,
    split,
    symbolic,
    unary,
    view,
)

__all__ = ["find_converter"]
