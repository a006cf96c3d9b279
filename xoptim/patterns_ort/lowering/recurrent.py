"""Recurrent operators whose batch comes first, which onnxruntime has no kernel for."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from xbuilder.nodes.copies import copy_with_edges
from xbuilder.nodes.loading import loads
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.processors import processors_of

from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite

#: the batch of the inputs and of the states is the second axis
_SWAP = (1, 0, 2)
#: from (length, directions, batch, size) to (batch, length, directions, size)
_BATCH_FIRST = (2, 0, 1, 3)
#: initial states among the inputs
_STATES = (5, 6)
#: operators with a kernel in double that only raises an error
_FLOAT_ONLY = frozenset({"GRU", "LSTM"})


@rewrite("onnxruntime", "fix", root=("GRU", "LSTM", "RNN"))
def batchwise_recurrent(g: RewriteContext, node: NodeProto) -> Sequence[Replacement | None]:
    """LSTM<layout=1>(x) -> Transpose(LSTM(Transpose(x))), and GRU, RNN.

    1. The initial states and all results are transposed as well.
    2. onnxruntime has a kernel for the type when the batch is the second dimension.
    """
    layout = g.get_attribute_with_default(node, "layout", 0)
    g.require(layout == 1, "the batch is the second dimension already")
    g.require(_has_kernel(g, node), "onnxruntime has no kernel for this type")
    unfinished = node.op_type in _FLOAT_ONLY and g.type_or_none(node.input[0]) == TensorProto.DOUBLE
    g.require(not unfinished, "the kernel of onnxruntime refuses doubles when it runs")
    inputs = [
        g.op.Transpose(name, perm=_SWAP) if name and (i == 0 or i in _STATES) else name or None
        for i, name in enumerate(node.input)
    ]
    absent = {i for i, name in enumerate(node.output) if not name}
    attributes = {a.name: a for a in node.attribute if a.name != "layout"}
    count = len(node.output)
    made = NewNode(node.op_type, inputs, attributes, "", count, absent)
    results = [made] if count == 1 else [made[i] for i in range(count)]
    perms = [_BATCH_FIRST if i == 0 else _SWAP for i in range(count)]
    return [
        None if i in absent else g.op.Transpose(result, perm=perm)
        for i, (result, perm) in enumerate(zip(results, perms, strict=True))
    ]


def _has_kernel(g: RewriteContext, node: NodeProto) -> bool:
    """Whether every processor whose kernels are known runs a recurrent operator in the usual
    layout."""
    usual = copy_with_edges(node, node.input, node.output)
    kept = [a for a in node.attribute if a.name != "layout"]
    del usual.attribute[:]
    usual.attribute.extend(kept)
    types = [g.type_of(name) if name else 0 for name in node.input]
    tables = (kernel_table(processor) for processor in processors_of(g.processor))
    return all(not t.is_complete or loads(t, usual, g.main_opset, types) for t in tables)
