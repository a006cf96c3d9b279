"""Random models with everything that breaks optimizers: subgraphs at every depth, captured names,
names used twice, ties, dead nodes, identities, constants, results that are outputs."""

from __future__ import annotations

import random

import numpy as np
import onnx.helper as oh
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.numpy_helper import from_array

SHAPE = [2, 2]
UNARY = ("Neg", "Abs", "Identity", "Identity", "Transpose", "Relu", "Floor")
BINARY = ("Add", "Sub", "Mul", "Max")


class RandomModel:
    """Makes one model; every result is a float matrix 2x2, so that any of them fits anywhere.

    :param seed: two equal seeds give two equal models
    :param share: subgraphs may define names another subgraph defines too
    :param n_functions: number of local functions, each may call the previous ones
    :param shadow: subgraphs may define again a name of the outer graph (onnxruntime refuses it)
    """

    def __init__(self, seed: int, share: bool = True, n_functions: int = 0, shadow: bool = False):
        self.random = random.Random(seed)
        self.share = share
        self.shadow = shadow
        self.n_functions = n_functions
        self.functions: list[FunctionProto] = []
        self.count = 0
        self.arrays = np.random.default_rng(seed)

    def fresh(self, prefix: str = "r") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def info(self, name: str, typed: bool = True):
        if not typed:
            return oh.make_tensor_value_info(name, TensorProto.FLOAT, [None, None])
        return oh.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)

    def weight(self, name: str):
        value = self.random.choice(
            [self.arrays.integers(-3, 4, SHAPE), np.zeros(SHAPE), -np.zeros(SHAPE), np.eye(2)]
        )
        return from_array(np.asarray(value, dtype=np.float32), name=name)

    def simple(self, names: list[str]) -> NodeProto:
        if self.random.random() < 0.1:
            value = self.weight("value")
            return oh.make_node("Constant", [], [self.fresh()], value=value)
        if self.random.random() < 0.5:
            return oh.make_node(
                self.random.choice(UNARY), [self.random.choice(names)], [self.fresh()]
            )
        inputs = [self.random.choice(names), self.random.choice(names)]
        return oh.make_node(self.random.choice(BINARY), inputs, [self.fresh()])

    def graph(self, names: list[str], depth: int, n_out: int, prefix: list = ()) -> GraphProto:
        """A subgraph whose results are its own."""
        made, nodes = list(prefix), []
        weights = [self.weight(self.fresh("w")) for _ in range(self.random.randrange(2))]
        made += [w.name for w in weights]
        for _ in range(self.random.randrange(1, 5)):
            nodes.append(self.node([*names, *made], depth))
            if self.shadow and self.random.random() < 0.4:
                self.hide(nodes[-1], [n for n in names if n.startswith("r") and n not in made])
            made.extend(nodes[-1].output)
        outputs = []
        for _ in range(n_out):
            known = [n for n in (*names, *made) if not n.startswith("s")]
            nodes.append(oh.make_node("Identity", [self.random.choice(known)], [self.fresh()]))
            outputs.append(nodes[-1].output[0])
            made.append(outputs[-1])
        self.random.shuffle(weights)
        infos = [self.info(o, self.random.random() < 0.7) for o in outputs]
        return oh.make_graph(nodes, self.fresh("g"), [], infos, weights)

    def hide(self, node: NodeProto, names: list[str]) -> None:
        """Gives to the first result of a node a name of the outer graph it does not read."""
        from xbuilder.nodes.subgraphs import node_captures

        names = [n for n in names if n not in node.input and n not in node_captures(node)]
        if names:
            node.output[0] = self.random.choice(names)

    def function(self) -> FunctionProto:
        """A function of two matrices and a condition, the last input may be missing in a call."""
        names = ["fa", "fb"]
        nodes = [oh.make_node("LeakyRelu", ["fa"], [self.fresh()])]
        nodes[0].attribute.add(name="alpha", ref_attr_name="alpha", type=AttributeProto.FLOAT)
        names.append(nodes[0].output[0])
        for flag in ("true", "false"):
            value = from_array(np.array(flag == "true"))
            nodes.append(oh.make_node("Constant", [], [flag], value=value))
        for _ in range(self.random.randrange(1, 5)):
            draw = self.random.random()
            if draw < 0.2 and self.functions:
                nodes.append(self.call(names))
            elif draw < 0.4:
                nodes.append(self.branch([n for n in names if n != "c"], 1))
            else:
                nodes.append(self.simple(names))
            names.extend(nodes[-1].output)
        outputs = [nodes[-1].output[0], self.random.choice(names[2:])]
        if outputs[0] == outputs[1]:
            outputs.pop()
        proto = oh.make_function(
            "f",
            f"F{len(self.functions)}",
            ["fa", "fb", "c"],
            outputs,
            nodes,
            [oh.make_opsetid("", 18), oh.make_opsetid("f", 1)],
        )
        if self.random.random() < 0.5:
            proto.attribute_proto.append(oh.make_attribute("alpha", 0.25))
        else:
            proto.attribute.append("alpha")
        return proto

    def call(self, names: list[str]) -> NodeProto:
        """A call to a function made before."""
        function = self.random.choice(self.functions)
        inputs = [self.random.choice(names), self.random.choice(names), "c"]
        outputs = [self.fresh() for _ in function.output]
        kwargs = {"alpha": 0.5} if function.attribute or self.random.random() < 0.5 else {}
        return oh.make_node(function.name, inputs, outputs, domain="f", **kwargs)

    def branch(self, names: list[str], depth: int) -> NodeProto:
        condition = self.random.choice(["c", "true", "false"])
        n_out = self.random.randrange(1, 3)
        count = self.count
        first = self.graph(names, depth - 1, n_out)
        highest = self.count
        if self.share:
            self.count = count  # both branches define the same names
        second = self.graph(names, depth - 1, n_out)
        self.count = max(self.count, highest)
        outputs = [self.fresh() for _ in range(n_out)]
        return oh.make_node("If", [condition], outputs, then_branch=first, else_branch=second)

    def loop(self, names: list[str], depth: int) -> NodeProto:
        state = self.random.choice(names)
        i, cond, carried = self.fresh("i"), self.fresh("k"), self.fresh("v")
        body = self.graph(names, depth - 1, 2, [carried])
        inputs = [
            oh.make_tensor_value_info(i, TensorProto.INT64, []),
            oh.make_tensor_value_info(cond, TensorProto.BOOL, []),
            self.info(carried),
        ]
        next_cond = self.fresh("k")
        body.node.append(oh.make_node("Identity", [cond], [next_cond]))
        body.input.extend(inputs)
        outputs = [oh.make_tensor_value_info(next_cond, TensorProto.BOOL, []), *body.output]
        del body.output[:]
        body.output.extend(outputs)
        # the reference evaluator, which runs models hiding names, is wrong below two iterations
        trip = self.random.choice(["n3"] if self.shadow else ["n0", "n1", "n3", "n"])
        scanned = self.fresh("s")
        return oh.make_node("Loop", [trip, "true", state], [self.fresh(), scanned], body=body)

    def node(self, names: list[str], depth: int) -> NodeProto:
        draw = self.random.random()
        names = [n for n in names if not n.startswith("s")]
        if depth > 0 and draw < 0.15:
            return self.branch(names, depth)
        if depth > 0 and draw < 0.25:
            return self.loop(names, depth)
        if self.functions and draw < 0.45:
            return self.call(names)
        return self.simple(names)

    def model(self, n_nodes: int = 12, opset: int = 18) -> ModelProto:
        """The model: inputs x, z (with a default value), c, n."""
        weights = [self.weight(f"w_{i}") for i in range(3)]
        weights += [self.weight("z"), from_array(np.array(True), "true")]
        weights += [from_array(np.array(False), "false")]
        weights += [from_array(np.array(k, dtype=np.int64), f"n{k}") for k in (0, 1, 3)]
        for _ in range(self.n_functions):
            self.functions.append(self.function())
        names = ["x", "z", *(w.name for w in weights[:3])]
        nodes: list[NodeProto] = []
        for _ in range(n_nodes):
            nodes.append(self.node(names, 2))
            names.extend(nodes[-1].output)
        outputs = [n for n in names if n not in ("x", "z") and not n.startswith("w_")]
        outputs = self.random.sample(outputs, min(3, len(outputs)))
        infos = [
            oh.make_tensor_value_info(
                o, TensorProto.FLOAT, [None] * (3 if o.startswith("s") else 2)
            )
            for o in outputs
        ]
        inputs = [
            self.info("x"),
            self.info("z"),
            oh.make_tensor_value_info("c", TensorProto.BOOL, []),
            oh.make_tensor_value_info("n", TensorProto.INT64, []),
        ]
        graph = oh.make_graph(nodes, "random", inputs, infos, weights)
        imports = [oh.make_opsetid("", opset), oh.make_opsetid("f", 1)]
        return oh.make_model(
            graph,
            opset_imports=imports if self.functions else imports[:1],
            ir_version=10,
            functions=self.functions,
        )


def feeds(seed: int, override: bool) -> dict[str, np.ndarray]:
    """Inputs of a random model."""
    rng = np.random.default_rng(seed)
    values = {
        "x": rng.integers(-4, 5, SHAPE).astype(np.float32),
        "c": np.array(bool(seed % 2)),
        "n": np.array(seed % 3, dtype=np.int64),
    }
    if override:
        values["z"] = rng.integers(-4, 5, SHAPE).astype(np.float32)
    return values
