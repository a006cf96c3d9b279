"""Matrix products: attributes of Gemm, the bias of a MatMul or a Gemm."""

from __future__ import annotations

from onnx import NodeProto

from ..authoring import RewriteContext
from ..authoring.queries import GraphQueries
from .arguments import optional_input, other_input

#: attributes of Gemm and their default values
GEMM_DEFAULTS = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def is_plain(g: GraphQueries, node: NodeProto, *names: str) -> bool:
    """Whether attributes of a Gemm have their default values, so that it could be a MatMul.

    :param g: the graph
    :param node: Gemm or MatMul
    :param names: the attributes, all of them without any
    """
    defaults = {name: GEMM_DEFAULTS[name] for name in names or GEMM_DEFAULTS}
    return g.get_attributes_with_default(node, **defaults) == defaults


def product_and_bias(g: RewriteContext, node: NodeProto) -> tuple[NodeProto, str]:
    """A product and its bias, empty if there is none; refuses a sum without exactly one product.

    :param node: Gemm, MatMul, or the Add that reads a MatMul
    """
    if node.op_type != "Add":
        return node, optional_input(node, 2)
    products = [p for p in g.before_each(node, "MatMul") if p is not None]
    g.require(len(products) == 1, "no product is added to a bias")
    return products[0], other_input(node, products[0].output[0])
