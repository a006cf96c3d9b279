"""Whether a node gives the same results each time it runs."""

from __future__ import annotations

import re

from onnx import NodeProto

from ..operators.op_traits import RANDOM
from .attributes import find_attribute

#: words by which an operator of a domain without a table of traits says that it draws numbers:
#: `BiasDropout` of onnxruntime, `MyRandomOp` of a user
DRAWS = re.compile("random|dropout", re.IGNORECASE)


def is_deterministic(node: NodeProto, op_type: str, domain: str, opset: int = 18) -> bool:
    """Whether a node gives the same results each time it runs on the same inputs.

    Random operators and training Dropout do not. Neither do operators of other domains that have an
    attribute `seed` or a name that says they draw numbers, see :data:`DRAWS`.

    :param node: the node
    :param op_type: its type
    :param domain: its domain
    :param opset: version of the main domain, Dropout was a training operator by default before 7
    """
    if op_type in RANDOM:
        return False
    if op_type == "Dropout":
        if domain == "" and opset < 7:
            is_test = find_attribute(node, "is_test")
            return is_test is not None and is_test.i == 1
        return len(node.input) < 3 or not node.input[2]
    if domain in ("", "ai.onnx.ml"):
        return True
    return not DRAWS.search(op_type) and find_attribute(node, "seed") is None
