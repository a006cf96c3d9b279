"""Constant nodes become initializers."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.constants.evaluation import constant_node_value

from ...authoring import RewriteContext
from ...catalogue import rewrite

#: forms of a Constant that are dense tensors of numbers
DENSE = frozenset({"value", "value_int", "value_ints", "value_float", "value_floats"})


@rewrite("default", root="Constant")
def constant_to_initializer(g: RewriteContext, node: NodeProto) -> TensorProto | np.ndarray:
    """Constant(value) -> initializer, Identity(initializer).

    1. `value` is a tensor of numbers or booleans, which is not copied.
    2. `value_int`, `value_ints`, `value_float`, `value_floats`.

    Refused: strings, sparse tensors, references to an attribute of a function, and the body of a
    local function, where there is no initializer. The initializer gets a new name, which no
    subgraph can shadow.
    """
    g.require(not g.graph.scope.is_function, "a function has no initializer")
    attributes = node.attribute[:]
    dense = len(attributes) == 1 and attributes[0].name in DENSE
    g.require(dense, "the value is not a dense tensor of numbers")
    (att,) = attributes
    g.require(not att.ref_attr_name, "the value belongs to the function")
    if att.name != "value":
        return g.known(constant_node_value(node), "the value is not known")
    tensor: TensorProto = att.t
    g.require(tensor.data_type != TensorProto.STRING, "the value holds strings")
    return tensor
