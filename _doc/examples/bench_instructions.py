"""
Instructions a node
===================

Counts the instructions that importing and optimizing the chain of ``bench_scaling.py`` take for
each node, under valgrind: the difference between two sizes, so what loading costs goes away. Unlike
a time, the count does not depend on what else the machine does.

    python _doc/examples/bench_instructions.py
    python _doc/examples/bench_instructions.py --against ../other_checkout

A checkout takes three minutes of processor time with the default sizes, whose runs differ by 200
nodes, and each count is printed when it is known. ``--sizes 1000 2000`` takes four times longer.
``valgrind`` must be installed (``apt-get install valgrind``).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas
from tools.checkouts import HERE, packages_only

#: what the measured process runs: it stops after the step, so a step is a difference of two steps
STEPS = ("load", "import", "optimize")

SCRIPT = """
import gc, sys
step, size, patterns = sys.argv[1], int(sys.argv[2]), sys.argv[3]
from corpus.bench_models import motif_chain
from xbuilder import GraphBuilder, OptimizationOptions
gc.disable()
def run(model, step):
    builder = GraphBuilder(model, infer_shapes_options=True,
                           optimization_options=OptimizationOptions(patterns=patterns))
    if step == "optimize":
        builder.optimize()
run(motif_chain(100), "optimize")  # what is loaded the first time it is used
model = motif_chain(size)
if step != "load":
    run(model, step)
"""


def instructions(root: Path, step: str, size: int, patterns: str) -> int:
    """Instructions of one process.

    :raises RuntimeError: if the process fails, with what it printed
    """
    command = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
        sys.executable,
        "-c",
        SCRIPT,
        step,
        str(size),
        patterns,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": packages_only(root),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(f"{' '.join(command[:5])} failed:\n{done.stderr[-2000:]}")
    return int(found.group(1).replace(",", ""))


def measure(root: Path, sizes: tuple[int, int], patterns: str) -> dict[str, int | str]:
    """Instructions a node of import and of optimize for the code of one checkout."""
    small, large = sizes
    counts: dict[tuple[str, int], int] = {}
    for step in STEPS:
        for size in sizes:
            found = counts[step, size] = instructions(root, step, size, patterns)
            print(f"{root} {step} {size}: {found}", flush=True)
    slopes = [(counts[step, large] - counts[step, small]) / (large - small) for step in STEPS]
    return {
        "checkout": str(root),
        "import": round(slopes[1] - slopes[0]),
        "optimize": round(slopes[2] - slopes[1]),
    }


def main(roots: list[Path], sizes: tuple[int, int], patterns: str) -> pandas.DataFrame:
    """Measures each checkout and prints the table."""
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    table = pandas.DataFrame([measure(root, sizes, patterns) for root in roots])
    print(f"instructions a node between {sizes[0]} and {sizes[1]} nodes, patterns={patterns}")
    print(table.to_string(index=False))
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[4])
    parser.add_argument("--against", type=Path, action="append", default=[], help="other checkout")
    parser.add_argument("--sizes", type=int, nargs=2, default=(200, 400))
    parser.add_argument("--patterns", default="default+onnxruntime")
    args = parser.parse_args()
    main([*args.against, HERE], tuple(args.sizes), args.patterns)
