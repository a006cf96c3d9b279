"""
Attention, fused or not
=======================

Writes the table of ``_doc/rewrites/attention.rst``: the time a pattern saves, kernel by kernel.
Each case is an attention as exporters write it, optimized with and without the pattern, both run by
onnxruntime with its own optimizations, in turns, on one thread. The measure is the CPU time,
the lowest of several blocks.

    python _doc/examples/bench_attention.py            # prints the table
    python _doc/examples/bench_attention.py --write    # and writes it
    python _doc/examples/bench_attention.py --opsets 18 23 24 25 28

The last line optimizes the same models in several opsets, and compares them with the originals:
onnxruntime has no kernel for some operators of the newest opsets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.operators.opsets import ir_version_for

TABLE = Path(__file__).resolve().parents[1] / "tables" / "attention.csv"
#: batch, queries, keys, heads, length of each
SIZES = [(1, 1, 64, 4, 16), (1, 16, 16, 8, 32), (2, 64, 64, 8, 32), (1, 256, 256, 12, 64)]
#: name of a case -> patterns, opset, mask, heads that queries share, rotary embedding
CASES: dict[str, tuple[str, int, str, bool, bool]] = {
    "no mask": ("MultiHeadAttention3D", 18, "", False, False),
    "mask": ("MultiHeadAttention3D(with_mask=True)", 18, "float", False, False),
    "shared heads, mask": ("GroupQueryAttention3D", 18, "float", True, False),
    "no mask, opset 23": ("AttentionGQA", 23, "", False, False),
    "boolean mask, opset 23": ("AttentionGQA", 23, "bool", False, False),
    "shared heads, opset 23": ("AttentionGQA", 23, "bool", True, False),
    "float mask, opset 23": ("AttentionAnyMask", 23, "float", False, False),
    "shared heads, float mask, opset 23": ("AttentionAnyMask", 23, "float", True, False),
    "rotary": ("ContribRotaryEmbedding", 18, "", False, True),
    "rotary, opset 23": ("RotaryEmbedding", 23, "", False, True),
}
#: pattern -> the one that takes the sizes of the cases before it
RIVALS = {"AttentionAnyMask": "GroupQueryAttention3D"}
ROTARY = """a = Concat<axis = -1>(angles, angles) cos0 = Cos(a) sin0 = Sin(a)
    cos = Unsqueeze(cos0, one) sin = Unsqueeze(sin0, one) x1, x2 = Split<axis = 3>(x, halves)
    n = Neg(x2) t = Concat<axis = 3>(n, x1) l = Mul(x, cos) r = Mul(t, sin) y = Add(l, r)"""
REPEAT = "u{0} = Unsqueeze({0}t, two) e{0} = Expand(u{0}, spread) {0}r = Reshape(e{0}, repeated)"


def model_of(case: str, sizes: tuple[int, ...], opset: int = 0) -> onnx.ModelProto:
    """The model of a case, before the pattern, in its own opset or in another one."""
    _, own, mask, shared, rotary = CASES[case]
    opset = opset or own
    batch, queries, keys, heads, length = sizes
    if rotary:
        inputs = (
            f"float[{batch}, {heads}, {keys}, {length}] x, float[1, {keys}, {length // 2}] angles"
        )
        body, output = ROTARY, f"{batch}, {heads}, {keys}, {length}"
    else:
        groups = heads // 2 if shared else heads
        mask_input = {"": "", "float": ", float[{}] c", "bool": ", bool[{}] c"}[mask]
        inputs = ", ".join(
            f"float[{batch}, {n}, {h * length}] {x}"
            for x, n, h in (("q", queries, heads), ("k", keys, groups), ("v", keys, groups))
        ) + mask_input.format(f"{batch}, 1, {queries}, {keys}")
        body, output = _attention(mask, shared), f"{batch}, {queries}, {heads * length}"
    constants = {
        "int64[4] split": f"0, 0, {heads}, {length}", "int64[3] flat": f"0, 0, {heads * length}",
        "int64[4] groups": f"0, 0, {heads // 2}, {length}", "float scale": f"{length**-0.5}",
        "int64[4] repeated": f"0, {heads}, -1, {length}", "int64[5] spread": "1, 1, 2, 1, 1",
        "int64[1] one": "1", "int64[1] two": "2", "float zero": "0", "float low": f"{-3.0e38:.0f}",
        "int64[2] halves": f"{length // 2}, {length // 2}",
    }  # fmt: skip
    rows = ", ".join(f"{name} = {{{value}}}" for name, value in constants.items())
    text = f"""<ir_version: {ir_version_for(opset)}, opset_import: ["" : {opset}]>
    agraph ({inputs}) => (float[{output}] y) <{rows}> {{ {body} }}"""
    model = onnx.parser.parse_model(text)
    for tensor in model.graph.initializer:
        if tensor.name == "low":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32(-np.inf), "low"))
    return model


def _attention(mask: str, shared: bool) -> str:
    moved = "Transpose<perm = [0, 2, 1, 3]>"
    groups = "groups" if shared else "split"
    rows = [f"q4 = Reshape(q, split) qt = {moved}(q4)"]
    rows += [f"{x}4 = Reshape({x}, {groups}) {x}t = {moved}({x}4)" for x in "kv"]
    rows += [REPEAT.format(x) for x in "kv" if shared]
    keys, values = ("kr", "vr") if shared else ("kt", "vt")
    rows.append(f"kx = Transpose<perm = [0, 1, 3, 2]>({keys}) m = MatMul(qt, kx) s = Mul(m, scale)")
    if mask == "bool":
        rows.append("b = Where(c, zero, low) z = Add(s, b) w0 = Softmax<axis = -1>(z)")
        rows.append("i = IsNaN(w0) w = Where(i, zero, w0)")
    else:
        rows.append("z = Add(s, c)" if mask else "z = Identity(s)")
        rows.append("w = Softmax<axis = -1>(z)")
    rows.append(f"o = MatMul(w, {values}) ot = {moved}(o) y = Reshape(ot, flat)")
    return "\n".join(rows)


def session(model: onnx.ModelProto, patterns: str) -> onnxruntime.InferenceSession:
    """The model that onnxruntime runs after the patterns."""
    options = OptimizationOptions(patterns=patterns)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    data = builder.to_onnx().SerializeToString()
    return onnxruntime.InferenceSession(data, settings, providers=["CPUExecutionProvider"])


def times(sessions: list[Any], feeds: dict[str, np.ndarray], blocks: int) -> list[float]:
    """Seconds of the processor for one run of each session, in turns."""
    best = [float("inf")] * len(sessions)
    begin = time.process_time()
    for run in sessions:
        run.run(None, feeds)
    count = max(3, int(0.02 * len(sessions) / max(time.process_time() - begin, 1e-5)))
    for _ in range(blocks):
        for i, run in enumerate(sessions):
            begin = time.process_time()
            for _ in range(count):
                run.run(None, feeds)
            best[i] = min(best[i], (time.process_time() - begin) / count)
    return best


def measures(blocks: int) -> Iterator[dict[str, object]]:
    """One row for each case and size."""
    generator = np.random.default_rng(0)
    for case, (pattern, *_) in CASES.items():
        name = pattern.split("(")[0]
        for sizes in SIZES:
            if name == "GroupQueryAttention3D" and sizes[1] != sizes[2]:
                continue  # other keys come from a cache
            model = model_of(case, sizes)
            feeds = feeds_of(model, generator)
            # without what the pattern needs, others would see what it prepares
            without = (_names(name), RIVALS.get(name, "FusedConv"))
            both = [session(model, f"default+onnxruntime-{n}") for n in without]
            if "(" in pattern:
                both[1] = session(model, f"default+onnxruntime-{name}+{pattern}")
            before, after = times(both, feeds, blocks)
            batch, queries, keys, heads, length = sizes
            yield {
                "pattern": pattern, "case": case, "batch": batch, "queries": queries, "keys": keys,
                "heads": f"{heads} x {length}", "microseconds": round(before * 1e6),
                "ratio": round(after / before, 2),
            }  # fmt: skip


def feeds_of(model: onnx.ModelProto, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs at random."""
    feeds = {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        is_bool = i.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        values = generator.standard_normal(shape) * 2
        feeds[i.name] = values.astype(np.bool_ if is_bool else np.float32)
    return feeds


def measures_by_opset(opsets: list[int], blocks: int) -> Iterator[dict[str, object]]:
    """One row for each case, size and opset: latencies of two sets, the original's is 1."""
    generator = np.random.default_rng(0)
    sets = ("none", "default", "default+onnxruntime")
    cases = {row[2:]: case for case, row in reversed(CASES.items())}
    for case in reversed(cases.values()):
        for sizes in SIZES[2:]:
            for opset in opsets:
                model = model_of(case, sizes, opset)
                feeds = feeds_of(model, generator)
                before, *after = times([session(model, name) for name in sets], feeds, blocks)
                ratios = (round(value / before, 2) for value in after)
                queries = sizes[1]
                yield {"case": case, "queries": queries, "opset": opset} | dict(
                    zip(sets[1:], ratios, strict=True)
                )


def _names(name: str) -> str:
    """The pattern and those which would take its place."""
    others = {
        "AttentionAnyMask": [RIVALS["AttentionAnyMask"]],
        "AttentionGQA": ["MultiHeadAttention3D", "GroupQueryAttention3D"],
        "RotaryEmbedding": ["ContribRotaryEmbedding"],
    }
    return "-".join([name, *others.get(name, [])])


def main() -> None:
    """Prints the table, writes it if it is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--opsets", type=int, nargs="+", help="compares opsets instead")
    arguments = parser.parse_args()
    if arguments.opsets:
        found = pandas.DataFrame(measures_by_opset(arguments.opsets, arguments.blocks))
        print(found.to_string(index=False))
        return
    rows = pandas.DataFrame(measures(arguments.blocks))
    rows["onnxruntime"] = onnxruntime.__version__
    print(rows.to_string(index=False))
    if arguments.write:
        rows.to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
