"""
Families of transformers, one row each
======================================

For each family: attentions found, nodes, the largest error against the unoptimized model when
onnxruntime changes nothing, and latencies against the unoptimized model under the optimizations
onnxruntime makes at load, for this project, for ``onnxruntime.transformers.optimizer`` where it
knows the family, for the optimizer of onnxscript and its fusions for onnxruntime. Models have
random weights and are exported by :func:`torch_interpreter.to_onnx`, nothing is downloaded.

    python _doc/examples/bench_families.py                # every family
    python _doc/examples/bench_families.py bert vit       # some of them
    python _doc/examples/bench_families.py --write        # writes _doc/families.csv

"""

from __future__ import annotations

import argparse
import collections
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas
import torch
import transformers

from torch_interpreter import to_onnx
from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.trust.latency import compare_sessions, fast_session
from xoptim.trust.session_child import open_session
from xoptim.trust.tuning import processor_features

TABLE = Path(__file__).resolve().parents[1] / "families.csv"
ATTENTIONS = ("Attention", "MultiHeadAttention", "GroupQueryAttention")
LAYERS, HEADS, WIDTH, BATCH, LENGTH = 2, 4, 256, 2, 64
SIZES = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
}
TEXT = {**SIZES, "vocab_size": 999, "max_position_embeddings": 256}
SHARED = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
IMAGE = {**SIZES, "image_size": 64, "patch_size": 8}
GPT2 = {"vocab_size": 999, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 256,
        "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
T5 = {"vocab_size": 999, "d_model": WIDTH, "d_kv": WIDTH // HEADS, "d_ff": 2 * WIDTH,
      "num_layers": LAYERS, "num_heads": HEADS}  # fmt: skip
WHISPER = {"d_model": WIDTH, "encoder_layers": LAYERS, "encoder_attention_heads": HEADS,
           "encoder_ffn_dim": 2 * WIDTH, "num_mel_bins": 16, "max_source_positions": 64,
           "decoder_layers": 1, "decoder_attention_heads": HEADS, "vocab_size": 99,
           "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
           }  # fmt: skip


class Named(torch.nn.Module):
    """A model called with named inputs; a result is kept."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...], options: dict[str, Any]):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.names, args, strict=True))
        return self.model(**named, **self.options, return_dict=True)[0]


class Cached(torch.nn.Module):
    """A step of a decoder: keys and values of the steps before are inputs, the next ones are
    outputs."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *args: torch.Tensor) -> Any:
        ids, mask, *past = args
        cache = transformers.DynamicCache()
        for i in range(LAYERS):
            cache.update(past[2 * i], past[2 * i + 1], i)
        out = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        layers = out.past_key_values.layers
        return (out.logits, *(t for layer in layers for t in (layer.keys, layer.values)))


@dataclass(frozen=True)
class Family:
    """How to make the model of a family.

    :param cls: class of transformers
    :param config: class of its configuration
    :param values: the configuration
    :param kind: what its inputs are: text, cache, image, sound
    :param options: other arguments of the call
    :param known: how `onnxruntime.transformers.optimizer` calls the family
    """

    cls: str
    config: str
    values: dict[str, Any]
    kind: str = "text"
    options: tuple[tuple[str, Any], ...] = ()
    known: str = ""


NO_CACHE = (("use_cache", False),)
FAMILIES = {
    "bert": Family("BertModel", "BertConfig", TEXT, known="bert"),
    "gpt2": Family("GPT2LMHeadModel", "GPT2Config", GPT2, options=NO_CACHE, known="gpt2"),
    "llama": Family("LlamaForCausalLM", "LlamaConfig", SHARED, options=NO_CACHE),
    "llama, cache": Family("LlamaForCausalLM", "LlamaConfig", SHARED, "cache"),
    "mistral": Family("MistralForCausalLM", "MistralConfig", SHARED, options=NO_CACHE),
    "qwen2, cache": Family("Qwen2ForCausalLM", "Qwen2Config", SHARED, "cache"),
    "phi3": Family("Phi3ForCausalLM", "Phi3Config", SHARED, options=NO_CACHE, known="phi"),
    "gemma": Family(
        "GemmaForCausalLM", "GemmaConfig", {**SHARED, "head_dim": WIDTH // HEADS}, options=NO_CACHE
    ),
    "vit": Family("ViTModel", "ViTConfig", IMAGE, "image", known="vit"),
    "clip": Family("CLIPVisionModel", "CLIPVisionConfig", IMAGE, "image", known="clip"),
    "t5": Family("T5EncoderModel", "T5Config", T5, known="t5"),
    "whisper encoder": Family("WhisperModel", "WhisperConfig", WHISPER, "sound", known="bart"),
}


def inputs_of(kind: str) -> tuple[tuple[torch.Tensor, ...], tuple[Any, ...], tuple[str, ...]]:
    """Inputs of a kind of model, their dynamic dimensions, their names."""
    if kind == "image":
        return (torch.rand(BATCH, 3, 64, 64),), ({0: "batch"},), ("pixel_values",)
    if kind == "sound":
        return (torch.rand(BATCH, 16, 128),), ({0: "batch"},), ("input_features",)
    past = LENGTH if kind == "cache" else 0
    steps = 1 if kind == "cache" else LENGTH
    mask = torch.ones(BATCH, steps + past, dtype=torch.int64)
    mask[0, -8:] = 0 if not past else 1
    tensors = (torch.randint(3, 999, (BATCH, steps)), mask)
    dims: tuple[Any, ...] = ({0: "batch", 1: "seq"}, {0: "batch", 1: "total" if past else "seq"})
    if past:
        cache = [torch.randn(BATCH, 2, past, WIDTH // HEADS) for _ in range(2 * LAYERS)]
        tensors = (*tensors, *cache)
        dims = (*dims, *[{0: "batch", 2: "past"}] * (2 * LAYERS))
    return tensors, dims, ("input_ids", "attention_mask")


def export(family: Family, opset: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model before any optimization, its inputs."""
    torch.manual_seed(0)
    config = getattr(transformers, family.config)(**family.values, attn_implementation="eager")
    model = getattr(transformers, family.cls)(config).eval()
    model = model.encoder if family.kind == "sound" else model
    tensors, dims, names = inputs_of(family.kind)
    if family.kind == "cache":
        wrapped: torch.nn.Module = Cached(model)
        ids, mask = torch.cat([tensors[0]] * 3, 1), torch.cat([tensors[1], tensors[1][:, :2]], 1)
        exported = (ids, mask, *tensors[2:])  # a sequence of one element would be a constant
    else:
        wrapped, exported = Named(model, names, dict(family.options)), tensors
    proto = to_onnx(
        wrapped.eval(),
        exported,
        dynamic_shapes=(dims,),
        target_opset=opset,
        options=OptimizationOptions(patterns=None),
    )
    feeds = {i.name: t.numpy() for i, t in zip(proto.graph.input, tensors, strict=False)}
    return proto, feeds


def ours(proto: onnx.ModelProto, family: Family, folder: Path) -> onnx.ModelProto:
    """This project, the set for onnxruntime."""
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
    return builder.to_onnx()


def onnxruntime_tool(
    proto: onnx.ModelProto, family: Family, folder: Path
) -> onnx.ModelProto | None:
    """The tool of onnxruntime for transformers, None if it does not know the family."""
    from onnxruntime.transformers.optimizer import optimize_model

    if not family.known:
        return None
    path = folder / "model.onnx"
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.producer_name = "pytorch"  # it looks at no other model
    onnx.save(copy, path)
    made = optimize_model(
        str(path), model_type=family.known, num_heads=HEADS, hidden_size=WIDTH, opt_level=0
    )
    return made.model


def onnxscript_tool(proto: onnx.ModelProto, family: Family, folder: Path) -> onnx.ModelProto:
    """The optimizer of onnxscript and its fusions for onnxruntime."""
    import onnx_ir
    from onnxscript.optimizer import optimize
    from onnxscript.rewriter.ort_fusions import optimize_for_ort

    model = onnx_ir.from_proto(proto)
    made = optimize_for_ort(optimize(model) or model)
    return onnx_ir.to_proto(made[0] if isinstance(made, tuple) else made)


TOOLS: dict[str, Callable[..., onnx.ModelProto | None]] = {
    "ours": ours,
    "onnxruntime": onnxruntime_tool,
    "onnxscript": onnxscript_tool,
}


def count(proto: onnx.ModelProto) -> tuple[int, int]:
    """Attentions, nodes; Constant apart."""
    types = collections.Counter(n.op_type for n in proto.graph.node)
    return sum(types[a] for a in ATTENTIONS), sum(types.values()) - types["Constant"]


def error(
    proto: onnx.ModelProto, feeds: dict[str, np.ndarray], expected: list[np.ndarray]
) -> float:
    """Largest error relative to the largest value of an output; onnxruntime changes nothing."""
    got = open_session(proto.SerializeToString(), []).run(None, feeds)
    pairs = list(zip(expected, got, strict=True))
    return max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-6)) for a, b in pairs)


def row_of(name: str, family: Family, opset: int, blocks: int, folder: Path) -> dict[str, Any]:
    """The row of a family."""
    proto, feeds = export(family, opset)
    expected = open_session(proto.SerializeToString(), []).run(None, feeds)
    row: dict[str, Any] = {"family": name, "opset": opset, "nodes": count(proto)[1]}
    first = fast_session(proto.SerializeToString(), 1)
    for tool, optimize in TOOLS.items():
        try:
            made = optimize(proto, family, folder)
            if made is None:
                continue
            gap = error(made, feeds, expected)
            second = fast_session(made.SerializeToString(), 1)
            found = compare_sessions(first, second, feeds, blocks, 0.05)
        except Exception as e:  # another tool may fail in any way
            row[f"{tool} latency"] = type(e).__name__
            continue
        attentions, nodes = count(made)
        row[f"{tool} attention"] = f"{attentions}/{LAYERS}"
        row.update({f"{tool} nodes": nodes, f"{tool} error": f"{gap:.0e}"})
        row[f"{tool} latency"] = round(found.ratio, 2)
        row["microseconds"] = round(found.before * 1e6)
    return row


def rows_of(names: list[str], opsets: list[int], blocks: int) -> Iterator[dict[str, Any]]:
    """One row for each family and opset."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for opset in opsets:
                print(f"{name}, opset {opset}", flush=True)
                yield row_of(name, FAMILIES[name], opset, blocks, Path(folder))


def main() -> None:
    """Prints the table, writes it if it is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--opsets", type=int, nargs="+", default=[18, 23])
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    table = pandas.DataFrame(rows_of(arguments.families, arguments.opsets, arguments.blocks))
    table["onnxruntime"], table["features"] = onnxruntime.__version__, processor_features()
    print(table.drop(columns=["onnxruntime", "features"]).to_string(index=False, na_rep=""))
    ratios = [r for r in table["ours latency"] if isinstance(r, float)]
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    print(f"geometric mean of our latencies: {mean:.2f}")
    if arguments.write:
        table.to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
