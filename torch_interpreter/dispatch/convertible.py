"""Whether an operator of torch has a converter."""

from __future__ import annotations

import torch

from ..aten import find_converter
from ..writing.complex_names import COMPLEX
from .dispatcher import Dispatcher, canonical_name

#: operators without result that only check what torch assumed
CHECKS = (
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten._assert_async.msg",
    "aten.sym_constrain_range_for_size.default",
    "aten.sym_constrain_range.default",
    "aten._log_api_usage_once.default",
)


def has_converter(
    op: torch._ops.OpOverload, dispatcher: Dispatcher | None, on_complex: bool = False
) -> bool:
    """Whether an operator has a converter, for complex tensors or for the others."""
    if dispatcher is not None and dispatcher.handles(op):
        return True
    name = canonical_name(op)
    return name in CHECKS or find_converter(f"{COMPLEX}{name}" if on_complex else name) is not None
