"""
Rewrites on a GPU
=================

Checks and measures what is written for CUDA, on a machine that may have neither torch nor network.

    python _doc/examples/bench_cuda.py prepare FOLDER              # where torch and the tests are
    python _doc/examples/bench_cuda.py run FOLDER --output OUT     # where the GPU is
    python _doc/examples/bench_cuda.py run FOLDER --output OUT --processor CPU    # a rehearsal

The first line writes a few megabytes: the test models of the rewrites of onnxruntime's operators,
attentions of ``bench_attention.py``, transformers of the corpus (``--corpus``) and larger ones
(``corpus/gpu_models.py``), all without their weights, which the second one draws. It
then writes, as it goes and within ``--seconds``:

* ``kernels.json``: the kernels of CUDA that this onnxruntime has, as
  ``xbuilder/runtimes/data/cuda.json`` holds them;
* ``checks.csv``: each test model before and after its rewrite, on CUDA, beside the CPU;
* ``latency.csv``: each model optimized with several sets, right or not, and its time over the time
  of the original, inputs and outputs on the device; where heads are shared, repeating them too;
* ``plans.csv``: attention in float16 at lengths already seen and new, with and without cuDNN;
* ``tune.csv`` and ``gates.csv``: the time that each rewrite saves on some of these models, in the
  form of ``xoptim/data/gates.csv``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from tools.attention_plans import measured_by_kernel
from tools.weightless import with_weights, without_weights

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.runtimes.installed import read_installed
from xbuilder.runtimes.processors import gpu_features, processor_features
from xbuilder.runtimes.sessions import providers_of
from xbuilder.tensors.closeness import ATOL, Criterion
from xoptim.trust.inputs.draws import accepted_inputs
from xoptim.trust.latency import clock_of, compare_sessions, fast_session
from xoptim.trust.sessions.session_child import open_session
from xoptim.trust.tuning import Tuning, measure_rows, summary, tune

ROOT = Path(__file__).resolve().parents[2]
#: tests whose models are checked
TESTS = (
    "patterns_ort",
    "patterns/elementwise/test_activation.py",
    "patterns/elementwise/test_gelu.py",
    "patterns/normalization/test_sum_layer_norm.py",
)
#: transformers of the corpus of the benchmark
CORPUS = (
    "bert", "clip_text", "detr", "gemma2", "gpt2", "llama2l", "llama_kv", "mistral", "phi3",
    "segformer", "swin", "t5_encoder", "vit", "whisper_encoder",
)  # fmt: skip
#: batch, queries, keys, heads, length of each
ATTENTIONS = [(1, 1, 128, 12, 64), (8, 128, 128, 12, 64), (1, 1024, 1024, 12, 64)]
SETS = {
    "default": {"patterns": "default"},
    "default+onnxruntime, CPU": {"patterns": "default+onnxruntime"},
    "default+onnxruntime": {"patterns": "default+onnxruntime", "processor": "CUDA"},
}
#: what is measured too where it gives another model: heads that queries share are repeated, for
#: MultiHeadAttention
CANDIDATE = {"patterns": "default+onnxruntime-FunctionAttentionGQA", "processor": "CUDA"}
#: sizes of the dynamic dimensions of the transformers
SIZES = {"batch": 8, "seq": 128}
#: models whose rewrites are measured one by one
TUNED = (
    "attention.float16.mask.8x128", "attention.float32.mask.8x128", "large.float32.gpt2",
    "corpus.script.detr", "attention.float16.mask.1x1024", "attention.float32.mask.1x1024",
    "large.float32.bert", "large.float16.gpt2", "large.float32.llama", "corpus.script.clip_text",
    "large.float16.bert", "large.float16.llama", "large.float16.vit", "corpus.dynamo.detr",
)  # fmt: skip
Feeds = Mapping[str, np.ndarray]


def prepare(folder: Path, corpus: Path) -> None:
    """Writes the models, see the top of the file."""
    import torch
    from bench_attention import CASES, model_of
    from corpus.gpu_models import MODELS, exported

    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    _record(folder / "checks.pickle")
    for case in CASES:
        for sizes in ATTENTIONS:
            if "shared" in case and sizes[1] != sizes[2]:
                continue  # other keys come from a cache
            name = f"{case.replace(', ', '_').replace(' ', '-')}.{sizes[0]}x{sizes[1]}"
            proto = model_of(case, sizes)
            onnx.save(proto, models / f"attention.float32.{name}.onnx")
            onnx.save(_in_half(proto), models / f"attention.float16.{name}.onnx")
    for name in MODELS:
        for dtype in (torch.float32, torch.float16):
            text = str(dtype).removeprefix("torch.")
            proto = without_weights(exported(name, dtype))
            onnx.save(proto, models / f"large.{text}.{name}.onnx")
    for path in sorted(corpus.glob("*/*/model.onnx")):
        if path.parent.name in CORPUS:
            name = f"corpus.{path.parents[1].name}.{path.parent.name}.onnx"
            onnx.save(without_weights(onnx.load(path)), models / name)
            shutil.copy(path.with_name("in1.npz"), (models / name).with_suffix(".npz"))


def _record(path: Path) -> None:
    """Runs the tests of rewrites and keeps the models they optimize."""
    tests = [str(ROOT / "_unittests" / "ut_xoptim" / name) for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.recorded_checks", *tests]
    around = os.pathsep.join([str(Path(__file__).parent), str(ROOT)])
    variables = {"PYTHONPATH": around, "XOPTIM_RECORD": str(path)}
    subprocess.run(command, env={**os.environ, **variables}, cwd=ROOT, check=True)


def _in_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model of an attention, in float16."""
    half = onnx.ModelProto()
    half.CopyFrom(model)
    for info in (*half.graph.input, *half.graph.output, *half.graph.value_info):
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for tensor in half.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            with np.errstate(over="ignore"):
                tensor.CopyFrom(
                    onnx.numpy_helper.from_array(values.astype(np.float16), tensor.name)
                )
    return half


def plain(content: bytes, processor: str) -> Any:
    """A session that runs a model as it is written.

    :param content: the model
    :param processor: what runs it; the CPU runs the nodes that CUDA has no kernel for
    """
    return open_session(content, providers_of(processor))


def left_to_cpu(content: bytes, processor: str) -> str:
    """Why onnxruntime does not run every node of a model on a processor, empty if it does.

    :param content: the model
    :param processor: what runs it
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        onnxruntime.InferenceSession(content, options, providers=providers_of(processor)[:1])
    except Exception as e:
        return _first_line(e)
    return ""


def largest_gap(
    expected: Sequence[Any], got: Sequence[Any], noisy: Sequence[Any], atol: float = ATOL
) -> tuple[bool, float]:
    """Whether outputs are the same, and their largest relative difference.

    :param expected: those of the original on CPU
    :param got: those to check
    :param noisy: those of the original on the same processor
    :param atol: the absolute difference that is accepted
    """
    gaps = [
        Criterion(atol=max(atol, ATOL)).compare(a, b, [c])
        for a, b, c in zip(expected, got, noisy, strict=True)
    ]
    return all(g.ok for g in gaps), max((g.max_rel for g in gaps), default=0.0)


def checks(path: Path, processor: str) -> Iterator[dict[str, Any]]:
    """One row for each test model: its rewrite on CUDA beside the original on CPU."""
    for test, before, after, feeds, is_for_cuda, atol in pickle.loads(path.read_bytes()):
        row: dict[str, Any] = {"test": test.removeprefix("_unittests/ut_xoptim/")}
        row["for_cuda"] = is_for_cuda
        try:
            expected = plain(before, "CPU").run(None, feeds)
        except Exception as e:
            yield {**row, "state": "the original does not run on CPU", "reason": _first_line(e)}
            continue
        try:
            noisy = plain(before, processor).run(None, feeds)
        except Exception as e:
            noisy, row["reason"] = expected, f"original: {_first_line(e)}"
        try:
            session = plain(after, processor)
        except Exception as e:
            yield {**row, "state": "does not load", "reason": _first_line(e)}
            continue
        reason = left_to_cpu(after, processor)
        if reason:
            row |= {"reason": reason, "partly_on_cpu": True}
        try:
            ok, gap = largest_gap(expected, session.run(None, feeds), noisy, atol)
        except Exception as e:
            yield {**row, "state": "does not run", "reason": _first_line(e)}
            continue
        yield {**row, "state": "right" if ok else "wrong", "gap": gap}


class Ready(NamedTuple):
    """A model, what each set makes of it, its inputs and its outputs on CPU."""

    name: str
    original: bytes
    made: dict[str, bytes]
    feeds: dict[str, np.ndarray]
    expected: list[Any]
    reason: str = ""


def ready(path: Path) -> Ready:
    """Draws the weights of a model, optimizes it, runs it on CPU."""
    model = with_weights(onnx.load(path))
    content = model.SerializeToString()
    try:
        made = {name: _optimized(model, options) for name, options in SETS.items()}
        candidate = _optimized(model, CANDIDATE)
        if candidate not in made.values():
            made["repeated heads"] = candidate
        feeds = _feeds(path, model, SIZES)
        expected = plain(content, "CPU").run(None, feeds)
    except Exception as e:
        return Ready(path.stem, content, {}, {}, [], _first_line(e))
    return Ready(path.stem, content, made, feeds, expected)


def latencies(models: Iterable[Ready], processor: str) -> Iterator[dict[str, Any]]:
    """One row for each model and each set: right or not, time over the original's.

    :param models: the models
    :param processor: what runs them
    """
    for model in models:
        head = {"model": model.name}
        if model.reason:
            yield {**head, "set": "none", "state": model.reason}
            continue
        try:
            noisy = plain(model.original, processor).run(None, model.feeds)
            first = fast_session(model.original, 1, processor=processor)
        except Exception as e:
            yield {**head, "set": "none", "state": _first_line(e)}
            continue
        for name, content in model.made.items():
            yield {**head, "set": name} | _measured(first, content, model, processor, noisy)


def _feeds(path: Path, model: onnx.ModelProto, sizes: Mapping[str, int]) -> Feeds:
    """The inputs that came with a model, or those drawn for these sizes."""
    given = path.with_suffix(".npz")
    if given.exists():
        with np.load(given) as stored:
            return dict(stored)
    names = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim}
    known = {name: size for name, size in sizes.items() if name in names}
    return accepted_inputs(model, None, known, 0)[0]


def _measured(
    first: Any, content: bytes, model: Ready, processor: str, noisy: Sequence[Any]
) -> dict[str, Any]:
    """The columns of an optimized model, measured in turns with the original."""
    row: dict[str, Any] = {"nodes": len(onnx.load_from_string(content).graph.node)}
    try:
        got = plain(content, processor).run(None, model.feeds)
        ok, row["gap"] = largest_gap(model.expected, got, noisy)
        second = fast_session(content, 1, processor=processor)
        found = compare_sessions(first, second, model.feeds, 5, 0.05, clock_of(processor))
    except Exception as e:
        return {**row, "state": _first_line(e)}
    row |= {"state": "right" if ok else "wrong", "microseconds": round(found.before * 1e6, 1)}
    ratios = {"ratio": found.ratio, "low": found.low, "high": found.high}
    return row | {name: round(value, 3) for name, value in ratios.items()}


def _optimized(model: onnx.ModelProto, options: Mapping[str, str]) -> bytes:
    how = OptimizationOptions(**options)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=how)
    content: bytes = builder.to_onnx(optimize=True).SerializeToString()
    return content


def _place(path: Path) -> tuple[int, str]:
    """Large models first: a run that lacks time measures what matters."""
    kinds = ("large", "attention", "corpus")
    return kinds.index(path.name.split(".")[0]), path.name


def measured_rewrites(folder: Path, output: Path, processor: str, until: float) -> None:
    """Writes the time that each rewrite saves on some models, as `xoptim tune` does."""
    measures = []
    with tempfile.TemporaryDirectory() as place:
        for name in TUNED:
            if time.monotonic() > until:
                print(f"no time left for {name}", flush=True)
                break
            path = Path(place) / f"{name}.onnx"
            model = with_weights(onnx.load(folder / path.name))
            onnx.save(model, path)
            feeds = _feeds(folder / path.name, model, SIZES)
            how = Tuning(
                threads=(1,), blocks=5, processor=processor, inputs=lambda _, fed=feeds: [fed]
            )
            measures += tune([path], how)
            _write(output / "tune.csv", measure_rows(measures, processor))
            _write(output / "gates.csv", [g.to_row() for g in summary(measures, processor)])


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table again, with every row known so far."""
    columns = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(columns), restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def _collect(path: Path, rows: Iterator[dict[str, Any]], begin: float, limit: float) -> None:
    """Writes rows as they come, until the time is over."""
    found: list[dict[str, Any]] = []
    for row in rows:
        found.append(row)
        if len(found) % 20 == 0:
            _write(path, found)
        if time.monotonic() > begin + limit:
            print(f"{path.name}: no time left after {len(found)} rows", flush=True)
            break
    _write(path, found)
    states = [row["state"] for row in found]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    print(f"{path.name}: {counts}, {time.monotonic() - begin:.0f} s", flush=True)


def run(folder: Path, output: Path, processor: str, seconds: float) -> None:
    """Checks and measures the models, see the top of the file."""
    begin = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    print(gpu_features() or processor_features(), flush=True)
    table = read_installed(processor)
    if table is not None:
        (output / "kernels.json").write_text(json.dumps(table.data), encoding="utf-8")
    paths = sorted((folder / "models").glob("*.onnx"), key=_place)
    # other processes optimize the models while the first ones run
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 4), get_context("spawn")) as pool:
        models = pool.map(ready, paths)
        # shares of the time: what is left by one goes to the next
        parts = [
            ("checks.csv", 0.3, checks(folder / "checks.pickle", processor)),
            ("latency.csv", 0.65, latencies(models, processor)),
        ]
        for name, share, rows in parts:
            _collect(output / name, rows, begin, share * seconds)
        pool.shutdown(wait=False, cancel_futures=True)
    _write(output / "plans.csv", list(measured_by_kernel(processor)))
    measured_rewrites(folder / "models", output, processor, begin + 0.9 * seconds)
    print(f"done in {time.monotonic() - begin:.0f} s", flush=True)


def main() -> None:
    """Reads the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["prepare", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path.home() / ".cache/xbench/corpus")
    parser.add_argument("--output", type=Path, default=Path("gpu_results"))
    parser.add_argument("--processor", choices=["CPU", "CUDA"], default="CUDA")
    parser.add_argument("--seconds", type=float, default=450.0)
    given = parser.parse_args()
    if given.step == "prepare":
        prepare(given.folder, given.corpus)
        return
    missing = [n for n in ("checks.pickle", "models") if not (given.folder / n).exists()]
    if missing:
        parser.error(
            f"{given.folder} has no {' and no '.join(missing)}, write it first: "
            f"{Path(__file__).name} prepare {given.folder}"
        )
    run(given.folder, given.output, given.processor, given.seconds)


if __name__ == "__main__":
    main()
