"""
Real models, before and after
=============================

Optimizes the models shipped by two wheels of PyPI: the three models of ``rapidocr-onnxruntime``
(text detection, recognition, orientation) and ``silero_vad.onnx`` of ``silero-vad``, whose body
sits in If branches. Both run under onnxruntime with its own optimizations disabled, on inputs of
realistic sizes, and their outputs are compared as ``--verify`` does.

``make models`` fetches the wheels and runs this script.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.reports.model_summary import count_ops
from xoptim.trust.verification import verify_models

PACKAGES = ("rapidocr_onnxruntime", "silero_vad")
SELECTIONS = ("default", "default+onnxruntime")
FILES = (
    ("detection", "ch_PP-OCRv4_det_infer.onnx"),
    ("recognition", "ch_PP-OCRv4_rec_infer.onnx"),
    ("orientation", "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    ("silero_vad", "silero_vad.onnx"),
)


def find_models(folder: str | None) -> dict[str, Path]:
    """The four models, in a folder where wheels were unpacked or where Python finds packages."""
    roots = [Path(folder) / name for name in PACKAGES] if folder else []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None:
            roots.extend(Path(p) for p in spec.submodule_search_locations or ())
    found: dict[str, Path] = {}
    for label, file in FILES:
        paths = [p for root in roots for p in sorted(root.rglob(file))]
        if paths:
            found[label] = paths[0]
    return found


def number_of_nodes(model: onnx.ModelProto) -> int:
    """The nodes of a model and of its subgraphs, without Constant nodes, which compute nothing."""
    counts = count_ops(model)
    return sum(counts.values()) - counts["Constant"]


def picture_of_text(shape: tuple[int, ...]) -> np.ndarray:
    """Dark letters on a bright page: what the detection gives is not the noise of its last node."""
    rng = np.random.default_rng(0)
    page = 2 + 0.1 * rng.standard_normal(shape).astype(np.float32)
    _, _, height, width = shape
    for top in range(8, height - 16, 32):
        for left in range(6, width - 12, 11):
            bar = top + 6 * int(rng.integers(3))
            for rows, columns in (
                (slice(top, top + 14), slice(left, left + 2)),
                (slice(bar, bar + 2), slice(left, left + 8)),
                (slice(top, top + 14), slice(left + 6, left + 8)),
            ):
                page[:, :, rows, columns] = -2
    return page


def inputs_of(label: str) -> Iterator[dict[str, np.ndarray]]:
    """Inputs of realistic sizes, two sets for each model."""
    rng = np.random.default_rng(0)
    if label == "detection":
        for size in ((1, 3, 64, 96), (2, 3, 96, 64)):
            yield {"x": picture_of_text(size)}
    images = {
        "recognition": ((1, 3, 48, 160), (2, 3, 48, 96)),
        "orientation": ((1, 3, 48, 192), (2, 3, 48, 192)),
    }
    for shape in images.get(label, ()):
        yield {"x": rng.standard_normal(shape).astype(np.float32)}
    if label == "silero_vad":
        for batch, rate, size in ((1, 16000, 576), (3, 8000, 288)):
            yield {
                "input": rng.standard_normal((batch, size)).astype(np.float32) / 3,
                "state": rng.standard_normal((2, batch, 128)).astype(np.float32) / 3,
                "sr": np.array(rate, dtype=np.int64),
            }


def largest_difference(label: str, before: bytes, after: bytes) -> tuple[float, str]:
    """Largest relative difference, and why it is refused, by the criterion of ``--verify``."""
    reports = [verify_models(before, after, feeds) for feeds in inputs_of(label)]
    refused = [report.reason for report in reports if not report.ok]
    return max(report.max_rel for report in reports), "; ".join(refused)


def optimize(label: str, path: Path, selection: str, output: Path | None) -> dict:
    """Optimizes one model, returns a row of the table."""
    original = onnx.load(path)
    begin = time.perf_counter()
    builder = GraphBuilder(
        str(path),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=selection),
    )
    model = builder.to_onnx(optimize=True)
    duration = time.perf_counter() - begin
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        onnx.save(model, output / f"{label}.{selection}.onnx")
    before, after = original.SerializeToString(), model.SerializeToString()
    largest, refused = largest_difference(label, before, after)
    return {
        "model": label,
        "patterns": selection,
        "nodes before": number_of_nodes(original),
        "nodes after": number_of_nodes(model),
        "bytes before": len(before),
        "bytes after": len(after),
        "seconds": duration,
        "difference": largest,
        "refused": refused,
    }


def show(rows: list[dict]) -> None:
    """Prints the table."""
    table = Table(title="Real models")
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("model", "patterns") else "right")
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=140).print(table)


def main(arguments: list[str] | None = None) -> int:
    """Runs everything, returns an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=None, help="folder where the wheels were unpacked")
    parser.add_argument("--output", default=None, help="folder where optimized models are written")
    options = parser.parse_args(arguments)
    models = find_models(options.models)
    if len(models) < 4:
        print(
            f"Only {sorted(models)} were found; run `make models`, or "
            "pip install --no-deps rapidocr-onnxruntime silero-vad.",
            file=sys.stderr,
        )
        return 1
    output = Path(options.output) if options.output else None
    rows = [optimize(k, v, s, output) for k, v in models.items() for s in SELECTIONS]
    show(rows)
    bad = [r for r in rows if r["refused"] or r["nodes after"] >= r["nodes before"]]
    for row in bad:
        print(f"FAILED: {row}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
