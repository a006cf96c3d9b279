"""The roles of the integer inputs of a window: lengths, indices, divisors, or any number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from onnx import NodeProto

from xbuilder.nodes.subgraphs import node_captures, subgraphs_of


class Role(IntEnum):
    """The uses of integers; the first ones are the most constrained."""

    LENGTH = 0
    DISTINCT = 1
    INDEX = 2
    DIVISOR = 3
    ANY = 4


#: inputs that are shapes, counts, axes, by operator
_LENGTHS: Mapping[str, tuple[int, ...]] = {
    "Bernoulli": (),
    "CenterCropPad": (1,),
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Expand": (1,),
    "GroupQueryAttention": (5, 6),
    "Loop": (0,),
    "MaxUnpool": (1, 2),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (3,),
    "ReverseSequence": (1,),
    "Split": (1,),
    "SplitToSequence": (1,),
    "STFT": (1, 3),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
}
#: inputs that are positions in another one
_INDICES: Mapping[str, tuple[int, ...]] = {
    "Gather": (1,),
    "GatherElements": (1,),
    "GatherND": (1,),
    "LSTM": (4,),
    "GRU": (4,),
    "RNN": (4,),
    "MultiHeadAttention": (4,),
    "RotaryEmbedding": (1, 3),
    "SequenceAt": (1,),
    "SequenceInsert": (2,),
    "SequenceErase": (1,),
    "Slice": (3,),
    "EmbedLayerNormalization": (0, 1),
}
#: operators that write at the positions of their second input, where two equal ones mean nothing
_WRITES = frozenset({"Scatter", "ScatterElements", "ScatterND", "TensorScatter"})
_DIVIDES = frozenset({"Div", "Mod"})


def roles_of(nodes: Iterable[NodeProto]) -> dict[str, Role]:
    """The role of each result the nodes use in a constrained way, directly or not.

    :param nodes: nodes in topological order
    """
    found: dict[str, Role] = {}

    def use(name: str, role: Role) -> None:
        if name:
            found[name] = min(found.get(name, Role.ANY), role)

    for node in reversed(list(nodes)):
        role = min((found.get(o, Role.ANY) for o in node.output), default=Role.ANY)
        for i, name in enumerate(node.input):
            use(name, min(role, _own_role(node, i)))
        captured = node_captures(node)
        if captured:
            inner: dict[str, Role] = {}
            for _, body in subgraphs_of(node):
                inner.update(roles_of(body.node))
            for name in captured:
                use(name, min(role, inner.get(name, Role.ANY)))
    return found


def _own_role(node: NodeProto, i: int) -> Role:
    if node.op_type.startswith("Reduce") and i == 1:
        return Role.LENGTH
    if i in _LENGTHS.get(node.op_type, ()):
        return Role.LENGTH
    if i == 1 and node.op_type in _WRITES:
        return Role.DISTINCT
    if i in _INDICES.get(node.op_type, ()):
        return Role.INDEX
    return Role.DIVISOR if node.op_type in _DIVIDES and i == 1 else Role.ANY
