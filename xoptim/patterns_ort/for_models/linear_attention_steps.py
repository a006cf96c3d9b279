"""Linear attention over several steps, in a Scan or unrolled: one LinearAttention."""

from __future__ import annotations

from math import prod

from onnx import NodeProto

from xbuilder.dims import Dim, Shape
from xbuilder.graph.graph import Graph
from xbuilder.nested.bodies import children_of
from xbuilder.nodes.attributes import attributes_of
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import RESHAPES

from ...analysis.arguments import optional_input
from ...analysis.axes import axis_of
from ...analysis.constants import scalar_index
from ...analysis.neighbours import depends_on
from ...analysis.same_elements import source_of_reshapes
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel

_NAME = "LinearAttention"
#: inputs that have one row for each step: query, key, value, decay, beta
_BY_STEP = (0, 1, 2, 4, 5)
_PAST = 3
_OPERATOR = f"{MICROSOFT}::{_NAME}"


@rewrite("onnxruntime", "model", root="Scan", min_opset=9, precision="rounding")
def linear_attention_scan(g: RewriteContext, scan: NodeProto) -> dict[str, Replacement]:
    """Scan(state, x...), each step being a LinearAttention -> com.microsoft.LinearAttention.

    1. the steps pass one state only to the next one, and run from the first to the last;
    2. queries, keys, values, decays and rates are those of the step, reshaped at most, the batch is
       their first dimension; the others are known;
    3. each step has one result at most.

    This is the loop of `Qwen3NextGatedDeltaNet` of transformers, written with `torch.scan`.
    """
    count = g.get_attribute_with_default(scan, "num_scan_inputs", 0)
    g.require(len(scan.input) == count + 1, "there is not one state")
    for name in ("scan_input_directions", "scan_output_directions"):
        g.require(not any(g.get_attribute_with_default(scan, name, [])), "steps are read backwards")
    body = children_of(g.graph, g.record(scan))["body"]
    step = _step(g, body)
    require_kernel(g, _NAME, scan.input[0])
    batch = g.shape_of(scan.input[0])[0]
    inputs: list[Operand] = []
    names = body.input_names
    for i, name in enumerate(step.inputs):
        if i == _PAST or not name:
            inputs.append(scan.input[0] if name else None)
            continue
        source = _reshaped(body, name)
        g.require(source in names[1:], "a row is not the one of the step")
        index = names.index(source)
        axis = _axis(g, scan, "scan_input_axes", index - 1, g.rank_of(scan.input[index]))
        width = _width(body.facts[name].shape)
        rows = _rows(g, scan.input[index], axis, batch, width)
        g.require(rows is not None, "a row does not have the dimensions of a step")
        inputs.append(rows)
    options = attributes_of(body.store.proto(step))
    new = NewNode(_NAME, inputs, options, MICROSOFT, outputs=2)
    found: dict[str, Replacement] = {scan.output[0]: new[1]}
    if len(scan.output) == 2:
        found[scan.output[1]] = _scanned(g, scan, body, step, new)
    return found


def _step(g: RewriteContext, body: Graph) -> NodeRecord:
    """The operator of a step, which updates the state."""
    states = body.input_names[0], body.output_names[0]
    step = body.store.producers.get(states[1])
    if step is None or (step.domain, step.op_type) != (MICROSOFT, _NAME):
        return g.refuse("the state is not the one of LinearAttention")
    updated = step.inputs[_PAST] == states[0] and step.outputs[1] == states[1]
    g.require(updated, "the state is not the one of LinearAttention")
    g.require(len(body.output_names) <= 2, "steps have several results")
    return step


def _reshaped(body: Graph, name: str) -> str:
    """The first result of a chain of nodes of a body that keep the order of the elements."""
    record = body.store.producers.get(name)
    while record is not None and record.op_type in RESHAPES and not record.domain:
        name = record.inputs[0]
        record = body.store.producers.get(name)
    return name


def _axis(g: RewriteContext, scan: NodeProto, name: str, index: int, rank: int) -> int:
    """The axis of the steps."""
    axes = g.get_attribute_with_default(scan, name, [])
    return int(axes[index]) % rank if axes else 0


def _width(shape: Shape | None) -> int | None:
    """The length of a row, of shape (batch, 1, length)."""
    if shape is None or len(shape) != 3 or shape[1] != 1 or not isinstance(shape[2], int):
        return None
    return shape[2]


def _rows(g: RewriteContext, x: str, axis: int, batch: Dim, width: int | None) -> Operand:
    """The rows of every step, of shape (batch, steps, width), None if this is not proven."""
    shape = g.shape_or_none(x)
    if shape is None or len(shape) < 3 or width is None:
        return None
    others = [i for i in range(len(shape)) if i != axis]
    rest = [shape[i] for i in others[1:]]
    if not all(isinstance(d, int) for d in rest) or prod(rest) != width:
        return None
    if not proven_equal(g, (shape[others[0]],), (batch,)):
        return None
    moved: Operand = x
    if axis != 1:
        moved = g.op.Transpose(x, perm=[others[0], axis, *others[1:]])
    return moved if len(rest) == 1 else g.op.Reshape(moved, [0, 0, width])


def _scanned(
    g: RewriteContext, scan: NodeProto, body: Graph, step: NodeRecord, new: NewNode
) -> Replacement:
    """The results of every step, along the axis of Scan."""
    result = body.output_names[1]
    g.require(_reshaped(body, result) == step.outputs[0], "a result is not the one of a step")
    shape, state = (body.facts[name].shape for name in (result, body.output_names[0]))
    read = body.facts[step.outputs[0]].shape
    if shape is None or state is None or len(shape) < 2 or shape[0] != state[0]:
        return g.refuse("a result does not have the batch first")
    rest = list(shape[1:])
    whole = all(isinstance(d, int) for d in rest) and prod(rest) == _width(read)
    g.require(whole, "the dimensions of a result are not known")
    rows = g.op.Reshape(new[0], [0, 0, *rest])
    axis = _axis(g, scan, "scan_output_axes", 0, len(shape) + 1)
    if axis == 1:
        return rows
    perm = [0, *range(2, len(shape) + 1)]
    return g.op.Transpose(rows, perm=[*perm[:axis], 1, *perm[axis:]])


@rewrite("onnxruntime", "model", root=_OPERATOR, precision="rounding")
def linear_attention_steps(g: RewriteContext, last: NodeProto) -> dict[str, Replacement] | Refusal:
    """LinearAttention(x1, state), LinearAttention(x2, state1), ... -> LinearAttention(x, state).

    1. the same attributes, only the next step reads each state, no step reads the result of another
       one; the lengths are known;
    2. rows that are the elements of one result, Gather(x, 0), Gather(x, 1), ... are this result;
       others are joined.

    `Qwen3NextGatedDeltaNet` of transformers, exported for a known number of tokens, is written this
    way.
    """
    nodes = [last]
    while (before := _before(g, nodes[-1])) is not None:
        nodes.append(before)
    if len(nodes) == 1:
        return g.no("no step comes before")
    following = g.next_node(last.output[1])
    g.require(following is None or not _follows(g, following, last), "steps come after")
    nodes.reverse()
    read = [n.input[i] for n in nodes for i in _BY_STEP if optional_input(n, i)]
    alone = not depends_on(g, read, [name for n in nodes for name in n.output])
    g.require(alone, "a step reads the result of another one")
    lengths = [g.shape_of(n.output[0])[1] for n in nodes]
    g.require(all(isinstance(n, int) for n in lengths), "the lengths are not known")
    g.look_at(*nodes)
    inputs: list[Operand] = []
    for i, name in enumerate(last.input):
        joined = _joined(g, [n.input[i] for n in nodes]) if i != _PAST and name else None
        inputs.append(nodes[0].input[i] if i == _PAST else joined)
    new = NewNode(_NAME, inputs, attributes_of(last), MICROSOFT, outputs=2)
    parts = g.op.Split(new[0], [int(str(n)) for n in lengths], axis=1, outputs=len(nodes))
    found: dict[str, Replacement] = {n.output[0]: parts[i] for i, n in enumerate(nodes)}
    return {**found, last.output[1]: new[1]}


def _before(g: RewriteContext, node: NodeProto) -> NodeProto | None:
    """The step producing the state of another one, if this has no other use."""
    before = g.producer_or_none(optional_input(node, _PAST))
    return before if before is not None and _follows(g, node, before) else None


def _follows(g: RewriteContext, node: NodeProto, before: NodeProto) -> bool:
    """Whether a step alone reads the state of another one, with the same rule."""
    return (
        g.record(node).key == g.record(before).key == (MICROSOFT, _NAME)
        and before.output[1] == optional_input(node, _PAST)
        and not g.is_used_more_than_once(before.output[1])
        and attributes_of(node) == attributes_of(before)
        and [bool(name) for name in node.input] == [bool(name) for name in before.input]
    )


def _joined(g: RewriteContext, rows: list[str]) -> Operand:
    """The rows of every step."""
    shape = g.shape_of(rows[0])
    gathers = [g.producer_or_none(source_of_reshapes(g, name), "Gather") for name in rows]
    first = gathers[0]
    if first is not None:
        x, rank = first.input[0], g.rank_or_none(first.input[0])
        axis = None if rank is None else axis_of(g, first, rank, 0)
        same = all(
            n is not None
            and n.input[0] == x
            and axis_of(g, n, rank, 0) == axis
            and g.shape_or_none(n.input[1]) == ()
            and scalar_index(g, n.input[1]) == i
            for i, n in enumerate(gathers)
        )
        if same and axis is not None and g.shape_of(x)[axis] == len(rows):
            found = _rows(g, x, axis, shape[0], _width(shape))
            if found is not None:
                return found
    return g.op.Concat(*rows, axis=1)
