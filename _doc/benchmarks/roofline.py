"""Measures where the time of each model of a corpus goes, before and after its optimization.

::

    python _doc/benchmarks/roofline.py ~/.cache/xbench/corpus --models dynamo/bert wild

It writes ``data/roofline.csv``, one row for each model, and ``data/roofline_operators.csv``, one row for each
operator of an optimized model. A model is a folder with ``model.onnx`` and its inputs, ``in0.npz``. Everything runs
on one thread, with the optimizations of onnxruntime, and the time is that of the processor.

The *bound* of a node is what this processor needs at least: its operations at the speed of the fastest product that
onnxruntime computes here, or the bytes it reads and writes at the speed of a copy of as many bytes, whichever is
larger. A node that only changes a shape has no bound. What a node takes above its bound is what a better kernel could
save at most; what a pass over memory takes is what a fusion could save; the rest of the latency is outside of the
kernels.
"""

from __future__ import annotations

import argparse
import bisect
import json
import math
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from collect import PATTERNS, write

import xoptim
from xbuilder.dims import evaluate
from xbuilder.nodes.subgraphs import subgraphs_of
from xoptim.reports.costs import operations_of
from xoptim.trust.latency import compare_sessions, fast_session

#: they change a shape, or read one
VIEWS = {"Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze"}
#: they read as many elements of their first input as they write
SELECTIONS = {"Gather", "GatherElements", "GatherND", "Slice"}
#: their time is that of their bodies
CONTROLS = {"If", "Loop", "Scan"}
#: onnxruntime gives its types in C++
SIZES = {"double": 8, "int64": 8, "uint64": 8, "float": 4, "int32": 4, "uint32": 4}
SIZES |= {"float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2}
_SUFFIX = "_kernel_time"
#: the bytes of an element, and the shape
Tensor: TypeAlias = tuple[int, tuple[int, ...]]


def fastest(run: Callable[[], object], seconds: float) -> float:
    """The shortest of the runs of so many seconds.

    :param run: what is timed, with the clock of the processor
    :param seconds: how long, one run at least
    """
    best, end = math.inf, time.process_time() + seconds
    while best == math.inf or time.process_time() < end:
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return best


@dataclass
class Machine:
    """The peak of one core.

    :param operations: additions and multiplications a second, in float32
    :param speeds: bytes read or written a second by a copy, for each number of bytes
    """

    operations: float
    speeds: dict[int, float]

    @classmethod
    def measured(cls, seconds: float = 0.5) -> Machine:
        """Measures this machine.

        :param seconds: for each of the products and copies
        """
        operations = max(_product_speed(side, seconds) for side in (256, 512, 1024))
        speeds: dict[int, float] = {}
        for power in range(28, 15, -2):
            # fewer bytes are not slower, but a call costs more than their copy
            speed = _copy_speed(1 << power, seconds)
            speeds[1 << power] = max(speed, *speeds.values(), 0.0)
        return cls(operations, speeds)

    def seconds_to_move(self, count: int) -> float:
        """Time a copy takes to read and write so many bytes.

        :param count: bytes, those read and those written
        """
        known = sorted(self.speeds)
        at = min(bisect.bisect_left(known, count), len(known) - 1)
        return count / self.speeds[known[at]]


def _product_speed(side: int, seconds: float) -> float:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> agraph (float[{side}, {side}] x, '
        f"float[{side}, {side}] w) => (float[{side}, {side}] y) {{ y = MatMul (x, w) }}"
    )
    session = fast_session(model.SerializeToString(), 1)
    x = np.random.default_rng(0).random((side, side), dtype=np.float32)
    return 2 * side**3 / fastest(lambda: session.run(None, {"x": x, "w": x}), seconds)


def _copy_speed(count: int, seconds: float) -> float:
    """A copy of half of the bytes; small ones are repeated, the clock has a resolution."""
    source = np.ones(count // 2, dtype=np.uint8)
    target = np.zeros_like(source)
    times = max(1, (1 << 24) // count)

    def copies() -> None:
        for _ in range(times):
            np.copyto(target, source)

    return count * times / fastest(copies, seconds)


@dataclass
class Share:
    """The nodes of one operator in a model; times are in milliseconds for one run.

    :param count: number of runs of its nodes in one run of the model
    :param ms: their time
    :param products: what their operations take at least
    :param traffic: what their bytes take at least, for those that compute no product
    """

    count: int = 0
    ms: float = 0.0
    products: float = 0.0
    traffic: float = 0.0

    @property
    def over(self) -> float:
        """The time they take above their bound."""
        return max(0.0, self.ms - self.products - self.traffic)


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """Gives a name to each node: a profile tells nodes by their names.

    :param model: changed
    """

    def walk(graph: onnx.GraphProto, prefix: str) -> None:
        for i, node in enumerate(graph.node):
            node.name = f"{prefix}{i}_{node.op_type}"
            for _, body in subgraphs_of(node):
                walk(body, f"{node.name}_")

    walk(model.graph, "n")
    return model


def events_of(
    model: onnx.ModelProto, feeds: Mapping[str, Any], runs: int, folder: Path
) -> tuple[list[dict[str, Any]], onnx.GraphProto]:
    """The kernels that onnxruntime ran, and the graph as it optimizes it.

    :param model: the model
    :param feeds: its inputs
    :param runs: how many times it runs
    :param folder: where files are written
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    for _ in range(runs):
        session.run(None, dict(feeds))
    profile = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    events = [e for e in profile if e.get("cat") == "Node" and e["name"].endswith(_SUFFIX)]
    return events, onnx.load(folder / "optimized.onnx").graph


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for _, body in subgraphs_of(node):
            yield from _nodes(body)


def shares_of(
    events: Iterable[Mapping[str, Any]],
    graph: onnx.GraphProto,
    runs: int,
    machine: Machine,
) -> dict[str, Share]:
    """The time each operator takes, and its bound. The fastest run of a node counts.

    :param events: see :func:`events_of`
    :param graph: what onnxruntime runs
    :param runs: how many times the model ran
    :param machine: see :class:`Machine`
    """
    nodes = {node.name: node for node in _nodes(graph)}
    weights: dict[str, Tensor] = {
        w.name: (onnx.helper.tensor_dtype_to_np_dtype(w.data_type).itemsize, tuple(w.dims))
        for w in graph.initializer
    }
    kernels: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in events:
        if event["args"]["op_name"] not in CONTROLS:
            kernels[event["name"].removesuffix(_SUFFIX)].append(event)
    shares: dict[str, Share] = defaultdict(Share)
    for name, ran in kernels.items():
        best = min(ran, key=lambda event: int(event["dur"]))
        op_type = best["args"]["op_name"]
        node = nodes.get(name) or onnx.helper.make_node(op_type, [], [])
        products, traffic = bounds(node, best["args"], machine, weights)
        times = len(ran) / runs
        share = shares[op_type]
        share.count += round(times)
        share.ms += times * int(best["dur"]) / 1e3
        share.products += times * products * 1e3
        share.traffic += times * traffic * 1e3
    return dict(shares)


def bounds(
    node: onnx.NodeProto,
    args: Mapping[str, Any],
    machine: Machine,
    weights: Mapping[str, Tensor],
) -> tuple[float, float]:
    """The seconds a node needs at least, for its products and for its traffic: one of them is 0.

    :param node: the node
    :param args: the types and shapes of an event of a profile
    :param machine: see :class:`Machine`
    :param weights: the weights of the model by name
    """
    inputs, outputs = (_tensors(args[f"{side}_type_shape"]) for side in ("input", "output"))
    inputs = with_weights(node, inputs, weights)
    shapes = [[shape for _, shape in tensors] for tensors in (inputs, outputs)]
    if node.op_type in VIEWS:
        return 0.0, 0.0
    written = sum(size * math.prod(shape) for size, shape in outputs)
    read = sum(size * math.prod(shape) for size, shape in inputs)
    if node.op_type in SELECTIONS:
        read = min(read, written)
    traffic = machine.seconds_to_move(read + written) if read + written else 0.0
    operations = operations_of(node, *shapes)
    if not operations:
        return 0.0, traffic
    return max(evaluate(operations, {}) / machine.operations, traffic), 0.0


def with_weights(
    node: onnx.NodeProto, known: Sequence[Tensor], weights: Mapping[str, Tensor]
) -> list[Tensor]:
    """Adds the weights a profile leaves out, those whose kernel keeps a layout of its own.

    :param node: the node
    :param known: what the profile has
    :param weights: the weights of the model by name
    """
    found, rest = [], list(known)
    for name in filter(None, node.input):
        tensor = weights.get(name)
        is_known = bool(rest) and (tensor is None or rest[0][1] == tensor[1])
        if is_known:
            found.append(rest.pop(0))
        elif tensor is not None:
            found.append(tensor)
    return [*found, *rest]


def _tensors(described: Sequence[Mapping[str, Sequence[int]]]) -> list[Tensor]:
    """The bytes of an element, and the shape, of each tensor."""
    return [(SIZES.get(t, 1), tuple(shape)) for one in described for t, shape in one.items()]


@dataclass
class Measured:
    """A model, before and after.

    :param row: its row of the table
    :param shares: the operators of the optimized model
    """

    row: dict[str, Any]
    shares: dict[str, Share] = field(default_factory=dict)


def measure(name: str, path: Path, machine: Machine, seconds: float, limit: int = 60) -> Measured:
    """Measures a model and what the optimizer makes of it.

    A profile has the elapsed time of each kernel, the processor may run other programs meanwhile: the model runs again
    until the shortest times add up to no more than its latency.

    :param name: the name of the model
    :param path: its file, its inputs are beside it
    :param machine: see :class:`Machine`
    :param seconds: for each block of the comparison of both
    :param limit: number of runs of the profile, at most
    """
    with np.load(path.parent / "in0.npz") as file:
        feeds = dict(file)
    optimized = named(xoptim.optimize(str(path), patterns=PATTERNS).model)
    sessions = [fast_session(path, 1), fast_session(optimized.SerializeToString(), 1)]
    compared = compare_sessions(*sessions, feeds, blocks=5, seconds=seconds)
    del sessions
    latency = compared.before * compared.ratio * 1e3
    events: list[dict[str, Any]] = []
    runs, shares = 0, dict[str, Share]()
    while runs < limit and (not runs or sum(s.ms for s in shares.values()) > latency):
        count = max(3, min(limit, int(1e3 * seconds / latency)))
        with tempfile.TemporaryDirectory() as folder:
            ran, graph = events_of(optimized, feeds, count, Path(folder))
        events += ran
        runs += count
        shares = shares_of(events, graph, runs, machine)
    return Measured(_row(name, compared.before * 1e3, compared.ratio, shares), shares)


def _row(name: str, before: float, ratio: float, shares: Mapping[str, Share]) -> dict[str, Any]:
    products = [share for share in shares.values() if share.products]
    passes = [share for share in shares.values() if not share.products]
    over = Counter({op: share.over for op, share in shares.items()})
    row = {
        "original_ms": before,
        "ours_ms": before * ratio,
        "ratio": ratio,
        "products_ms": sum(share.products for share in products),
        "products_over_ms": sum(share.over for share in products),
        "passes_ms": sum(share.ms - share.over for share in passes),
        "passes_over_ms": sum(share.over for share in passes),
        "outside_ms": before * ratio - sum(share.ms for share in shares.values()),
    }
    largest = "; ".join(f"{op} {ms:.2f}" for op, ms in over.most_common(3) if ms >= 0.005)
    nodes = sum(share.count for share in shares.values())
    return {"model": name, "nodes": nodes} | {k: round(v, 3) for k, v in row.items()} | {
        "largest": largest
    }  # fmt: skip


def operators(measured: Measured) -> list[dict[str, Any]]:
    """The rows of the operators of a model, without those below a hundredth of its latency.

    :param measured: see :func:`measure`
    """
    least = measured.row["ours_ms"] / 100
    return [
        {
            "model": measured.row["model"],
            "operator": op,
            "count": share.count,
            "ms": round(share.ms, 3),
            "products_ms": round(share.products, 3),
            "traffic_ms": round(share.traffic, 3),
        }
        for op, share in sorted(measured.shares.items())
        if share.ms >= least
    ]


def main() -> None:
    """Reads the command line and writes the tables."""
    parser = argparse.ArgumentParser(description="Measures where the time of models goes.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--models", nargs="*", default=[], help="names or groups, all by default")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each block")
    args = parser.parse_args()
    machine = Machine.measured()
    print(f"{machine.operations / 1e9:.0f} billion operations a second", flush=True)
    for count, speed in machine.speeds.items():
        print(f"{count >> 10:>7} KiB {speed / 1e9:.1f} GB/s", flush=True)
    rows, shares = [], []
    for path in sorted(args.corpus.glob("*/*/model.onnx")):
        name = f"{path.parent.parent.name}/{path.parent.name}"
        if args.models and not any(name == m or name.startswith(f"{m}/") for m in args.models):
            continue
        found = measure(name, path, machine, args.seconds)
        rows.append(found.row)
        shares += operators(found)
        print(json.dumps(found.row), flush=True)
    how = f"one thread, {machine.operations / 1e9:.0f} billion operations a second"
    write("roofline.csv", rows, how)
    write("roofline_operators.csv", shares, how)


if __name__ == "__main__":
    main()
