"""The operators, types and ranks that kernels of onnxruntime support, on the target processors."""

from __future__ import annotations

from xbuilder.operators.domains import MICROSOFT
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.processors import processors_of

from ..authoring import GraphQueries, RewriteContext

#: kernels that refuse a first input with fewer dimensions
KERNEL_MIN_RANKS: dict[str, int] = {"com.microsoft::FastGelu": 1}
#: the same on CUDA
CUDA_MIN_RANKS = {**KERNEL_MIN_RANKS, "com.microsoft::Gelu": 1}


def runtime_has_kernel(g: GraphQueries, op_type: str, name: str, index: int = 0) -> bool:
    """Whether onnxruntime runs an operator on the element type of a result, on every processor the
    model is meant for.

    :param op_type: the operator, `"com.microsoft::Gelu"` if it is not of the main domain
    :param name: the result, one of its inputs; an unknown type is refused
    :param index: index of this input
    """
    kind = g.type_or_none(name)
    domain, _, short = op_type.rpartition("::")
    opset = g.opsets.get(domain, 1)
    return kind is not None and all(
        kernel_table(p).runs(short, domain, opset, [*[0] * index, kind])
        for p in processors_of(g.processor)
    )


def require_kernel(g: RewriteContext, op_type: str, name: str, index: int = 0) -> None:
    """Refuses unless :func:`runtime_has_kernel` and :func:`accepts_rank` accept an operator
    of the domain of onnxruntime.

    :param op_type: the operator
    :param name: the result
    :param index: index of this input
    """
    if not runtime_has_kernel(g, f"{MICROSOFT}::{op_type}", name, index):
        g.refuse(f"onnxruntime has no {op_type} for this type")
    if not accepts_rank(g, f"{MICROSOFT}::{op_type}", name):
        g.refuse(f"{op_type} refuses a scalar, the rank may be 0")


def accepts_rank(g: GraphQueries, op_type: str, name: str) -> bool:
    """Whether the kernel of an operator accepts the number of dimensions of its first input.

    :param op_type: the operator, with its domain
    :param name: the result, an unknown rank is refused unless the kernel accepts all of them
    """
    ranks = CUDA_MIN_RANKS if "CUDA" in processors_of(g.processor) else KERNEL_MIN_RANKS
    least = ranks.get(op_type, 0)
    return least == 0 or (g.rank_or_none(name) or 0) >= least
