"""
Graphs before and after a change
================================

Optimizes every model of a corpus and writes what comes out in a json file: nodes, operators, a
fingerprint up to names and order, a hash of the bytes. Compares with what another checkout wrote:
what changes the code and not its results leaves every graph as it was.

    python _doc/examples/bench_graphs.py CORPUS --output before.json      # on the commit before
    python _doc/examples/bench_graphs.py CORPUS --compare before.json     # on the commit after
    python _doc/examples/bench_graphs.py CORPUS --checkout ../base --output before.json
    python _doc/examples/bench_graphs.py --output after.json --compare before.json  # files alone
    python _doc/examples/bench_graphs.py CORPUS --stable

Graphs that differ by their names, the order of their nodes or what they declare are counted,
``--bytes`` shows them.

A corpus is a list of folders of ONNX files. A selection is followed by a processor,
``default+onnxruntime@CUDA``; without it, the processor is the same whatever machine this is, so
that two machines give the same graphs. ``given`` is the model itself: it shows whether the files,
which may be exported again, are the same.

``--stable`` optimizes each model under two hash seeds, with the sets of a selection in both orders:
the same bytes are expected.

Exits with 1 if a model has more nodes than before, fails, or is not stable.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import onnx
from tools.checkouts import HERE, Worker, optimized, serve
from tools.model_content import count_nodes, count_operators, fingerprint, models_of

SELECTIONS = ["given", "default", "default+onnxruntime"]
#: graphs depend on it, and not on the machine
PROCESSOR = "CPU:intel-v4"

#: what is known of one model optimized with one selection
Row: TypeAlias = dict[str, Any]
#: model -> selection -> row
Rows: TypeAlias = dict[str, dict[str, Row]]


# -- what runs with the packages of one checkout


@lru_cache(maxsize=1)
def loaded(path: str) -> onnx.ModelProto:
    """The model of a file: every selection reads it."""
    return onnx.load(path)


def row_of(path: str, selection: str) -> Row:
    """The graph that comes out of a model."""
    model = loaded(path)
    if selection != "given":
        patterns, _, processor = selection.partition("@")
        model = optimized(model, patterns, processor=processor or PROCESSOR)
    content = model.SerializeToString(deterministic=True)
    return {
        "nodes": count_nodes(model),
        "operators": count_operators(model),
        "structure": fingerprint(model),
        "content": hashlib.sha256(content).hexdigest()[:24],
        "bytes": len(content),
    }


# -- what is measured


def measure(
    models: dict[str, Path], selections: list[str], root: Path, seed: int = 0
) -> Iterator[tuple[str, dict[str, Row]]]:
    """Every model with every selection.

    :param models: the corpus
    :param selections: the selections
    :param root: the checkout whose packages optimize
    :param seed: ``PYTHONHASHSEED`` of the process
    """
    with Worker(__file__, root, ["--work"], seed) as worker:
        for name, path in models.items():
            rows = {selection: worker.ask(str(path), selection) for selection in selections}
            shown = (f"{s} {r.get('nodes', 'ERROR')}" for s, r in rows.items())
            print(f"{name}: {', '.join(shown)}", flush=True)
            yield name, rows


def record(args: argparse.Namespace, models: dict[str, Path]) -> Rows:
    """Measures the models and adds them to the file: a corpus may be measured in parts."""
    rows = read(args.output) if args.output.exists() else {}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    for name, found in measure(models, args.selections, args.checkout):
        rows[name] = {**rows.get(name, {}), **found}
        args.output.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
    return rows


def read(path: Path) -> Rows:
    """The rows that :func:`record` wrote."""
    rows: Rows = json.loads(path.read_text())
    return rows


# -- what is compared


def status_of(before: Row, after: Row) -> str:
    """How a graph changed: `same`, `other bytes` (names, order of the nodes, declared shapes),
    `other graph` (other attributes or edges), `other operators`, `smaller`, `LARGER`, `ERROR`."""
    if "error" in before or "error" in after:
        return "same error" if before == after else "ERROR" if "error" in after else "no error"
    if after["nodes"] != before["nodes"]:
        return "LARGER" if after["nodes"] > before["nodes"] else "smaller"
    for key, status in (
        ("operators", "other operators"),
        ("structure", "other graph"),
        ("content", "other bytes"),
    ):
        if after[key] != before[key]:
            return status
    return "same"


def difference_of(before: Row, after: Row) -> str:
    """The operators that two rows do not share, or why one failed."""
    if "error" in before or "error" in after:
        return str(after.get("error", before.get("error"))).splitlines()[-1][:100]
    counts = Counter(after["operators"])
    counts.subtract(before["operators"])
    words = [f"{count:+d} {name}" for name, count in sorted(counts.items()) if count]
    size = after["bytes"] - before["bytes"]
    return ", ".join([*words, *([f"{size:+d} bytes"] if size else [])])


def compare(before: Rows, after: Rows, hidden: tuple[str, ...] = ("same",)) -> int:
    """Prints what changed and how many graphs did not.

    :param before: rows of the commit before
    :param after: rows of the commit after
    :param hidden: statuses that are counted only
    :return: number of graphs that are larger or failed
    """
    totals: Counter[tuple[str, str]] = Counter()
    for name in sorted(before.keys() & after.keys()):
        for selection in [s for s in before[name] if s in after[name]]:
            one, two = before[name][selection], after[name][selection]
            status = status_of(one, two)
            totals[selection, status] += 1
            if status not in hidden:
                nodes = f"{one.get('nodes', '-')} -> {two.get('nodes', '-')}"
                print(f"{status:15} {selection:26} {name}: {nodes} {difference_of(one, two)}")
    for label, missing in (("before", after.keys() - before), ("after", before.keys() - after)):
        if missing:
            names = ", ".join(sorted(missing)[:3])
            print(
                f"{len(missing)} not measured {label}: {names}{' ...' if len(missing) > 3 else ''}"
            )
    for (selection, status), count in sorted(totals.items()):
        print(f"{selection}: {count} {status}")
    return sum(n for (_, status), n in totals.items() if status in ("LARGER", "ERROR"))


def both_orders(selection: str) -> list[str]:
    """A selection, and its sets in the other order if there are several."""
    sets, at, processor = selection.partition("@")
    other = "+".join(reversed(sets.split("+"))) + at + processor
    return list(dict.fromkeys([selection, other]))


def check_stability(args: argparse.Namespace, models: dict[str, Path]) -> int:
    """Prints the models that are not the same under another hash seed, or in another order.

    :return: how many there are
    """
    selections = [s for s in args.selections if s != "given"]
    asked = [order for s in selections for order in both_orders(s)]
    runs = [dict(measure(models, asked, args.checkout, seed)) for seed in (0, 1)]
    unstable = 0
    for name in models:
        for selection in selections:
            first = runs[0][name][selection]
            others = {
                f"{order}, seed {seed}": run[name][order]
                for seed, run in enumerate(runs)
                for order in both_orders(selection)
            }
            found = {label: status_of(first, row) for label, row in others.items()}
            wrong = {k: s for k, s in found.items() if s != "same"}
            unstable += bool(wrong)
            for label, status in wrong.items():
                nodes = f"{first.get('nodes', '-')} -> {others[label].get('nodes', '-')}"
                print(f"{status:15} {label:34} {name}: {nodes}")
    print(f"{unstable} of {len(models) * len(selections)} are not stable")
    return unstable


def main(args: argparse.Namespace) -> int:
    """Measures, compares, returns an exit code."""
    models = {k: p for k, p in models_of(args.folders).items() if re.search(args.models, k)}
    if args.stable:
        return int(check_stability(args, models) > 0)
    rows = record(args, models) if models else read(args.output)
    failed = sum("error" in row for name in models for row in rows[name].values())
    if args.compare is None:
        return int(failed > 0)
    hidden = ("same",) if args.bytes else ("same", "other bytes")
    return int(compare(read(args.compare), rows, hidden) > 0)


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Records and compares optimized graphs.")
    parser.add_argument("folders", nargs="*", type=Path, help="folders of .onnx files")
    parser.add_argument("--models", default="", help="regular expression on the names")
    parser.add_argument("--selections", nargs="+", default=SELECTIONS)
    parser.add_argument("--checkout", type=Path, default=HERE, help="the packages that optimize")
    parser.add_argument("--output", type=Path, default=Path("bench_output/graphs.json"))
    parser.add_argument("--compare", type=Path, help="what was written before")
    parser.add_argument("--bytes", action="store_true", help="shows those with other names as well")
    parser.add_argument("--stable", action="store_true", help="two hash seeds, both orders")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


if __name__ == "__main__":
    arguments = arguments_of()
    if arguments.work:
        serve(row_of)
        sys.exit(0)
    sys.exit(main(arguments))
