"""Random models made of the operators patterns look for, valid by construction."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
from onnx import NodeProto, TensorProto
from onnx.numpy_helper import from_array

FLOAT, DOUBLE, HALF, INT64, BOOL = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.INT64,
    TensorProto.BOOL,
)
UNARY = ("Relu", "Neg", "Abs", "Identity", "Sigmoid", "Tanh", "Identity")
BINARY = ("Add", "Sub", "Mul")


class RandomModel:
    """Adds random nodes to a graph whose shapes are tracked at two sizes of the symbols.

    :param seed: seed of everything
    :param n_nodes: number of steps
    """

    SIZES = ({"a": 3, "b": 4}, {"a": 2, "b": 5})

    def __init__(self, seed: int, n_nodes: int):
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        #: name -> (type, dimensions as integers or symbols)
        self.results: dict[str, tuple[int, tuple]] = {
            "X": (FLOAT, ("a", "b")),
            "Z": (FLOAT, ("a", "b")),
            "V": (FLOAT, ("a", 1, 6)),
        }
        for _ in range(n_nodes):
            self.step()

    # -- pieces

    def pick(self, *items):
        """One of the items."""
        return items[int(self.rng.integers(len(items)))]

    def constant(self, value: np.ndarray) -> str:
        """Adds an initializer, or a Constant node."""
        name = f"c{len(self.initializers) + len(self.nodes)}"
        if self.rng.random() < 0.3:
            self.nodes.append(oh.make_node("Constant", [], [name], value=from_array(value)))
        else:
            self.initializers.append(from_array(value, name))
        return name

    def add(self, op_type: str, inputs: list[str], elem_type: int, shape: tuple, **kwargs) -> str:
        """Adds a node."""
        name = f"r{len(self.nodes)}"
        self.nodes.append(oh.make_node(op_type, inputs, [name], **kwargs))
        self.results[name] = (elem_type, shape)
        return name

    def any_result(self, types=(FLOAT,), rank=None) -> str | None:
        """A result which has dimensions, recent ones more often."""
        names = [
            n
            for n, (t, s) in self.results.items()
            if t in types and s and (rank is None or len(s) == rank)
        ]
        if not names:
            return None
        if self.rng.random() < 0.7:
            names = names[-4:]
        return self.pick(*names)

    def step(self) -> None:
        """Adds one random node."""
        steps = (
            self.unary,
            self.binary,
            self.constant_binary,
            self.transpose,
            self.transpose,
            self.unsqueeze,
            self.squeeze,
            self.reshape,
            self.reshape,
            self.cast,
            self.logic,
            self.matmul,
            self.expand,
            self.slice,
            self.concat,
            self.clip,
            self.shape_of,
            self.twin,
            self.reduce,
            self.gather,
            self.split,
            self.softmax,
            self.normalize,
            self.pad,
            self.gelu,
            self.maximum,
        )
        self.pick(*steps)()

    def unary(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        self.add(self.pick(*UNARY), [x], t, s)

    def twin(self) -> None:
        """The same node twice."""
        x = self.any_result()
        t, s = self.results[x]
        op = self.pick("Sigmoid", "Exp", "Transpose")
        if op == "Transpose":
            self.add(op, [x], t, s[::-1])
            self.add(op, [x], t, s[::-1])
            return
        y = self.add("Tanh", [x], t, s)
        self.add(op, [y], t, s)
        self.add(op, [y], t, s)

    def binary(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        same = [n for n, (u, v) in self.results.items() if u == t and v == s]
        self.add(self.pick(*BINARY), [x, self.pick(*same)], t, s)

    def constant_binary(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        value = self.pick(0.0, 1.0, 2.0, -1.0)
        shape = self.pick((), (1,), (1,) * len(s), (1,) * (len(s) + 1))
        c = self.constant(np.full(shape, value, dtype=oh.tensor_dtype_to_np_dtype(t)))
        rank = max(len(shape), len(s))
        out = (1,) * (rank - len(s)) + s
        inputs = [x, c] if self.rng.random() < 0.7 else [c, x]
        self.add(self.pick("Add", "Mul", "Sub"), inputs, t, out)

    def transpose(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if self.rng.random() < 0.2:
            self.add("Transpose", [x], t, s[::-1])
            return
        perm = [int(i) for i in self.rng.permutation(len(s))]
        self.add("Transpose", [x], t, tuple(s[i] for i in perm), perm=perm)

    def unsqueeze(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if len(s) > 4:
            return
        n = self.pick(1, 1, 2)
        rank = len(s) + n
        axes = sorted(int(i) for i in self.rng.choice(rank, n, replace=False))
        given = [i - rank if self.rng.random() < 0.3 else i for i in axes]
        out = list(s)
        for i in axes:
            out.insert(i, 1)
        c = self.constant(np.array(given, dtype=np.int64))
        self.add("Unsqueeze", [x, c], t, tuple(out))

    def squeeze(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        ones = [i for i, d in enumerate(s) if d == 1]
        if not ones:
            return
        axis = self.pick(*ones)
        given = axis - len(s) if self.rng.random() < 0.3 else axis
        c = self.constant(np.array([given], dtype=np.int64))
        self.add("Squeeze", [x, c], t, s[:axis] + s[axis + 1 :])

    def reshape(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        choices = [([-1], ("?",))]
        if len(s) >= 2:
            choices.append(([0, *[1] * (len(s) - 1), -1], None))
            choices.append(([*[0] * (len(s) - 1), -1], s))
            choices.append(([0, -1], (s[0], "?")))
        if all(isinstance(d, int) for d in s[1:]):
            tail = [int(d) for d in s[1:]]
            choices.append(([-1, *tail], s))
        target, _ = self.pick(*choices)
        out = self._reshaped(s, target)
        if out is None:
            return
        c = self.constant(np.array(target, dtype=np.int64))
        self.add("Reshape", [x, c], t, out)

    def _reshaped(self, shape: tuple, target: list[int]) -> tuple | None:
        rest = list(shape)
        out: list = []
        for i, d in enumerate(target):
            if d == 0:
                out.append(shape[i])
                rest.remove(shape[i])
            elif d > 0:
                out.append(d)
                if d in rest and d != 1:
                    rest.remove(d)
            else:
                out.append(None)
        rest = [d for d in rest if d != 1]
        if None in out:
            text = "*".join(str(d) for d in sorted(map(str, rest))) or "1"
            dim: object = int(text) if text.isdigit() else text
            if isinstance(dim, str) and all(p.isdigit() for p in text.split("*")):
                dim = int(np.prod([int(p) for p in text.split("*")]))
            out[out.index(None)] = dim
        return tuple(out)

    def cast(self) -> None:
        x = self.any_result((FLOAT, DOUBLE))
        _, s = self.results[x]
        y = self.add("Cast", [x], self.pick(DOUBLE, FLOAT), s, to=DOUBLE)
        self.results[y] = (DOUBLE, s)
        if self.rng.random() < 0.8:
            self.add("Cast", [y], FLOAT, s, to=FLOAT)

    def logic(self) -> None:
        x = self.any_result()
        _, s = self.results[x]
        zero = self.constant(np.array(0, dtype=np.float32))
        if self.results[x][0] != FLOAT:
            return
        g = self.add("Greater", [x, zero], BOOL, s)
        n = self.add("Not", [g], BOOL, s)
        if self.rng.random() < 0.6:
            n = self.add("Not", [n], BOOL, s)
        self.add("Where", [n, x, zero], FLOAT, s)

    def matmul(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if t != FLOAT or len(s) < 2 or not isinstance(s[-1], int):
            return
        w = self.constant(self.rng.standard_normal((s[-1], 6)).astype(np.float32))
        out = (*s[:-1], 6)
        if self.rng.random() < 0.3:
            w = self.constant(self.rng.standard_normal((6, s[-1])).astype(np.float32))
            w = self.add("Transpose", [w], FLOAT, (s[-1], 6), perm=[1, 0])
            del self.results[w]
        y = self.add("MatMul", [x, w], t, out)
        if self.rng.random() < 0.7:
            b = self.constant(self.rng.standard_normal(self.pick((6,), (1, 6))).astype(np.float32))
            self.add("Add", [y, b], t, out)

    def expand(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        ones = [i for i, d in enumerate(s) if d == 1]
        target = [1] * len(s)
        out = list(s)
        if ones and self.rng.random() < 0.6:
            i = self.pick(*ones)
            target[i] = out[i] = 2
        c = self.constant(np.array(target, dtype=np.int64))
        self.add("Expand", [x, c], t, tuple(out))

    def slice(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        fixed = [i for i, d in enumerate(s) if isinstance(d, int) and d > 2]
        if not fixed:
            return
        axis = self.pick(*fixed)
        start = int(self.rng.integers(0, s[axis] - 1))
        end = int(self.rng.integers(start + 1, s[axis] + 1))
        inputs = [self.constant(np.array([v], dtype=np.int64)) for v in (start, end, axis)]
        out = (*s[:axis], end - start, *s[axis + 1 :])
        self.add("Slice", [x, *inputs], t, out)

    def concat(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        axis = int(self.rng.integers(len(s)))
        if isinstance(s[axis], int) and s[axis] < 8:
            self.add("Concat", [x, x], t, (*s[:axis], 2 * s[axis], *s[axis + 1 :]), axis=axis)

    def clip(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if t != FLOAT:
            return
        low = self.constant(np.array(-0.5, dtype=np.float32))
        high = self.constant(np.array(0.75, dtype=np.float32))
        y = self.add("Clip", [x, low], t, s)
        self.add("Clip", [y, "", high], t, s)

    def reduce(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        axis = int(self.rng.integers(len(s)))
        keep = int(self.rng.integers(2))
        out = (*s[:axis], *(1,) * keep, *s[axis + 1 :])
        if t != FLOAT or not out:
            return
        given = axis - len(s) if self.rng.random() < 0.3 else axis
        axes = self.constant(np.array([given], dtype=np.int64))
        op = self.pick("ReduceMax", "ReduceMean", "ReduceSum")
        self.add(op, [x, axes], t, out, keepdims=keep)

    def gather(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        fixed = [i for i, d in enumerate(s) if isinstance(d, int)]
        if not fixed or len(s) < 2:
            return
        axis = self.pick(*fixed)
        shape = self.pick((), (1,), (2,), (s[axis],))
        indices = self.rng.integers(-s[axis], s[axis], shape)
        c = self.constant(np.array(indices, dtype=np.int64))
        self.add("Gather", [x, c], t, (*s[:axis], *shape, *s[axis + 1 :]), axis=axis)

    def split(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        even = [i for i, d in enumerate(s) if isinstance(d, int) and d % 2 == 0]
        if not even:
            return
        axis = self.pick(*even)
        half = (*s[:axis], s[axis] // 2, *s[axis + 1 :])
        first = self.add("Split", [x], t, half, axis=axis, num_outputs=2)
        second = f"{first}b"
        self.nodes[-1].output.append(second)
        self.results[second] = (t, half)
        if self.rng.random() < 0.5:
            parts = [first, second] if self.rng.random() < 0.7 else [second, first]
            self.add("Concat", parts, t, s, axis=axis)

    def softmax(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        axis = int(self.rng.integers(-len(s), len(s)))
        self.add(self.pick("Softmax", "LogSoftmax"), [x], t, s, axis=axis)

    def normalize(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if t != FLOAT or len(s) < 2 or not isinstance(s[-1], int):
            return
        axes = self.constant(np.array([self.pick(-1, len(s) - 1)], dtype=np.int64))
        epsilon = self.constant(np.array(0.5, dtype=np.float32))
        one = (*s[:-1], 1)
        if self.rng.random() < 0.7:
            mean = self.add("ReduceMean", [x, axes], t, one)
            x = self.add("Sub", [x, mean], t, s)
        square = self.add("Mul", [x, x], t, s)
        variance = self.add("ReduceMean", [square, axes], t, one)
        root = self.add("Sqrt", [self.add("Add", [variance, epsilon], t, one)], t, one)
        self.add("Div", [x, root], t, s)

    def pad(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        pads = [0] * (2 * len(s))
        axis = int(self.rng.integers(len(s)))
        if self.rng.random() < 0.6 and isinstance(s[axis], int) and s[axis] < 8:
            pads[axis] = 1
        out = (*s[:axis], s[axis] + pads[axis], *s[axis + 1 :]) if pads[axis] else s
        self.add("Pad", [x, self.constant(np.array(pads, dtype=np.int64))], t, out)

    def gelu(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if t != FLOAT:
            return
        root, one, half = (self.constant(np.array(v, dtype=np.float32)) for v in (2**0.5, 1, 0.5))
        erf = self.add("Erf", [self.add("Div", [x, root], t, s)], t, s)
        inner = self.add("Mul", [x, self.add("Add", [erf, one], t, s)], t, s)
        self.add("Mul", [inner, half], t, s)

    def maximum(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        if t == FLOAT:
            zero = self.constant(np.zeros(self.pick((), (1,)), dtype=np.float32))
            self.add("Max", self.pick([x, zero], [zero, x]), t, s)

    def shape_of(self) -> None:
        x = self.any_result()
        t, s = self.results[x]
        y = self.add("Shape", [x], INT64, (len(s),))
        del self.results[y]
        other = self.any_result()
        u, v = self.results[other]
        if u == t and v == s:
            self.add("Reshape", [other, y], t, s)
        else:
            self.add("Reshape", [x, y], t, s)

    # -- the model

    def model(self) -> onnx.ModelProto:
        """The model, three random results are outputs."""
        names = [n for n in self.results if n.startswith("r")] or ["X"]
        picked = [names[-1], *(names[int(i)] for i in self.rng.integers(0, len(names), 2))]
        chosen = {n: self.results[n] for n in picked}
        graph = oh.make_graph(
            self.nodes,
            "random",
            [
                oh.make_tensor_value_info("X", FLOAT, ["a", "b"]),
                oh.make_tensor_value_info("Z", FLOAT, ["a", "b"]),
                oh.make_tensor_value_info("V", FLOAT, ["a", 1, 6]),
            ],
            [oh.make_tensor_value_info(n, t, [None] * len(s)) for n, (t, s) in chosen.items()],
            self.initializers,
        )
        return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)

    def branching_model(self) -> onnx.ModelProto:
        """The same nodes, the second half in both branches of an If reading the first half."""
        half = len(self.nodes) // 2
        first, second = self.nodes[:half], self.nodes[half:]
        made = [n.output[0] for n in second if n.output[0] in self.results]
        if not made:
            return self.model()
        last = made[-1]
        elem_type, shape = self.results[last]
        info = oh.make_tensor_value_info("branch", elem_type, [None] * len(shape))
        then = oh.make_graph(
            [*second, oh.make_node("Identity", [last], ["branch"])], "then", [], [info]
        )
        names = {name: f"e_{name}" for n in second for name in n.output}
        renamed = []
        for node in second:
            copy = NodeProto()
            copy.CopyFrom(node)
            del copy.output[:]
            copy.output.extend(names[name] for name in node.output)
            inputs = [names.get(i, i) for i in node.input]
            del copy.input[:]
            copy.input.extend(inputs)
            renamed.append(copy)
        info = oh.make_tensor_value_info("e_branch", elem_type, [None] * len(shape))
        other = oh.make_graph(
            [*renamed, oh.make_node("Neg", [names[last]], ["e_branch"])], "else", [], [info]
        )
        owner = oh.make_node("If", ["flag"], ["Y"], then_branch=then, else_branch=other)
        outer = [n.output[0] for n in first if n.output[0] in self.results] or ["X"]
        kept = outer[len(outer) // 2]
        graph = oh.make_graph(
            [*first, owner, oh.make_node("Abs", ["Y"], ["W"])],
            "branching",
            [
                oh.make_tensor_value_info("X", FLOAT, ["a", "b"]),
                oh.make_tensor_value_info("Z", FLOAT, ["a", "b"]),
                oh.make_tensor_value_info("V", FLOAT, ["a", 1, 6]),
                oh.make_tensor_value_info("flag", BOOL, []),
            ],
            [
                oh.make_tensor_value_info("W", elem_type, [None] * len(shape)),
                oh.make_tensor_value_info(
                    kept, self.results[kept][0], [None] * len(self.results[kept][1])
                ),
            ],
            self.initializers,
        )
        return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
