"""
How much is known of the shapes
===============================

For each model, the share of the results whose shape is fully known (integers or expressions of the
dimensions of the inputs) according to this project, to ``onnx.shape_inference`` with data
propagation and to onnxruntime's ``symbolic_shape_infer``, and the processor time each one takes. A
dimension that is neither an integer nor an expression of the dimensions of the inputs is not known.
Then the model runs twice, with other sizes of its dynamic dimensions, and every shape that was
stated is compared with the real one.

``python _doc/examples/bench_shapes.py`` prints the table.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pandas
from optimize_real_models import find_models, inputs_of

from xbuilder import GraphBuilder
from xbuilder.dims import evaluate, symbols
from xoptim.testing import run_onnxruntime
from xoptim.trust.inputs.random_inputs import open_dimensions, random_inputs

#: names made up by onnxruntime's tool
_MADE_UP = "unk__"


def light_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """The `light` models of the onnx package."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(folder.glob("*.onnx")):
        yield path.stem, onnx.load(path)


def exported_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Transformers with random weights and dynamic dimensions."""
    from corpus.transformer_models import MODELS

    from torch_interpreter import to_onnx

    for name, make in MODELS.items():
        module, args, shapes = make()
        yield name, to_onnx(module, args, dynamic_shapes=(shapes,), optimize=False)


def all_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Every model of the table."""
    yield from light_models()
    for name, path in find_models(None).items():
        yield name, onnx.load(path)
    yield from exported_models()


# -- what each tool knows


def without_value_info(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that declares inputs only, so that everything is inferred."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for output in copy.graph.output:
        output.type.tensor_type.ClearField("shape")
    return copy


def results_of(graph: onnx.GraphProto) -> list[str]:
    """Results of the nodes of the main graph."""
    return [o for n in graph.node for o in n.output if o]


def known_in_proto(model: onnx.ModelProto) -> set[str]:
    """Results whose shape is fully known in a model."""
    known: set[str] = set()
    for info in (*model.graph.value_info, *model.graph.output):
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
            continue
        if all(
            d.HasField("dim_value") or (d.dim_param and _MADE_UP not in d.dim_param)
            for d in tensor.shape.dim
        ):
            known.add(info.name)
    return known


def known_in_builder(builder: GraphBuilder) -> set[str]:
    """Results whose shape is fully known by a builder."""
    symbols_of_inputs = set(builder.dynamic_objects)
    return {
        name
        for name, facts in builder.facts.items()
        if facts.shape is not None
        and all(isinstance(d, int) or symbols(d) <= symbols_of_inputs for d in facts.shape)
    }


def with_builder(model: onnx.ModelProto) -> GraphBuilder:
    """This project."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GraphBuilder(model, infer_shapes_options=True)


def with_onnx(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnx.shape_inference with data propagation."""
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def with_onnxruntime(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnxruntime's symbolic_shape_infer."""
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return SymbolicShapeInference.infer_shapes(copy, auto_merge=True)


TOOLS: dict[str, tuple[Callable[[onnx.ModelProto], Any], Callable[[Any], set[str]]]] = {
    "xoptim": (with_builder, known_in_builder),
    "onnx": (with_onnx, known_in_proto),
    "onnxruntime": (with_onnxruntime, known_in_proto),
}


# -- is it true


def feeds_of(name: str, model: onnx.ModelProto) -> Iterator[dict[str, np.ndarray]]:
    """Two sets of inputs of different sizes."""
    if name in ("detection", "recognition", "orientation", "silero_vad"):
        yield from inputs_of(name)
        return
    names = open_dimensions(model)
    for batch, seq in ((2, 5), (3, 9)):
        sizes = {"batch": batch, "seq": seq}
        yield random_inputs(model, {k: v for k, v in sizes.items() if k in names}, seed=batch)


def sizes_of(builder: GraphBuilder, feeds: dict[str, np.ndarray]) -> dict[str, int]:
    """Sizes of the symbols of the inputs."""
    sizes: dict[str, int] = {}
    for name, value in feeds.items():
        for d, size in zip(builder.facts[name].shape or (), value.shape, strict=True):
            if isinstance(d, str):
                sizes[d] = size
    return sizes


def contradictions(name: str, model: onnx.ModelProto, builder: GraphBuilder) -> int:
    """Number of shapes stated by the builder that a real run contradicts."""
    complete = onnx.ModelProto()
    complete.CopyFrom(model)
    outputs = {o.name for o in complete.graph.output}
    for result in results_of(model.graph):
        if result not in outputs:
            complete.graph.output.append(oh.make_empty_tensor_value_info(result))
    names = [o.name for o in complete.graph.output]
    wrong = 0
    for feeds in feeds_of(name, model):
        sizes = sizes_of(builder, feeds)
        for result, value in zip(names, run_onnxruntime(complete, feeds), strict=True):
            shape = builder.facts[result].shape
            if shape is None or not hasattr(value, "shape"):
                continue
            known = [_size(d, sizes) for d in shape]
            wrong += len(known) != len(value.shape) or any(
                k is not None and k != s for k, s in zip(known, value.shape, strict=False)
            )
    return wrong


def _size(dim: int | str, sizes: dict[str, int]) -> int | None:
    if isinstance(dim, int):
        return dim
    return evaluate(dim, sizes) if symbols(dim) <= set(sizes) else None


def measure(name: str, model: onnx.ModelProto, repeat: int) -> dict[str, Any]:
    """One row of the table."""
    bare = without_value_info(model)
    total = len(results_of(bare.graph))
    row: dict[str, Any] = {"model": name, "results": total}
    builder = None
    for tool, (function, known_in) in TOOLS.items():
        best, known = math.inf, set()
        try:
            for _ in range(repeat):
                begin = time.process_time()
                answer = function(bare)
                best = min(best, time.process_time() - begin)
            known = known_in(answer)
        except Exception as e:  # a peer that fails knows nothing
            if tool == "xoptim":
                raise
            print(f"{tool} fails on {name}: {type(e).__name__}: {str(e)[:100]}", file=sys.stderr)
            answer = None
        if tool == "xoptim":
            builder = answer
        row[f"{tool} known"] = len(known & set(results_of(bare.graph))) / max(total, 1)
        row[f"{tool} ms"] = best * 1000
    row["contradictions"] = contradictions(name, bare, builder)
    return row


def main(output: Path | None, repeat: int) -> int:
    """Prints the table, returns an exit code: 1 if a stated shape is wrong."""
    table = pandas.DataFrame([measure(n, m, repeat) for n, m in all_models()])
    print(table.to_string(index=False, float_format=lambda v: f"{v:.3g}"))
    ratio = math.exp(np.log(table["xoptim ms"] / table["onnx ms"]).mean())
    print(f"time relative to onnx.shape_inference, import included: {ratio:.2f}")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        table.to_csv(output / "shapes.csv", index=False)
    return int(table["contradictions"].sum() > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Share of the shapes each tool knows.")
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    sys.exit(main(args.output, args.repeat))
