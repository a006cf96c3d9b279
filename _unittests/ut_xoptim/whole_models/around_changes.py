"""Changes around a model, besides those of near-misses: consumers, axes, sizes, special
constants, bodies that capture their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from ut_xoptim.whole_models.near_misses import NearMiss

from xbuilder import GraphBuilder

#: values that rewrites may lose; those that overflow when numbers are multiplied in another order
SPECIAL = (1.0, np.nan, np.inf, -np.inf, -0.0, 0.0, -1.0)
LIMITS = ("max", "min", "tiny")
#: inputs of bodies: the condition of an If, the number of steps of a Loop
FLAG, STEPS = "around_flag", "around_steps"
#: domain of the local function
DOMAIN = "around"
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
#: operator -> the input that holds its axes
_AXES = {"Squeeze": 1, "Unsqueeze": 1, "Slice": 3, "Pad": 3, "CumSum": 1}
_ONE_OUTPUT = ("Identity", "Shape", "Neg", "Not", "Relu", "Size")


def special_value(value: Any, dtype: np.dtype) -> Any:
    """A number of a type: the largest one, the smallest one above 0, or the one given."""
    limits = np.finfo(dtype)
    named = {"max": limits.max, "min": limits.min, "tiny": limits.smallest_subnormal}
    return named.get(value, value) if isinstance(value, str) else value


class Around(NearMiss):
    """Changes a model in the ways whose names are given, always the same way for the same seed.

    :param seed: seed of every choice
    :param model: the model, changed in place
    :param specials: values constants may get
    """

    def __init__(self, seed: int, model: ModelProto, specials: Sequence[Any]):
        super().__init__(seed, model)
        self.specials = specials

    def make(self, names: Sequence[str]) -> None:
        """Makes the changes, one after the other; bodies come last, as they hide their nodes."""
        for name in sorted(names, key=lambda name: name in _BODIES):
            CHANGES[name](self)

    def second_consumer(self) -> None:
        """Another node reads a result."""
        names = [o for n in self.graph.node for o in n.output if o]
        names += [i.name for i in self.graph.input]
        if names:
            op_type, name = self.pick(_ONE_OUTPUT), self.pick(names)
            output = f"{name}_{op_type}"
            self.graph.node.append(oh.make_node(op_type, [name], [output]))
            self.graph.output.add(name=output)
            self.changes.append(f"{op_type} reads {name}")

    def other_axis(self) -> None:
        """An axis is counted from the end, or no longer is."""
        builder = GraphBuilder(self.model, infer_shapes_options=True)
        nodes = list(self.graph.node)
        self.rng.shuffle(nodes)  # type: ignore[arg-type]
        for node in nodes:
            name = node.output[0] if node.op_type == "Unsqueeze" else [*node.input, ""][0]
            facts = builder.facts[name] if name else None
            if facts is None or facts.shape is None:
                continue
            if self._axis_attribute(node, len(facts.shape)) or self._axis_input(
                node, len(facts.shape)
            ):
                self.changes.append(f"sign of an axis of {node.op_type}")
                return

    def _axis_attribute(self, node: NodeProto, rank: int) -> bool:
        for attribute in node.attribute:
            if attribute.name == "axis" and attribute.type == AttributeProto.INT:
                attribute.i = _other_sign(attribute.i, rank)
                return True
            if attribute.name == "axes" and attribute.ints:
                attribute.ints[:] = [_other_sign(i, rank) for i in attribute.ints]
                return True
        return False

    def _axis_input(self, node: NodeProto, rank: int) -> bool:
        place = 1 if node.op_type.startswith("Reduce") else _AXES.get(node.op_type, 0)
        if not 0 < place < len(node.input):
            return False
        tensor = next((t for t in self.graph.initializer if t.name == node.input[place]), None)
        if tensor is None:
            return False
        value = numpy_helper.to_array(tensor)
        if value.dtype.kind != "i":
            return False
        node.input[place] = f"{tensor.name}_other_sign"
        value = np.where(value < 0, value + rank, value - rank).astype(value.dtype)
        self.graph.initializer.append(numpy_helper.from_array(value, node.input[place]))
        return True

    def other_size(self) -> None:
        """A dimension of an input is 0, 1, 2, 5, or a symbol, a new one or that of another."""
        found = [(i, d) for i in self.graph.input for d in i.type.tensor_type.shape.dim]
        if not found:
            return
        info, dim = self.pick(found)
        known = [d.dim_param for _, d in found if d.dim_param]
        size: Any = self.pick((0, 1, 2, 5, "free", *known[:1]))
        dim.Clear()
        setattr(dim, "dim_param" if isinstance(size, str) else "dim_value", size)
        self.forget_shapes()
        self.changes.append(f"a dimension of {info.name} is {size}")

    def unknown_dimensions(self) -> None:
        """Every dimension of the inputs is a symbol of its own."""
        for info in self.graph.input:
            for i, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.dim_param = dim.dim_param or f"{info.name}_{dim.dim_value}_{i}"
        self.forget_shapes()
        self.changes.append("all dimensions are symbols")

    def forget_shapes(self) -> None:
        """The shapes of computed results are not declared."""
        del self.graph.value_info[:]
        for output in self.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")

    def special_constant(self) -> None:
        """A number of a float constant is a special one, or all of them."""
        found = [*self.graph.initializer]
        found += [a.t for n in self.graph.node for a in n.attribute if a.HasField("t")]
        known = [t for t in found if t.data_type in _FLOATS and np.prod(t.dims)]
        if known:
            tensor = self.pick(known)
            value = numpy_helper.to_array(tensor).copy()
            place = self.pick([..., *np.ndindex(value.shape)][:9])
            chosen = self.pick(self.specials)
            value[place] = special_value(chosen, value.dtype)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
            self.changes.append(f"{chosen} in {tensor.name}")

    def constant_as_input(self) -> None:
        """A constant becomes an input."""
        if self.graph.initializer:
            place = int(self.rng.integers(len(self.graph.initializer)))
            tensor = self.graph.initializer.pop(place)
            info = oh.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            self.graph.input.append(info)
            self.changes.append(f"{tensor.name} is an input")

    # -- bodies

    def _cut(self) -> tuple[list[NodeProto], list[ValueInfoProto]] | None:
        """The last nodes, removed from the graph, and the outputs they give."""
        nodes = list(self.graph.node)
        first = self.pick((0, int(self.rng.integers(max(len(nodes), 1)))))
        moved = [NodeProto.FromString(n.SerializeToString()) for n in nodes[first:]]
        made = {o for n in moved for o in n.output if o}
        outputs = [o for o in self.graph.output if o.name in made]
        if not outputs or len({o.name for o in outputs}) < len(outputs):
            return None
        del self.graph.node[first:]
        self.forget_shapes()
        return moved, [ValueInfoProto.FromString(o.SerializeToString()) for o in outputs]

    def _call(self, node: NodeProto, outputs: Sequence[ValueInfoProto]) -> None:
        """The node gives the results of the moved nodes, with other names."""
        names = {o.name: f"{o.name}_called" for o in outputs}
        node.output.extend(names.values())
        for output in self.graph.output:
            output.name = names.get(output.name, output.name)
        self.graph.node.append(node)

    def if_body(self) -> None:
        """The last nodes are in a branch, and the opposite of their results in the other one."""
        cut = self._cut()
        if cut is None:
            return
        nodes, outputs = cut
        then = oh.make_graph(nodes, "then", [], outputs)
        others, results = list(nodes), []
        for info in outputs:
            kind = info.type.tensor_type.elem_type
            op_type = (
                "Not" if kind == TensorProto.BOOL else "Neg" if kind in _FLOATS else "Identity"
            )
            others.append(oh.make_node(op_type, [info.name], [f"{info.name}_other"]))
            result = ValueInfoProto.FromString(info.SerializeToString())
            result.name = f"{info.name}_other"
            results.append(result)
        other = oh.make_graph(others, "else", [], results)
        self.graph.input.append(oh.make_tensor_value_info(FLAG, TensorProto.BOOL, []))
        self._call(oh.make_node("If", [FLAG], [], then_branch=then, else_branch=other), outputs)
        self.changes.append(f"{len(nodes)} nodes in an If")

    def loop_body(self) -> None:
        """The last nodes are done again and again."""
        cut = self._cut()
        if cut is None:
            return
        nodes, outputs = cut
        head = [
            oh.make_tensor_value_info("around_step", TensorProto.INT64, []),
            oh.make_tensor_value_info("around_go", TensorProto.BOOL, []),
        ]
        nodes = [oh.make_node("Identity", ["around_go"], ["around_still"]), *nodes]
        still = oh.make_tensor_value_info("around_still", TensorProto.BOOL, [])
        body = oh.make_graph(nodes, "body", head, [still, *outputs])
        self.graph.input.append(oh.make_tensor_value_info(STEPS, TensorProto.INT64, []))
        self._call(oh.make_node("Loop", [STEPS, ""], [], body=body), outputs)
        self.changes.append(f"{len(nodes) - 1} nodes in a Loop")

    def function_body(self) -> None:
        """The last nodes are a local function; all they may read are its inputs."""
        cut = self._cut()
        if cut is None:
            return
        nodes, outputs = cut
        values = (*self.graph.input, *self.graph.initializer)
        names = dict.fromkeys([v.name for v in values])
        names.update(dict.fromkeys(o for n in self.graph.node for o in n.output if o))
        results = [o.name for o in outputs]
        imports = list(self.model.opset_import)
        function = oh.make_function(DOMAIN, "Body", list(names), results, nodes, imports)
        self.model.functions.append(function)
        self.model.opset_import.append(oh.make_opsetid(DOMAIN, 1))
        self._call(oh.make_node("Body", list(names), [], domain=DOMAIN), outputs)
        self.changes.append(f"{len(nodes)} nodes in a function")


def _other_sign(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis - rank


_BODIES = ("if_body", "loop_body", "function_body")
#: name of a change -> function that makes it
CHANGES: dict[str, Callable[[Any], None]] = {
    name: getattr(Around, name)
    for name in (
        "another_output",
        "second_consumer",
        "swapped_operands",
        "another_operand",
        "other_axis",
        "another_attribute",
        "another_constant",
        "special_constant",
        "constant_as_input",
        "other_size",
        "unknown_dimensions",
        "second_copy",
        *_BODIES,
    )
}


def changed(
    model: ModelProto, names: Sequence[str], seed: int, specials: Sequence[Any] = SPECIAL
) -> Around:
    """A copy of a model, changed."""
    copy = ModelProto()
    copy.CopyFrom(model)
    around = Around(seed, copy, specials)
    around.make(names)
    return around
