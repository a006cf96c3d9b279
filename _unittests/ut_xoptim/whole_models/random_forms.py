"""Other forms of the random models: quantized, of another type, with functions, branches and loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import onnx.helper as oh
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.numpy_helper import from_array, to_array
from ut_xoptim.whole_models.random_models import BOOL, FLOAT, INT64, RandomModel

from xbuilder.nodes.subgraphs import captured_names, subgraphs_of

#: forms of a model, they may be combined
FORMS = (
    *("quantized", "containers", "branch", "function", "loop", "scan"),
    *("defaults", "sparse", "half", "double"),
)
#: forms that change the type of the model
TYPES = {"half": TensorProto.FLOAT16, "double": TensorProto.DOUBLE}
OPSET = 21


class FormedModel(RandomModel):
    """A random model with other forms. It has two more inputs: `flag`, and `n`, a number of iterations.

    :param seed: seed of everything
    :param n_nodes: number of steps
    :param forms: some of :data:`FORMS`
    """

    def __init__(self, seed: int, n_nodes: int, forms: Collection[str]):
        super().__init__(seed, n_nodes)
        self.forms = forms
        self.functions: list[FunctionProto] = []
        # a result that moves with its readers is not read from elsewhere
        self.nodes.sort(key=lambda node: node.op_type != "Constant")
        made = self.made(self.nodes) or ["X"]
        self.outputs = list(dict.fromkeys([made[-1], self.pick(*made)]))
        self.counter = 0

    def formed(self) -> ModelProto:
        """The model in its forms."""
        changes = {
            "quantized": [self.quantize],
            "containers": [self.contain],
            "branch": [self.branch],
            "function": [self.call, self.call],
            "loop": [lambda: self.repeat("Loop")],
            "scan": [lambda: self.repeat("Scan")],
        }
        for form, functions in changes.items():
            if form in self.forms:
                for change in functions:
                    change()
        numbered(self.nodes)
        for function in self.functions:
            numbered(function.node)
        model = self.whole()
        if "defaults" in self.forms:
            self.make_defaults(model.graph)
        if "sparse" in self.forms:
            self.make_sparse(model.graph)
        for form, elem_type in TYPES.items():
            if form in self.forms:
                retyped(model, elem_type)
        return model

    def whole(self) -> ModelProto:
        """The nodes and the functions as a model."""
        floats = [("X", ["a", "b"]), ("Z", ["a", "b"]), ("V", ["a", 1, 6])]
        graph = oh.make_graph(
            self.nodes,
            "formed",
            [
                *(oh.make_tensor_value_info(name, FLOAT, dims) for name, dims in floats),
                oh.make_tensor_value_info("flag", BOOL, []),
                oh.make_tensor_value_info("n", INT64, []),
            ],
            [self.info(name) for name in self.outputs],
            self.initializers,
        )
        opsets = [oh.make_opsetid("", OPSET), oh.make_opsetid("local", 1)]
        return oh.make_model(graph, opset_imports=opsets, functions=self.functions, ir_version=10)

    # -- pieces

    def fresh(self, prefix: str) -> str:
        """A new name."""
        self.counter += 1
        return f"{prefix}_{self.counter}"

    def weight(self, value: np.ndarray) -> str:
        """Adds an initializer."""
        name = self.fresh("weight")
        self.initializers.append(from_array(value, name))
        return name

    def info(self, name: str, known_as: str = ""):
        """Type and rank of a result, which has the name *name*."""
        elem_type, shape = self.results[known_as or name]
        return oh.make_tensor_value_info(name, elem_type, [None] * len(shape))

    def made(self, nodes: Iterable[NodeProto]) -> list[str]:
        """Results of some nodes whose types are known."""
        return [o for node in nodes for o in node.output if o in self.results]

    def segment(self) -> tuple[int, int, list[str]] | None:
        """A few nodes that follow each other, and the results that others read, all known."""
        for _ in range(10):
            start = int(self.rng.integers(len(self.nodes)))
            stop = min(start + int(self.rng.integers(1, 9)), len(self.nodes))
            if self.nodes[start].op_type == "Constant":
                continue
            after = {*captured_names(GraphProto(node=self.nodes[stop:])), *self.outputs}
            given = [o for node in self.nodes[start:stop] for o in node.output if o in after]
            if given and all(name in self.results for name in given):
                return start, stop, given
        return None

    # -- forms

    def quantize(self) -> None:
        """Puts QuantizeLinear and DequantizeLinear after some results and some weights."""
        nodes: list[NodeProto] = []
        known = {name for name, (elem_type, _) in self.results.items() if elem_type == FLOAT}
        for node in self.nodes:
            nodes.append(node)
            (first, *others) = node.output
            if first in known and not others and self.rng.random() < 0.4:
                node.output[0] = self.fresh(first)
                nodes.extend(self.rounded(node.output[0], first))
        weights = []
        for init in self.initializers:
            if init.data_type != FLOAT or self.rng.random() < 0.5:
                weights.append(init)
                continue
            name, scale = init.name, self.pick(0.5, 0.03)
            ints = np.clip(np.rint(to_array(init) / scale), -128, 127).astype(np.int8)
            weights.append(from_array(ints, f"{name}_q"))
            weights.append(from_array(np.array(scale, np.float32), f"{name}_s"))
            inputs = [f"{name}_q", f"{name}_s"]
            nodes.insert(0, oh.make_node("DequantizeLinear", inputs, [name]))
        self.initializers, self.nodes = weights, nodes

    def contain(self) -> None:
        """Puts some results in a sequence or an optional, and reads them from there."""
        nodes: list[NodeProto] = []
        for node in self.nodes:
            nodes.append(node)
            (first, *others) = node.output
            if first not in self.results or others or self.rng.random() < 0.7:
                continue
            inside = node.output[0] = self.fresh(first)
            box = self.fresh("box")
            if self.rng.random() < 0.3:
                nodes.append(oh.make_node("Optional", [inside], [box]))
                nodes.append(oh.make_node("OptionalGetElement", [box], [first]))
                continue
            place = self.weight(np.array(self.pick(0, 1, -1), np.int64))
            nodes.append(oh.make_node("SequenceConstruct", [inside, inside], [box]))
            nodes.append(oh.make_node("SequenceAt", [box, place], [first]))
        self.nodes = nodes

    def make_defaults(self, graph: GraphProto) -> None:
        """Makes some initializers inputs that have a default value."""
        for init in graph.initializer:
            if init.data_type == FLOAT and self.rng.random() < 0.4:
                info = oh.make_tensor_value_info(init.name, FLOAT, list(init.dims))
                graph.input.append(info)

    def make_sparse(self, graph: GraphProto) -> None:
        """Makes some initializers sparse."""
        inputs = {row.name for row in graph.input}
        for init in list(graph.initializer):
            if init.data_type != FLOAT or not init.dims or init.name in inputs:
                continue
            if self.rng.random() < 0.5:
                dense = to_array(init)
                (places,) = np.nonzero(dense.ravel())
                values = from_array(dense.ravel()[places], init.name)
                indices = from_array(places.astype(np.int64), f"{init.name}_i")
                sparse = oh.make_sparse_tensor(values, indices, list(init.dims))
                graph.sparse_initializer.append(sparse)
                graph.initializer.remove(init)

    def rounded(self, x: str, y: str) -> Iterator[NodeProto]:
        """Nodes that quantize a result."""
        dtype = self.pick(np.uint8, np.int8, np.int16)
        zero = 0 if dtype != np.uint8 else 128
        scale = np.array(self.pick(0.1, 0.037), np.float32)
        more = [self.weight(scale), self.weight(np.array(zero, dtype))]
        yield oh.make_node("QuantizeLinear", [x, *more], [f"{x}_q"])
        yield oh.make_node("DequantizeLinear", [f"{x}_q", *more], [y])

    def branch(self) -> None:
        """Puts a segment in both branches of an If; floats change their sign in the other one."""
        found = self.segment()
        if found is None:
            return
        start, stop, given = found
        graphs = []
        for suffix in (self.fresh("_t"), self.fresh("_e")):
            nodes = renamed(self.nodes[start:stop], suffix)
            names = [f"{name}{suffix}" for name in given]
            if suffix.startswith("_e"):
                floats = [name for name in given if self.results[name][0] == FLOAT]
                for name in floats:
                    nodes.append(oh.make_node("Neg", [f"{name}{suffix}"], [f"{name}{suffix}n"]))
                names = [f"{n}{suffix}n" if n in floats else f"{n}{suffix}" for n in given]
            infos = [self.info(name, known) for name, known in zip(names, given, strict=True)]
            graphs.append(oh.make_graph(nodes, suffix, [], infos))
        then, other = graphs
        owner = oh.make_node("If", ["flag"], given, then_branch=then, else_branch=other)
        self.nodes[start:stop] = [owner]

    def call(self) -> None:
        """Makes a function of a segment, calls it, sometimes a second time on the other input."""
        found = self.segment()
        if found is None:
            return
        start, stop, given = found
        segment = [copied(node) for node in self.nodes[start:stop]]
        constants = {init.name: init for init in self.initializers}
        inputs: list[str] = []
        inside: list[NodeProto] = []
        for name in captured_names(GraphProto(node=segment)):
            if name in constants and self.rng.random() < 0.6:
                value = constants[name]
                inside.append(oh.make_node("Constant", [], [name], value=value))
            else:
                inputs.append(name)
        passed = [attribute for node in segment for attribute in self.parameters(node)]
        name = self.fresh("f")
        opsets = [oh.make_opsetid("", OPSET), oh.make_opsetid("local", 1)]
        attributes = [attribute.name for attribute in passed]
        function = oh.make_function(
            "local", name, inputs, given, [*inside, *segment], opsets, attributes
        )
        self.functions.append(function)
        calls = [oh.make_node(name, inputs, given, domain="local")]
        if "X" in inputs and self.rng.random() < 0.5:
            others = [f"{o}_{name}" for o in given]
            self.results.update({o: self.results[i] for i, o in zip(given, others, strict=True)})
            self.outputs.append(others[0])
            swapped = ["Z" if i == "X" else i for i in inputs]
            calls.append(oh.make_node(name, swapped, others, domain="local"))
        for node in calls:
            node.attribute.extend(passed)
        self.nodes[start:stop] = calls

    def parameters(self, node: NodeProto) -> Iterator[AttributeProto]:
        """Makes some integers of a node parameters of the function that holds it."""
        for attribute in node.attribute:
            kinds = (AttributeProto.INT, AttributeProto.INTS)
            if attribute.type in kinds and attribute.name != "to" and self.rng.random() < 0.6:
                given = AttributeProto()
                given.CopyFrom(attribute)
                given.name = self.fresh(attribute.name)
                attribute.Clear()
                attribute.name = given.name.rpartition("_")[0]
                attribute.type = given.type
                attribute.ref_attr_name = given.name
                yield given

    def repeat(self, op_type: str) -> None:
        """Puts the second half of the nodes in a loop, whose state they read instead of `X`."""
        first = [node for node in self.nodes if node.op_type == "Constant"]
        others = [node for node in self.nodes if node.op_type != "Constant"]
        half = len(others) // 2
        first, second = [*first, *others[:half]], [copied(node) for node in others[half:]]
        made = self.made(second)
        if not made:
            return
        state, taken, last = self.fresh("v"), self.fresh("taken"), made[-1]
        inner = taken if op_type == "Scan" else state
        replaced({"X": inner}, second)
        same = [n for n in made if self.results[n] == (FLOAT, ("a", "b"))]
        following, kept = self.fresh("following"), self.fresh("kept")
        source = same[-1] if same else state
        second.append(oh.make_node("Tanh", [source], [following]))
        second.append(oh.make_node("Identity", [last], [kept]))
        final, stack = self.fresh("final"), self.fresh("stack")
        infos = [oh.make_tensor_value_info(following, FLOAT, ["a", "b"]), self.info(kept, last)]
        given = oh.make_tensor_value_info(state, FLOAT, ["a", "b"])
        if op_type == "Loop":
            count, go = self.fresh("i"), self.fresh("go")
            second.append(oh.make_node("Identity", [go], [f"{go}_o"]))
            scalars = [oh.make_tensor_value_info(n, t, []) for n, t in ((count, INT64), (go, BOOL))]
            goes_on = oh.make_tensor_value_info(f"{go}_o", BOOL, [])
            body = oh.make_graph(second, "body", [*scalars, given], [goes_on, *infos])
            inputs = ["n", self.weight(np.array(True)), "Z"]
            owners = [oh.make_node("Loop", inputs, [final, stack], body=body)]
        else:
            taken_info = oh.make_tensor_value_info(taken, FLOAT, ["a", "b"])
            body = oh.make_graph(second, "body", [given, taken_info], infos)
            axes, rows = self.weight(np.array([0], np.int64)), self.fresh("rows")
            owners = [oh.make_node("Unsqueeze", [n, axes], [f"{rows}{n}"]) for n in "XZ"]
            owners.append(oh.make_node("Concat", [f"{rows}X", f"{rows}Z"], [rows], axis=0))
            outputs = [final, stack]
            owners.append(oh.make_node("Scan", ["Z", rows], outputs, body=body, num_scan_inputs=1))
        self.results[final] = (FLOAT, ("a", "b"))
        elem_type, shape = self.results[last]
        self.results[stack] = (elem_type, ("k", *shape))
        ended = self.fresh("ended")
        self.results[ended] = (FLOAT, ("a", "b"))
        constants = [n for n in self.nodes if n.op_type == "Constant" and n not in first]
        self.nodes = [*constants, *first, *owners, oh.make_node("Abs", [final], [ended])]
        outer = [*self.made(first), "X"]
        self.outputs = [ended, stack, *[n for n in self.outputs if n in outer][:1]]


# -- copies of nodes


def copied(node: NodeProto) -> NodeProto:
    """A copy of a node."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def numbered(nodes: Iterable[NodeProto]) -> None:
    """Names the nodes of each graph from 0, as onnxscript does."""
    for i, node in enumerate(nodes):
        node.name = f"n{i}"
        for _, graph in subgraphs_of(node):
            numbered(graph.node)


def inner_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for _, graph in subgraphs_of(node):
            yield from inner_nodes(graph.node)


def replaced(names: dict[str, str], nodes: Iterable[NodeProto]) -> None:
    """Changes the names that some nodes and their subgraphs read."""
    for node in inner_nodes(nodes):
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)


def renamed(nodes: Sequence[NodeProto], suffix: str) -> list[NodeProto]:
    """Copies of nodes whose results, and those of their subgraphs, have other names."""
    copies = [copied(node) for node in nodes]
    graphs = [graph for node in inner_nodes(copies) for _, graph in subgraphs_of(node)]
    rows = [row for graph in graphs for row in (*graph.input, *graph.output)]
    own = {o for node in inner_nodes(copies) for o in node.output} | {row.name for row in rows}
    names = {name: f"{name}{suffix}" for name in own if name}
    replaced(names, copies)
    for node in inner_nodes(copies):
        for i, name in enumerate(node.output):
            node.output[i] = names.get(name, name)
    for row in rows:
        row.name = names.get(row.name, row.name)
    return copies


# -- types


def retyped(model: ModelProto, elem_type: int) -> None:
    """Changes float into another type everywhere."""
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)

    def change(tensor: TensorProto) -> None:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(from_array(to_array(tensor).astype(dtype), tensor.name))

    nodes = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    graphs = [model.graph, *(g for n in inner_nodes(nodes) for _, g in subgraphs_of(n))]
    for graph in graphs:
        for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
            change(tensor)
        for row in (*graph.input, *graph.output):
            if row.type.tensor_type.elem_type == FLOAT:
                row.type.tensor_type.elem_type = elem_type
    for node in inner_nodes(nodes):
        for attribute in node.attribute:
            if attribute.name == "value":
                change(attribute.t)
            elif node.op_type == "Cast" and attribute.i == FLOAT:
                attribute.i = elem_type
