"""Makes dynamic a size that a model fixes, when no node depends on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
from onnx import ModelProto, NodeProto, ValueInfoProto

from xbuilder import GraphBuilder
from xbuilder.dims import Dim, DimensionError, evaluate, prod, prove_equal, symbols
from xbuilder.errors import OptionError, XoptimError
from xbuilder.nodes.subgraphs import node_captures, subgraphs_of
from xbuilder.operators.op_traits import GRAPH_OWNERS

from .independence import NodeView, refusal, refusal_of_results
from .reshape_dims import reshaped_dims
from .signature import Shape, check_known, dims_of, forget_unknown_sizes


class FixedSizeError(XoptimError):
    """A node depends on a size that should become dynamic."""


@dataclass
class DynamicModel:
    """A model with fewer fixed sizes.

    :param model: the model
    :param sizes: size each new dimension had
    :param mended: the nodes that fixed a size and do not any more, with their operator

    Example::

        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[2,3] x) => (float[2,3] y) { y = Abs(x) }")
        >>> made = make_dynamic(model, {"x": ("batch", 3)})
        >>> made.sizes, made.mended
        ({'batch': 2}, [])
    """

    model: ModelProto
    sizes: dict[str, int]
    mended: list[str] = field(default_factory=list)


def make_dynamic(
    model: ModelProto,
    shapes: Mapping[str, Shape],
    base_dir: str | Path | None = None,
    data_roots: Sequence[Any] = (),
) -> DynamicModel:
    """Makes dynamic some sizes of the inputs, when it is proven that no node depends on them.

    Shapes are inferred again with symbols in place of the sizes. Every result must have the shape
    it had once the symbols take their sizes, every node must accept any size, and a dimension that
    was 1 is taken as rows which no node may mix. A Reshape whose constant holds a size, and a
    Concat with a constant of one row, are mended. Numbers are compared with the sizes, but a
    constant that comes from a size in another way is not seen. New sizes are 1 at least.

    :param model: the model, it is not modified
    :param shapes: shapes of inputs; a name in place of a size makes it dynamic
    :param base_dir: the folder of its weights
    :param data_roots: other folders they may be in
    :return: the model, and what was mended
    :raises OptionError: an input is unknown, or does not have this shape
    :raises FixedSizeError: a node depends on a size, the message names it

    ::

        made = make_dynamic(onnx.load("model.onnx"), {"x": ("batch", 3, 224, 224)})
        onnx.save(made.model, "any_batch.onnx")
    """
    changed = ModelProto()
    changed.CopyFrom(model)
    forget_unknown_sizes(changed)
    sizes: dict[str, int] = {}
    check_known(shapes, [v.name for v in changed.graph.input], "input")
    known = {str(d.dim_param) for v in changed.graph.input for d in dims_of(v.type)}
    for value in changed.graph.input:
        if value.name in shapes:
            _set_symbols(value, shapes[value.name], sizes, known)
    if not sizes:
        raise OptionError("No size becomes dynamic: give a name in place of one, x:batch,3,h,w.")
    return _Replay(model, changed, sizes, base_dir, data_roots).run()


def _set_symbols(
    value: ValueInfoProto, shape: Shape, sizes: dict[str, int], known: set[str]
) -> None:
    """Writes the symbols of one input."""
    dims = value.type.tensor_type.shape.dim
    if len(dims) != len(shape):
        raise OptionError(
            f"Input {value.name!r} has {len(dims)} dimensions, the shape {list(shape)} has "
            f"{len(shape)}."
        )
    for axis, (dim, asked) in enumerate(zip(dims, shape, strict=True)):
        place = f"Dimension {axis} of input {value.name!r}"
        if not dim.HasField("dim_value"):
            if asked != dim.dim_param:
                called = f", it is called {dim.dim_param!r}" if dim.dim_param else ""
                raise OptionError(f"{place} is dynamic already{called}.")
        elif isinstance(asked, int):
            if asked != dim.dim_value:
                raise OptionError(f"{place} is {dim.dim_value}, not {asked}: give it a name.")
        elif asked in known:
            raise OptionError(f"{place}: the model has a dimension {asked!r}, choose another name.")
        elif sizes.setdefault(asked, dim.dim_value) != dim.dim_value:
            raise OptionError(f"{place} is {dim.dim_value}, {asked!r} is {sizes[asked]} elsewhere.")
        else:
            dim.dim_param = asked


class _Replay:
    """Adds the nodes of a model one by one to a graph whose inputs have new symbols.

    :param model: the model with its sizes
    :param changed: the same one, whose inputs have symbols
    :param sizes: size of each new symbol
    """

    def __init__(
        self,
        model: ModelProto,
        changed: ModelProto,
        sizes: dict[str, int],
        base_dir: str | Path | None,
        data_roots: Sequence[Any],
    ):
        def builder(proto: ModelProto) -> GraphBuilder:
            return GraphBuilder(
                proto, infer_shapes_options=True, allowed_roots=data_roots, base_dir=base_dir
            )

        self.frozen = builder(model)
        self.changed, self.sizes = changed, sizes
        self.mended: list[str] = []
        self.known: dict[int, list[Dim]] = {}
        self.taken = set(self.frozen.facts)
        bare = ModelProto()
        bare.CopyFrom(changed)
        for part in (bare.graph.node, bare.graph.output, bare.graph.value_info):
            del part[:]
        self.builder = builder(bare)
        for name in sizes:
            self.builder.constraints.add_at_least(name, 1)
        for value in bare.graph.input:
            self._note(value.name)

    def run(self) -> DynamicModel:
        """Adds every node."""
        nodes: list[NodeProto] = []
        for node in self.changed.graph.node:
            if self._touches(node):
                nodes += self._checked(node)
            else:
                self.builder.add_node(node)
                nodes.append(node)
        del self.changed.graph.node[:]
        self.changed.graph.node.extend(nodes)
        self._declare()
        return DynamicModel(self.changed, self.sizes, self.mended)

    def _is_new(self, name: str) -> bool:
        """Whether the shape or the content of a result holds a new symbol."""
        facts = self.builder.facts[name]
        content = facts.value if isinstance(facts.value, tuple) else (facts.value,)
        dims = [*(facts.shape or ()), *(d for d in content if isinstance(d, str | int))]
        return any(not symbols(d).isdisjoint(self.sizes) for d in dims if isinstance(d, str))

    def _touches(self, node: NodeProto) -> bool:
        return any(self._is_new(n) for n in (*node.input, *node_captures(node)) if n)

    def _before(self, name: str) -> Sequence[Dim] | None:
        return self.frozen.facts[name].shape if name in self.frozen.facts else None

    def _view(self, node: NodeProto) -> NodeView:
        return NodeView(self.builder, node, self.sizes, self._before)

    def _checked(self, node: NodeProto) -> list[NodeProto]:
        """Adds a node that reads a new symbol, mended if it has to be."""
        if node.op_type in GRAPH_OWNERS or any(subgraphs_of(node)):
            raise self._error(node, "its body is not followed")
        view = self._view(node)
        self._refuse(node, refusal(view))
        parts = [node]
        if node.op_type == "Reshape":
            parts = list(self._reshape(view))
        elif node.op_type == "Concat":
            parts = list(self._concat(view))
        if len(parts) > 1 or parts[0] is not node:
            self.mended.append(f"{node.op_type} {_label(node)}")
        for part in parts:
            known = len(self.builder.constraints)
            self.builder.add_node(part)
            self._check_equalities(node, known)
            if part.op_type == "Constant":
                continue
            self._refuse(node, refusal_of_results(self._view(part)))
            for name in filter(None, part.output):
                self._check_sizes(node, name)
                self._note(name)
        if node.op_type == "Reshape":
            self._check_reshape(view)
        return parts

    def _note(self, name: str) -> None:
        """Keeps the dimensions of a result, with the sizes they had."""
        for dim in self.builder.facts[name].shape or ():
            size = self._size(dim)
            if size is not None and dim not in self.known.setdefault(size, []):
                self.known[size].append(dim)

    def _size(self, dim: Dim) -> int | None:
        """The size a dimension with new symbols had, None for another one."""
        names = symbols(dim)
        if names.isdisjoint(self.sizes) or not names <= set(self.sizes):
            return None
        try:
            return evaluate(dim, self.sizes)
        except DimensionError:
            return None

    def _error(self, node: NodeProto, reason: str) -> FixedSizeError:
        fixed = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return FixedSizeError(
            f"Node {node.op_type} {_label(node)} may depend on {fixed}: {reason}. Leave this size "
            "fixed, or export the model again with it dynamic."
        )

    def _refuse(self, node: NodeProto, reason: str) -> None:
        if reason:
            raise self._error(node, reason)

    def _check_equalities(self, node: NodeProto, known: int) -> None:
        """A node that needs a new symbol to have some value depends on it."""
        if len(self.builder.constraints) == known:
            return
        for _, a, b, _ in list(self.builder.constraints.items())[known:]:
            if not (symbols(a) | symbols(b)).isdisjoint(self.sizes) and not prove_equal(a, b):
                raise self._error(node, f"it needs {a} to be {b}")

    def _check_sizes(self, node: NodeProto, name: str) -> None:
        """A result has the shape it had, when symbols have their sizes."""
        shape, before = self.builder.facts[name].shape, self._before(name)
        if shape is None or before is None:
            return
        found = [d if (size := self._size(d)) is None else size for d in shape]
        pairs = zip(found, before, strict=False)
        same = all(isinstance(a, str) or isinstance(b, str) or a == b for a, b in pairs)
        if len(found) != len(before) or not same:
            raise self._error(node, f"{name!r} would be {found}, not {list(before)}")

    # -- mending

    def _wanted(self, view: NodeView) -> Sequence[Dim] | str:
        """The dimensions a Reshape is to give, or why they are not known."""
        source, result = view.node.input[0], view.node.output[0]
        before, after = self._before(source), self._before(result)
        shape = self.builder.facts[source].shape
        if before is None or after is None or shape is None:
            return "its shape is not known"
        return reshaped_dims(shape, before, after, self.known, view.rows)

    def _reshape(self, view: NodeView) -> Iterator[NodeProto]:
        """A Reshape whose shape holds a size: 0 or -1 take its place, or the dimension itself."""
        node, target = view.node, view.constant(1)
        dims = self.builder.facts[node.input[0]].shape or ()
        if target is None or not view.new(dims):
            yield node
            return
        wanted = self._wanted(view)
        if isinstance(wanted, str):
            raise self._error(node, wanted)
        asked = [int(t) for t in target.ravel()]
        if len(asked) == len(wanted) and all(
            t == -1 or (dims[i] if t == 0 and not view.attr("allowzero", 0) else t) == d
            for i, (t, d) in enumerate(zip(asked, wanted, strict=True))
        ):
            yield node
            return
        yield from self._with_target(node, dims, wanted)

    def _with_target(
        self, node: NodeProto, dims: Sequence[Dim], wanted: Sequence[Dim]
    ) -> Iterator[NodeProto]:
        """The nodes of a Reshape to dimensions with symbols."""
        if 0 in wanted:
            raise self._error(node, "a dimension is 0")
        target: list[int | None] = []
        for i, d in enumerate(wanted):
            kept = i < len(dims) and not isinstance(d, int) and dims[i] == d
            target.append(d if isinstance(d, int) else 0 if kept else None)
        holes = [i for i, d in enumerate(target) if d is None]
        if holes:  # -1 takes the place of the one that is not copied from the input
            hole = max(holes, key=lambda i: (wanted[i] not in dims, i))
            holes.remove(hole)
            target[hole] = -1
        if not holes:
            yield self._constant(name := self._name(node), [d for d in target if d is not None])
        else:
            parts: list[list[int] | int] = []
            for i, t in enumerate(target):
                if t is not None:
                    parts.append([t])
                elif wanted[i] in dims:
                    parts.append(list(dims).index(wanted[i]))
                else:
                    raise self._error(node, f"{wanted[i]} is no dimension of its input")
            *made, name = self._vector(node, node.input[0], parts)
            yield from made
        copy = oh.make_node("Reshape", [node.input[0], name], list(node.output), name=node.name)
        copy.metadata_props.extend(node.metadata_props)
        yield copy

    def _concat(self, view: NodeView) -> Iterator[NodeProto]:
        """A Concat with a constant of one row, which takes the rows of the others."""
        node, axis = view.node, int(view.attr("axis", 0))
        shapes = [view.dims(i) for i in range(len(node.input))]
        touched = [i for i, dims in enumerate(shapes) if view.new(dims)]
        inputs = list(node.input)
        if touched:
            first = shapes[touched[0]]
            axis = axis % len(first)
            rows = [a for a, d in enumerate(first) if d in view.rows and a != axis]
            for i, dims in enumerate(shapes):
                thin = [a for a in rows if len(dims) == len(first) and dims[a] == 1]
                if i not in touched and thin:
                    parts: list[list[int] | int] = [
                        a if a in thin else [1] for a in range(len(first))
                    ]
                    *made, name = self._vector(node, node.input[touched[0]], parts)
                    yield from made
                    wide = self._name(node)
                    yield oh.make_node("Expand", [inputs[i], name], [wide])
                    inputs[i] = wide
        if inputs == list(node.input):
            yield node
            return
        copy = NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(inputs)
        yield copy

    def _vector(
        self, node: NodeProto, source: str, parts: Sequence[list[int] | int]
    ) -> Iterator[Any]:
        """Nodes that make a shape out of integers and of dimensions of a result, then its name."""
        names = []
        shape = self._name(node)
        yield oh.make_node("Shape", [source], [shape])
        for part in parts:
            constant = self._name(node)
            yield self._constant(constant, part if isinstance(part, list) else [part])
            names.append(constant)
            if isinstance(part, int):
                names[-1] = self._name(node)
                yield oh.make_node("Gather", [shape, constant], [names[-1]], axis=0)
        result = self._name(node)
        yield oh.make_node("Concat", names, [result], axis=0)
        yield result

    def _constant(self, name: str, values: Sequence[int]) -> NodeProto:
        tensor = onh.from_array(np.array(values, np.int64))
        made: NodeProto = oh.make_node("Constant", [], [name], value=tensor)
        return made

    def _name(self, node: NodeProto) -> str:
        """A new name for a result."""
        base, i = f"{node.output[0]}_size", 0
        while (name := f"{base}{i or ''}") in self.taken:
            i += 1
        self.taken.add(name)
        return name

    def _check_reshape(self, view: NodeView) -> None:
        """The result of a Reshape is the expected one, and has as many elements as its input."""
        dims = self.builder.facts[view.node.input[0]].shape or ()
        found = self.builder.facts[view.node.output[0]].shape or ()
        if prove_equal(prod(dims), prod(found)) is not True:
            raise self._error(view.node, f"it makes {list(found)} of {list(dims)}")
        wanted = self._wanted(view) if view.new(dims) else found
        self._refuse(view.node, wanted if isinstance(wanted, str) else "")
        if len(wanted) != len(found) or not all(map(prove_equal, found, wanted)):
            raise self._error(view.node, f"it makes {list(found)}, not {list(wanted)}")

    def _declare(self) -> None:
        """Writes the new shapes of the outputs; other results that changed are not declared."""
        graph = self.changed.graph
        kept = [v for v in graph.value_info if not self._is_new(v.name)]
        del graph.value_info[:]
        graph.value_info.extend(kept)
        for value in graph.output:
            shape = self.builder.facts[value.name].shape
            if shape is None or not self._is_new(value.name):
                continue
            del value.type.tensor_type.shape.dim[:]
            for dim in shape:
                place = value.type.tensor_type.shape.dim.add()
                if isinstance(dim, int):
                    place.dim_value = dim
                else:
                    place.dim_param = dim


def _label(node: NodeProto) -> str:
    """The name a user finds a node by."""
    return repr(node.name or next(filter(None, node.output), ""))
