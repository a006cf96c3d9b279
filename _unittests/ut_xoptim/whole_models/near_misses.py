"""Near-misses: the models patterns are tested on, with one thing changed. They still run, most
patterns should refuse them; in any case, the results must not change.

``python -m ut_xoptim.whole_models.near_misses --count 4000`` judges more of them than the tests do, from the
folder ``_unittests``.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.parser import ParseError
from onnx.reference import ReferenceEvaluator
from ut_xoptim.whole_models.mutant_runs import limited

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.op_traits import RANDOM
from xbuilder.runtimes.sessions import plain_session
from xoptim.catalogue.registry import all_patterns
from xoptim.testing import PatternTestError, assert_same_outputs, make_feeds, model_from_text

T = TypeVar("T")
DOC = Path(__file__).resolve().parents[3] / "_doc" / "extensions"
#: the patterns a near-miss is given: those of the pattern it comes from, or a set
SETS = ("default+onnxruntime", "default+onnxruntime", "default+onnxruntime+experimental", "")
#: sizes of the open dimensions, all the same, then all different
SIZES = (3, 1, 2, 0)
#: kinds of verdicts: nothing is compared when the near-miss cannot run, or when onnxruntime and the
#: reference of onnx do not give the same results
SAME, CANNOT_RUN, UNDEFINED, WRONG = "same", "cannot run", "undefined", "wrong"
#: its results are others by design: it adds the updates of an index, ScatterND keeps the last one
_OTHER_RESULTS = "AddReductionScatterND"
_INTEGERS = (AttributeProto.INT, AttributeProto.INTS)
#: attributes that are booleans: runtimes disagree on other numbers than 0 and 1
_BOOLEANS = ("keepdims", "training_mode", "transA", "transB", "unidirectional")


class Verdict(NamedTuple):
    """The outcome of a near-miss: a kind, the change, the reason why it is wrong."""

    kind: str
    changes: Sequence[str] = ()
    reason: str = ""


@lru_cache(maxsize=1)
def sources() -> list[tuple[str, ModelProto]]:
    """Every model of the tables of tests: name of the pattern, model before it."""
    sys.path.insert(0, str(DOC))
    try:
        from pattern_models import test_modules
    finally:
        sys.path.remove(str(DOC))
    names = {name for name, cls in all_patterns().items() if not cls.for_training_build}
    names.remove(_OTHER_RESULTS)
    return [
        (name, model)
        for module in test_modules()
        for table in vars(module).values()
        if isinstance(table, dict)
        for name in table
        if name in names
        for model in _models(table[name])
    ]


def _models(entry: Any) -> Iterator[ModelProto]:
    """The models an entry of a table begins with, `(before, ...)` or a dictionary of them."""
    if isinstance(entry, dict):
        for value in entry.values():
            yield from _models(value)
    elif isinstance(entry, tuple | list) and entry:
        yield from _models(entry[0])
    elif isinstance(entry, ModelProto):
        yield entry
    elif isinstance(entry, str) and "=>" in entry:
        models = []
        for opset in (18, 23, 13, 11):
            with contextlib.suppress(ParseError):
                models.append(model_from_text(entry, opset))
        yield from [*filter(_is_valid, models), *models][:1]


def _is_valid(model: ModelProto) -> bool:
    """Whether the operators are those of the opset."""
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return False
    return True


class NearMiss:
    """Changes a model a little, always the same way for the same seed.

    :param seed: seed of every choice
    :param model: the model, changed in place
    """

    def __init__(self, seed: int, model: ModelProto):
        self.rng = np.random.default_rng(seed)
        self.model = model
        #: the change
        self.changes: list[str] = []

    @property
    def graph(self) -> GraphProto:
        """The graph."""
        return self.model.graph

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self.rng.integers(len(items)))]

    def change(self) -> None:
        """Changes one thing, or two."""
        for _ in range(self.pick((1, 1, 1, 2))):
            self.pick(_CHANGES)(self)

    def another_output(self) -> None:
        """An inner result is an output."""
        known = {o.name for o in self.graph.output}
        inner = [o for n in self.graph.node for o in n.output if o and o not in known]
        if inner:
            name = self.pick(inner)
            self.graph.output.add(name=name)
            self.changes.append(f"{name} is an output")

    def another_operand(self) -> None:
        """A node reads another result that comes before it."""
        place = int(self.rng.integers(len(self.graph.node)))
        node = self.graph.node[place]
        names = [v.name for v in (*self.graph.input, *self.graph.initializer)]
        names += [o for n in self.graph.node[:place] for o in n.output if o]
        if node.input and names:
            i, name = int(self.rng.integers(len(node.input))), self.pick(names)
            self.changes.append(f"{node.op_type} reads {name} instead of {node.input[i]}")
            node.input[i] = name

    def swapped_operands(self) -> None:
        """Two operands of a node are exchanged."""
        nodes = [n for n in self.graph.node if len(n.input) > 1]
        if nodes:
            node = self.pick(nodes)
            i, j = map(int, self.rng.choice(len(node.input), 2, replace=False))
            node.input[i], node.input[j] = node.input[j], node.input[i]
            self.changes.append(f"operands {i} and {j} of {node.op_type}")

    def another_attribute(self) -> None:
        """An integer is the next one, numbers are in another order."""
        found = [
            (n, a)
            for n in self.graph.node
            for a in n.attribute
            if a.type in _INTEGERS and a.name not in _BOOLEANS
        ]
        if not found:
            return
        node, attribute = self.pick(found)
        if attribute.type == AttributeProto.INT:
            attribute.i = self.pick((attribute.i + 1, attribute.i - 1, -attribute.i))
        elif self.rng.random() < 0.5 or not attribute.ints:
            attribute.ints[:] = [int(i) for i in self.rng.permutation(list(attribute.ints))]
        else:
            attribute.ints[int(self.rng.integers(len(attribute.ints)))] += self.pick((1, -1))
        self.changes.append(f"{attribute.name} of {node.op_type}")

    def another_constant(self) -> None:
        """One number of a constant changes, or all of them."""
        attributes = (a for n in self.graph.node for a in n.attribute)
        found = [*self.graph.initializer, *(a.t for a in attributes if a.HasField("t"))]
        known = [t for t in found if t.data_type in _NUMBERS and np.prod(t.dims)]
        if not known:
            return
        tensor = self.pick(known)
        value = numpy_helper.to_array(tensor).copy()
        places = [...] if self.rng.random() < 0.5 else list(np.ndindex(value.shape))
        place = self.pick(places)
        if tensor.data_type == TensorProto.BOOL:
            value[place] = ~value[place]
        elif value.dtype.kind in "iu":
            value[place] += self.pick((1, -1))
        else:
            value[place] = value[place] * 1.5 + 0.125
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
        self.changes.append(f"a number of {tensor.name}")

    def another_dimension(self) -> None:
        """A dimension of an input has another size, or another name."""
        found = [(i, d) for i in self.graph.input for d in i.type.tensor_type.shape.dim]
        if not found:
            return
        info, dim = self.pick(found)
        size: Any = self.pick((1, 2, 3, "free"))
        dim.Clear()
        setattr(dim, "dim_param" if size == "free" else "dim_value", size)
        del self.graph.value_info[:]
        for output in self.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
        self.changes.append(f"a dimension of {info.name} is {size}")

    def second_copy(self) -> None:
        """A node is duplicated, its results are read from both."""
        nodes = list(self.graph.node)
        readers = [
            (place, reader, i)
            for place, node in enumerate(nodes)
            if not any(a.HasField("g") for a in node.attribute)
            for reader in nodes[place + 1 :]
            for i, name in enumerate(reader.input)
            if name and name in node.output
        ]
        if not readers:
            return
        place, reader, i = self.pick(readers)
        copy = NodeProto()
        copy.CopyFrom(nodes[place])
        copy.output[:] = [f"{name}_copy" for name in copy.output]
        reader.input[i] = f"{reader.input[i]}_copy"
        nodes.insert(place + 1, copy)
        kept = [NodeProto.FromString(n.SerializeToString()) for n in nodes]
        del self.graph.node[:]
        self.graph.node.extend(kept)
        self.changes.append(f"{copy.op_type} twice")


_CHANGES: tuple[Callable[[NearMiss], None], ...] = (
    NearMiss.another_output,
    NearMiss.another_output,
    NearMiss.another_operand,
    NearMiss.swapped_operands,
    NearMiss.another_attribute,
    NearMiss.another_constant,
    NearMiss.another_constant,
    NearMiss.another_dimension,
    NearMiss.second_copy,
)
_NUMBERS = (
    TensorProto.BOOL,
    TensorProto.DOUBLE,
    TensorProto.FLOAT,
    TensorProto.INT32,
    TensorProto.INT64,
)


# -- one near-miss


def judge(seed: int) -> Verdict:
    """Makes the near-miss of a seed, optimizes it, compares."""
    np.seterr(all="ignore")
    rng = np.random.default_rng(seed)
    name, source = sources()[int(rng.integers(len(sources())))]
    model = ModelProto()
    model.CopyFrom(source)
    near = NearMiss(seed, model)
    near.change()
    if not near.changes:
        return Verdict(SAME)
    expected = _runs(model, seed)
    if not expected:
        return Verdict(CANNOT_RUN, near.changes)
    changes = [name, *near.changes]
    options = OptimizationOptions(patterns=SETS[seed % len(SETS)] or name)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    try:
        session = plain_session(builder.to_onnx().SerializeToString())
        for feeds, results in expected:
            assert_same_outputs(results, session.run(None, feeds), 2e-3, 2e-3, "onnxruntime")
    except Exception as error:
        if any(is_undefined(model, *run) for run in expected):
            return Verdict(UNDEFINED, changes)
        return Verdict(WRONG, changes, f"{type(error).__name__}: {error}"[:600])
    return Verdict(SAME, changes)


def _runs(model: ModelProto, seed: int) -> list[tuple[dict[str, Any], list[Any]]]:
    """Inputs a model runs with, and its results."""
    dims = [d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim]
    names = sorted(filter(None, set(dims)))
    found = []
    try:
        session = plain_session(model.SerializeToString())
    except Exception:
        return []
    for size in SIZES:
        sizes = {name: size or 2 + i for i, name in enumerate(names)}
        try:
            feeds = make_feeds(model, sizes, seed)
            found.append((feeds, session.run(None, feeds)))
        except Exception:
            continue
    return found


def is_undefined(model: ModelProto, feeds: dict[str, Any], results: list[Any]) -> bool:
    """Whether the model draws random numbers, or the reference of onnx refuses it, or gives other
    results: onnxruntime joins an empty tensor to any other one, for example."""
    if RANDOM.intersection(node.op_type for node in all_nodes(model.graph.node)):
        return True
    try:
        given = ReferenceEvaluator(model).run(None, feeds)
        assert_same_outputs(given, results, 2e-3, 2e-3, "reference")
    except NotImplementedError:
        return False  # it does not know the operator
    except (PatternTestError, IndexError, TypeError, ValueError):
        return True
    except Exception as error:
        return "No implementation" not in str(error)
    return False


def verdicts(seeds: Iterable[int], batch: int = 50) -> Iterator[tuple[int, Verdict]]:
    """Judges the near-misses of some seeds, in processes of their own: onnxruntime may die."""
    sources()
    waiting = list(seeds)
    while waiting:
        group, waiting = waiting[:batch], waiting[batch:]
        answered, found = limited(lambda group=group: [judge(seed) for seed in group])
        if answered:
            yield from zip(group, found, strict=True)
            continue
        for seed in group:
            answered, found = limited(lambda seed=seed: judge(seed))
            yield seed, found if answered else Verdict(CANNOT_RUN, (), str(found))


def main() -> None:
    """Judges many near-misses, prints those that are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed, verdict in verdicts(range(options.start, options.start + options.count)):
        counts[verdict.kind] += 1
        if verdict.kind == WRONG:
            print(f"{seed} {'; '.join(verdict.changes)}: {verdict.reason}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    sys.exit(main())
