"""Writes the figures that the pages of benchmarks draw, in ``_doc/benchmarks/data``.

::

    python _doc/benchmarks/collect.py ~/.cache/xbench/corpus
    python _doc/benchmarks/collect.py ~/.cache/xbench/corpus --only peers --bench ../shared/bench

The models are those of a folder, ``<group>/<name>/model.onnx``. ``peers`` runs the benchmark of the optimizers
with one thread and writes the table of the first page, of README and of the pages; without it, what other tools
did is kept. ``wheels`` and ``sizes`` keep the table of ``_doc/examples/bench_peers.py`` with the option of the same
name. ``opsets`` measures small models in each opset, and needs no corpus. ``gains`` measures each pattern, or those of ``--patterns``.
``about.csv`` tells when, where, with which versions and under which load each table was made.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gains import measured_examples, measured_models
from opsets import measured_opsets

import xoptim
from xbuilder import GraphBuilder, OptimizationOptions

DATA = Path(__file__).resolve().parent / "data"
TOOLS = {
    "ours+ort": "xoptim default+onnxruntime",
    "ours": "xoptim default",
    "onnxslim": "OnnxSlim",
    "onnxsim": "onnxsim",
    "onnxscript": "onnxscript",
    "ort-extended": "onnxruntime extended",
    "noop": "the model itself",
}
PATTERNS = "default+onnxruntime"
#: stages of an optimization, in their order
STAGES = ("load", "import", "infer", "optimize", "export")


def machine() -> str:
    """The processor and the number of cores."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores"


def versions(names: Iterable[str]) -> str:
    """The versions of distributions, those that are installed."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def load() -> str:
    """The mean number of processes that ran in the last fifteen minutes."""
    return f"{os.getloadavg()[2]:.1f}" if hasattr(os, "getloadavg") else ""


def write(name: str, rows: list[dict[str, Any]], how: str) -> None:
    """Writes a table, and a line about it in ``about.csv``.

    :param name: name of the file
    :param rows: its rows
    :param how: how it was made
    """
    with (DATA / name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    about = DATA / "about.csv"
    known = list(csv.DictReader(about.open(encoding="utf-8"))) if about.exists() else []
    git = ["git", "-C", str(DATA), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    line = {
        "table": name,
        "date": datetime.date.today().isoformat(),
        "commit": done.stdout.strip(),
        "machine": machine(),
        "load": load(),
        "versions": versions(["onnx", "onnxruntime", "onnxscript", "onnxsim", "onnxslim"]),
        "how": how,
    }
    rows = [*(row for row in known if row["table"] != name), line]
    with about.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(line), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["table"]))
    print("wrote", name, flush=True)


def measured_peers(bench: Path, corpus: Path, folder: Path) -> Path:
    """Runs the benchmark of the optimizers, on its core selection of models.

    :param bench: the folder of ``compare.py``
    :param corpus: the models
    :param folder: where it writes
    :return: the table
    """
    variables = {
        "XBENCH_CACHE": str(corpus.resolve().parent),
        "XBENCH_RESULTS": str(folder),
        "XBENCH_ORT_THREADS": "1",
        "XOPTIM_PATH": str(DATA.parents[2]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(bench / "compare.py"), "--out", "site"]
    command += ["--optimizers", ",".join(TOOLS), "--repeats", "1", "--budget", "5"]
    subprocess.run(command, env={**os.environ, **variables}, check=True)
    return folder / "site-compare.csv"


def peers(path: Path) -> None:
    """Keeps what the pages need of a table of the benchmark of optimizers.

    :param path: the table
    """
    kept = []
    for row in csv.DictReader(path.open(encoding="utf-8")):
        loads = row["ort"] == "True" and row.get("run") != "False"
        usable = row["status"] == "ok" and loads
        kept.append(
            {
                "model": row["model"],
                "tool": TOOLS[row["optimizer"]],
                "usable": int(usable),
                "right": int(usable and not row["wrong"]),
                "nodes_before": row["nodes_before"],
                "nodes": row["nodes_after"] if usable else "",
                "seconds": row["time_s"] if usable else "",
                "latency": row["latency_ratio"] if usable else "",
            }
        )
    write("peers.csv", kept, "compare.py, one thread, models in turns")
    (DATA / "peers.txt").write_text(peers_table(), encoding="utf-8")


def published(path: Path, name: str) -> None:
    """Keeps what the page of optimizers needs of a table of ``bench_peers.py``.

    :param path: the table
    :param name: the models it is about, an option of this script: `wheels` or `sizes`
    """
    names = ("model", "tool", "nodes", "same", "latency", "latency_ms", "error")
    rows = [
        {column: row.get(column, "") for column in names}
        for row in csv.DictReader(path.open(encoding="utf-8"))
        if row["model"].endswith(".onnx")
    ]
    write(f"{name}.csv", rows, f"bench_peers.py --{name}, one thread, models in turns")


def peers_table() -> str:
    """The table of the first page and of README, in rst, from ``peers.csv``.

    Geometric means; a model that an optimizer does not optimize, or breaks, counts as the original.
    """
    rows = list(csv.DictReader((DATA / "peers.csv").open(encoding="utf-8")))
    about = next(
        row
        for row in csv.DictReader((DATA / "about.csv").open(encoding="utf-8"))
        if row["table"] == "peers.csv"
    )
    line = f"{'=' * 28}  {'=' * 5}  {'=' * 7}  {'=' * 6}  {'=' * 6}"
    text = [line, f"{'tool':28}  {'nodes':5}  {'latency':7}  {'usable':6}  right", line]
    means = {}
    for tool in TOOLS.values():
        mine = [row for row in rows if row["tool"] == tool]
        nodes = [int(r["nodes"]) / int(r["nodes_before"]) for r in mine if r["right"] == "1"]
        times = [float(r["latency"]) for r in mine if r["right"] == "1" and r["latency"]]
        count = len(mine)
        means[tool] = (
            math.exp(sum(map(math.log, nodes)) / count),
            math.exp(sum(map(math.log, times)) / count),
            sum(r["usable"] == "1" for r in mine),
            sum(r["right"] == "1" for r in mine),
        )
    for tool, (nodes_mean, latency, usable, right) in means.items():
        if tool != TOOLS["noop"]:
            text.append(f"{tool:28}  {nodes_mean:<5.2f}  {latency:<7.2f}  {usable:<6}  {right}")
    text += [line, ""]
    noise = means[TOOLS["noop"]][1]
    under = f", mean load {about['load']}" if about["load"] else ""
    text.append(
        f"Geometric means over {len({r['model'] for r in rows})} models, as ratios to the original: "
        f"1 changes nothing. *usable*: onnxruntime runs the result, *right*: the outputs are the same. "
        f"CPU, one thread, with the optimizations of onnxruntime; the original measured against "
        f"itself gives {noise:.2f}. {about['date']}, {about['machine']}{under}; {about['versions']}."
    )
    return "\n".join([*text[:-1], textwrap.fill(text[-1], 99), ""])


def applied(folder: Path) -> None:
    """The rewrites each model has, and the CPU time of each step of its optimization.

    :param folder: `<group>/<name>/model.onnx`
    """
    fired, costs = [], Counter[tuple[str, str, str]]()
    for path in sorted(folder.glob("*/*/model.onnx")):
        name = f"{path.parent.parent.name}/{path.parent.name}"
        if name.startswith("synthetic"):
            continue
        steps_of(path)  # patterns are imported and compiled when they are first used
        times, rows = steps_of(path)
        counts: Counter[str] = Counter()
        saved: Counter[str] = Counter()
        for row in rows:
            kind, _, pattern = row["pattern"].partition("_")
            if kind == "apply" and row["instances"] > 0:
                counts[pattern] += int(row["instances"])
                saved[pattern] += int(row["removed"] - row["added"])
        fired += [
            {"pattern": p, "model": name, "times": n, "nodes": saved[p]} for p, n in counts.items()
        ]
        costs.update(detailed(times, rows, counts))
        print(f"{name}: {sum(times.values()):.2f} s, {counts.total()} rewrites", flush=True)
    write("fired.csv", fired, f"the models of the corpus, {PATTERNS}")
    total = [
        {"stage": stage, "root": root, "step": step, "ms": round(seconds * 1e3, 1)}
        for (stage, root, step), seconds in sorted(costs.items())
    ]
    write("steps.csv", total, f"the models of the corpus, {PATTERNS}, CPU time of their sum")


def steps_of(path: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """CPU seconds of each stage, and rows of statistics of the optimization.

    :param path: a model
    """
    ends = [time.process_time()]

    def end() -> None:
        ends.append(time.process_time())

    model = onnx.load(path)
    end()
    GraphBuilder(model, infer_shapes_options=False)
    end()
    options = OptimizationOptions(patterns=PATTERNS)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    end()
    rows = builder.optimize()
    end()
    builder.to_onnx(optimize=False)
    end()
    spent = dict(zip(STAGES, np.diff(ends), strict=True))
    spent["infer"] = max(0.0, spent["infer"] - spent["import"])  # it imports the model as well
    return spent, rows


def detailed(
    times: Mapping[str, float], rows: Iterable[Mapping[str, Any]], counts: Mapping[str, int]
) -> Counter[tuple[str, str, str]]:
    """CPU seconds of each step: its stage, the operators it starts from, its name.

    The clock of the statistics goes on while other programs run, so their times are taken as shares
    of the CPU time of the optimization.

    :param times: CPU seconds of each stage
    :param rows: rows of statistics
    :param counts: number of times each pattern was applied
    """
    roots = {p.name: getattr(p, "roots", ()) for p in xoptim.get_pattern_list(PATTERNS)}
    clock: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        kind, _, pattern = row["pattern"].partition("_")
        if pattern in roots:
            names = roots[pattern]
            root = names[0] if len(names) == 1 else f"{len(names) or 'all'} operators"
            clock[kind if counts.get(pattern) else "match in vain", root, pattern] += row["time_in"]
        else:
            clock["passes", "", row["pattern"].partition(":")[0]] += row["time_in"]
    share = times["optimize"] / clock.total()
    found = Counter({step: seconds * share for step, seconds in clock.items()})
    found.update({(name, "", ""): times[name] for name in STAGES if name != "optimize"})
    return found


def gained(corpus: Path, names: Sequence[str] = ()) -> None:
    """The latency with each pattern.

    :param corpus: `<group>/<name>/model.onnx`
    :param names: the patterns to measure, all of them if empty; the rows of the others are kept
    """
    rows = [*measured_examples(names), *measured_models(corpus, PATTERNS, names)]
    how = f"with the pattern over without it, one thread, CPU time, {PATTERNS}"
    if names:
        known = csv.DictReader((DATA / "gains.csv").open(encoding="utf-8"))
        rows += [row for row in known if row["pattern"] not in names]
        how = f"{how}; measured this time: {', '.join(sorted(names))}"
    rows.sort(key=lambda row: (row["pattern"], row["model"]))
    write("gains.csv", rows, how)


def chain(blocks: int) -> onnx.ModelProto:
    """A chain of four nodes, as many times as asked, of which one stays."""
    body = []
    for i in range(0, 4 * blocks, 4):
        body.append(f"x{i + 1} = Transpose <perm = [1, 0]> (x{i})")
        body.append(f"x{i + 2} = Transpose <perm = [1, 0]> (x{i + 1})")
        body.append(f"x{i + 3} = Mul (x{i + 2}, one)")
        body.append(f"x{i + 4} = Sigmoid (x{i + 3})")
    text = f"agraph (float[a, b] x0) => (float[a, b] x{4 * blocks}) <float one = {{1}}> {{"
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>' + text + "\n".join(body) + "}"
    )


def scaling(sizes: Iterable[int] = (250, 750, 2500, 7500, 25000)) -> None:
    """Time against the number of nodes.

    :param sizes: numbers of blocks of four nodes
    """
    xoptim.optimize(chain(1), patterns=PATTERNS)
    rows = []
    for blocks in sizes:
        model = chain(blocks)
        begin = time.process_time()
        xoptim.optimize(model, patterns=PATTERNS)
        seconds = time.process_time() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # sizes increase
        rows.append({"nodes": 4 * blocks, "seconds": round(seconds, 3), "peak_mb": peak})
        print(rows[-1], flush=True)
    write("scaling.csv", rows, "chains of four nodes, CPU time, peak of the process")


#: the peak of a process counts the memory of the one that starts it: a small one does
_MEASURE = """
import os, sys
command = [sys.executable, "-m", "xoptim", *sys.argv[1:]]
_, status, usage = os.wait4(os.posix_spawn(sys.executable, command, os.environ), 0)
print(usage.ru_maxrss // 1024)
sys.exit(status != 0)
"""


def memory(megabytes: Iterable[int] = (16, 64, 256, 1024)) -> None:
    """Peak memory of the command against the size of the weights.

    :param megabytes: sizes of the weights
    """
    rows: list[Mapping[str, Any]] = []
    for size in megabytes:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "m.onnx", Path(folder) / "o.onnx"
            _large(size, source)
            command = [sys.executable, "-c", _MEASURE, str(source), str(target)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"weights_mb": size, "peak_mb": int(done.stdout.split()[-1])})
            print(rows[-1], flush=True)
    write("memory.csv", [dict(row) for row in rows], "xoptim model.onnx optimized.onnx")


#: arguments of the subcommands, in a folder with small models
SUBCOMMANDS = {
    "batch": "small.onnx --output-dir written",
    "bisect": "small.onnx",
    "check": "small.onnx",
    "compare": "small.onnx optimized.onnx",
    "config": "print",
    "diff": "small.onnx small.onnx",
    "dot": "small.onnx",
    "explain": "small.onnx TransposeTranspose",
    "extract": "small.onnx part.onnx --from x1 --to x3",
    "info": "small.onnx",
    "kernels": "--op Gelu",
    "measure": "small.onnx",
    "new-pattern": "small.onnx x1 x2",
    "optimize": "small.onnx optimized.onnx",
    "patterns": "onnxruntime",
    "print": "small.onnx",
    "reduce": "--help",
    "tune": "--help",
    "verify": "small.onnx optimized.onnx",
}


def startup(repeat: int = 5) -> None:
    """CPU time of each subcommand on a model of four nodes, beside ``import onnx``.

    :param repeat: number of processes of each, in turns; the smallest time is kept
    """
    command = [sys.executable, "-c", "import onnx"]
    lines = {"import onnx": command, "import onnx, xoptim": [*command[:2], "import onnx, xoptim"]}
    main = [sys.executable, "-m", "xoptim"]
    imports = 'import onnx, click, rich.console, rich.table; onnx.defs.get_schema("Add")'
    lines["import onnx, click, rich; a schema"] = [*command[:2], imports]
    lines["--help"] = [*main, "--help"]
    lines |= {name: [*main, name, *words.split()] for name, words in SUBCOMMANDS.items()}
    spent: dict[str, list[float]] = {name: [] for name in lines}
    root = str(DATA.parents[2])
    variables = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "written").mkdir()
        for name in ("small.onnx", "optimized.onnx"):
            onnx.save(chain(1), Path(folder) / name)
        for turn in range(repeat + 1):
            for name, line in lines.items():  # the first turn writes the cards of the patterns
                begin = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(line, env=variables, cwd=folder, capture_output=True, check=True)
                end = resource.getrusage(resource.RUSAGE_CHILDREN)
                if turn:  # modules are compiled and files are cached by the first one
                    took = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
                    spent[name].append(took)
    base = min(spent["import onnx"])
    rows = [
        {"command": name, "seconds": round(min(took), 3), "above": round(min(took) - base, 3)}
        for name, took in spent.items()
    ]
    write("startup.csv", rows, f"a model of four nodes, CPU time, smallest of {repeat}, in turns")


def _large(megabytes: int, path: Path) -> None:
    """Writes a model with weights of this size, in another file."""
    side = 1024
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        f"agraph (float[n, {side}] x) => (float[n, {side}] y) <float one = {{1}}> {{"
        "a = Mul (x, one) y = Identity (a)}"
    )
    del model.graph.node[:]
    name, rng = "x", np.random.default_rng(0)
    for i in range(max(1, megabytes // 4)):
        values = rng.standard_normal((side, side), dtype=np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, f"w{i}"))
        model.graph.node.append(onnx.helper.make_node("MatMul", [name, f"w{i}"], [f"r{i}"]))
        model.graph.node.append(onnx.helper.make_node("Mul", [f"r{i}", "one"], [f"m{i}"]))
        model.graph.node.append(onnx.helper.make_node("Relu", [f"m{i}"], [f"s{i}"]))
        name = f"s{i}"
    model.graph.node[-1].output[0] = "y"
    onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")


def main() -> None:
    """Reads the command line and writes the tables."""
    parser = argparse.ArgumentParser(description="Writes the figures of the benchmark pages.")
    parser.add_argument("corpus", type=Path, nargs="?", help="its models; opsets needs none")
    parser.add_argument("--bench", type=Path, help="the folder of compare.py, for peers")
    tables = ["applied", "scaling", "memory", "gains", "startup", "opsets"]
    parser.add_argument(
        "--only", nargs="*", default=tables, choices=[*tables, "peers", "sizes", "wheels"]
    )
    parser.add_argument(
        "--table", type=Path, help="peers.csv of bench_peers.py, for wheels and sizes"
    )
    parser.add_argument("--patterns", nargs="+", default=(), help="the only ones gains measures")
    args = parser.parse_args()
    if args.corpus is None and {"applied", "gains", "peers"} & {*args.only}:
        parser.error("only scaling, startup, memory and opsets need no corpus")
    DATA.mkdir(exist_ok=True)
    if "scaling" in args.only:  # first: the peak of memory is that of the process
        scaling()
    if "peers" in args.only:
        if args.bench is None:
            parser.error("peers needs --bench, the folder of compare.py")
        with tempfile.TemporaryDirectory() as folder:
            peers(measured_peers(args.bench, args.corpus, Path(folder)))
    for name in {"wheels", "sizes"} & {*args.only}:
        if args.table is None:
            parser.error(f"{name} needs --table, which bench_peers.py --{name} writes")
        published(args.table, name)
    if "applied" in args.only:
        applied(args.corpus)
    if "startup" in args.only:
        startup()
    if "opsets" in args.only:
        how = "over the latency of the model itself, one thread, CPU time, in turns"
        write("opsets.csv", list(measured_opsets()), how)
    if "memory" in args.only:
        memory()
    if "gains" in args.only:
        gained(args.corpus, args.patterns)


if __name__ == "__main__":
    main()
