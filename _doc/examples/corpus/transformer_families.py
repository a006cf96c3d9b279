"""
Families of transformers
========================

Small models of the families of transformers, with random weights, and how three exporters write
them: :func:`torch_interpreter.to_onnx` (ours), ``torch.onnx.export`` (dynamo, script). Nothing is
downloaded. ``bench_families.py`` measures them.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import transformers

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions

LAYERS, HEADS, WIDTH, BATCH, LENGTH = 2, 4, 256, 2, 64
#: number of elements of what an encoder gives to a decoder
ENCODED = 48
SIZES = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TEXT = {**SIZES, "vocab_size": 999, "max_position_embeddings": 1024}
SHARED = {**TEXT, **TOKENS, "num_key_value_heads": 2}
IMAGE = {**SIZES, "image_size": 64, "patch_size": 8}
GPT2 = {"vocab_size": 999, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 1024,
        "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
T5 = {"vocab_size": 999, "d_model": WIDTH, "d_kv": WIDTH // HEADS, "d_ff": 2 * WIDTH,
      "num_layers": LAYERS, "num_heads": HEADS}  # fmt: skip
BOTH = {**TOKENS, "d_model": WIDTH, "encoder_layers": LAYERS, "encoder_attention_heads": HEADS,
        "encoder_ffn_dim": 2 * WIDTH, "decoder_layers": LAYERS, "decoder_attention_heads": HEADS,
        "decoder_ffn_dim": 2 * WIDTH}  # fmt: skip
WHISPER = {**BOTH, "num_mel_bins": 16, "max_source_positions": 64, "max_target_positions": 1024,
           "vocab_size": 999, "decoder_start_token_id": 1}  # fmt: skip
BART = {**BOTH, "vocab_size": 999, "max_position_embeddings": 1024, "decoder_start_token_id": 2}
SWIN = {"image_size": 64, "patch_size": 4, "embed_dim": 64, "depths": [2, 2], "num_heads": [2, 4],
        "window_size": 4}  # fmt: skip
SEGFORMER = {"depths": [1, 1, 1, 1], "hidden_sizes": [32, 64, 128, 256],
             "num_attention_heads": [1, 2, 4, 8], "decoder_hidden_size": 64}  # fmt: skip
RESNET = {"embedding_size": 16, "hidden_sizes": [32, 64, 128, 128], "depths": [1, 1, 1, 1],
          "out_features": ["stage4"]}  # fmt: skip


class Named(torch.nn.Module):
    """A model called with named inputs; a result is kept."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...], options: dict[str, Any]):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.names, args, strict=True))
        return self.model(**named, **self.options, return_dict=True)[0]


def filled_cache(past: tuple[torch.Tensor, ...]) -> Any:
    """A cache that holds keys and values, layer after layer."""
    cache = transformers.DynamicCache()
    for i in range(LAYERS):
        cache.update(past[2 * i], past[2 * i + 1], i)
    return cache


def tensors_of(cache: Any) -> tuple[torch.Tensor, ...]:
    """Keys and values, layer after layer."""
    return tuple(t for layer in cache.layers for t in (layer.keys, layer.values))


class Cached(torch.nn.Module):
    """A step of a decoder: keys and values of the steps before are inputs, the next ones are
    outputs."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *args: torch.Tensor) -> Any:
        ids, mask, *past = args
        cache = filled_cache(tuple(past))
        out = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (out.logits, *tensors_of(out.past_key_values))


class CrossCached(torch.nn.Module):
    """A step of a decoder that reads an encoder, whose keys and values are inputs as well."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *args: torch.Tensor) -> Any:
        ids, encoded, *past = args
        middle = len(past) // 2
        cache = transformers.EncoderDecoderCache(
            filled_cache(tuple(past[:middle])), filled_cache(tuple(past[middle:]))
        )
        out = self.model(
            input_ids=ids, encoder_hidden_states=encoded, past_key_values=cache, use_cache=True
        )
        return (out[0], *tensors_of(out.past_key_values.self_attention_cache))


@dataclass(frozen=True)
class Family:
    """How to make the model of a family.

    :param cls: class of transformers
    :param config: class of its configuration
    :param values: the configuration
    :param kind: what its inputs are, see `KINDS`
    :param expected: number of attentions
    :param options: other arguments of the call
    :param known: how `onnxruntime.transformers.optimizer` calls the family
    :param part: the attribute that is exported, the whole model if it is empty
    """

    cls: str
    config: str
    values: dict[str, Any]
    kind: str = "text"
    expected: int = LAYERS
    options: tuple[tuple[str, Any], ...] = ()
    known: str = ""
    part: str = ""


NO_CACHE = (("use_cache", False),)
GEMMA = {**SHARED, "head_dim": WIDTH // HEADS}
FAMILIES = {
    "bert": Family("BertModel", "BertConfig", TEXT, known="bert"),
    "gpt2": Family("GPT2LMHeadModel", "GPT2Config", GPT2, options=NO_CACHE, known="gpt2"),
    "gpt2, cache": Family("GPT2LMHeadModel", "GPT2Config", GPT2, "full cache", known="gpt2"),
    "llama": Family("LlamaForCausalLM", "LlamaConfig", SHARED, options=NO_CACHE),
    "llama, cache": Family("LlamaForCausalLM", "LlamaConfig", SHARED, "cache"),
    "mistral": Family("MistralForCausalLM", "MistralConfig", SHARED, options=NO_CACHE),
    "mistral, cache": Family("MistralForCausalLM", "MistralConfig", SHARED, "cache"),
    "qwen2": Family("Qwen2ForCausalLM", "Qwen2Config", SHARED, options=NO_CACHE),
    "qwen2, cache": Family("Qwen2ForCausalLM", "Qwen2Config", SHARED, "cache"),
    "phi3": Family("Phi3ForCausalLM", "Phi3Config", SHARED, options=NO_CACHE, known="phi"),
    "phi3, cache": Family("Phi3ForCausalLM", "Phi3Config", SHARED, "cache", known="phi"),
    "gemma": Family("GemmaForCausalLM", "GemmaConfig", GEMMA, options=NO_CACHE),
    "gemma, cache": Family("GemmaForCausalLM", "GemmaConfig", GEMMA, "cache"),
    "vit": Family("ViTModel", "ViTConfig", IMAGE, "image", known="vit"),
    "clip": Family("CLIPVisionModel", "CLIPVisionConfig", IMAGE, "image", known="clip"),
    "clip text": Family("CLIPTextModel", "CLIPTextConfig", {**TEXT, **TOKENS}, known="clip"),
    "t5": Family("T5EncoderModel", "T5Config", T5, known="t5"),
    "t5 decoder": Family(
        "T5Model", "T5Config", T5, "decoder", 2 * LAYERS, NO_CACHE, "t5", "decoder"
    ),
    "t5 decoder, cache": Family(
        "T5Model", "T5Config", T5, "cross cache", 2 * LAYERS, (), "t5", "decoder"
    ),
    "bart": Family("BartModel", "BartConfig", BART, "both", 3 * LAYERS, NO_CACHE, "bart"),
    "bart decoder": Family(
        "BartModel", "BartConfig", BART, "decoder", 2 * LAYERS, NO_CACHE, "bart", "decoder"
    ),
    "bart decoder, cache": Family(
        "BartModel", "BartConfig", BART, "cross cache", 2 * LAYERS, (), "bart", "decoder"
    ),
    "whisper encoder": Family(
        "WhisperModel", "WhisperConfig", WHISPER, "sound", known="bart", part="encoder"
    ),
    "whisper decoder": Family(
        "WhisperModel", "WhisperConfig", WHISPER, "decoder", 2 * LAYERS, NO_CACHE, "bart", "decoder"
    ),
    "whisper decoder, cache": Family(
        "WhisperModel", "WhisperConfig", WHISPER, "cross cache", 2 * LAYERS, (), "bart", "decoder"
    ),
    "swin": Family("SwinModel", "SwinConfig", SWIN, "image", 4, known="swin"),
    "detr": Family("DetrModel", "DetrConfig", {}, "picture", 3 * LAYERS),
    "segformer": Family("SegformerModel", "SegformerConfig", SEGFORMER, "image", 4),
}

Inputs = tuple[tuple[torch.Tensor, ...], tuple[Any, ...], tuple[str, ...]]


def ids_of(steps: int) -> torch.Tensor:
    """Random words."""
    return torch.randint(3, 999, (BATCH, steps))


def past_of(length: int, heads: int, name: str) -> tuple[tuple[torch.Tensor, ...], tuple[Any, ...]]:
    """Keys and values of every layer, their dynamic dimensions."""
    shape = (BATCH, heads, length, WIDTH // HEADS)
    tensors = tuple(torch.randn(shape) for _ in range(2 * LAYERS))
    return tensors, ({0: "batch", 2: name},) * len(tensors)


def text_inputs(length: int) -> Inputs:
    mask = torch.ones(BATCH, length, dtype=torch.int64)
    mask[0, -8:] = 0
    dims = {0: "batch", 1: "seq"}
    return (ids_of(length), mask), (dims, dims), ("input_ids", "attention_mask")


def both_inputs(length: int) -> Inputs:
    tensors, dims, names = text_inputs(length)
    decoded = (*dims, {0: "batch", 1: "decoded"})
    return (*tensors, ids_of(ENCODED)), decoded, (*names, "decoder_input_ids")


def image_inputs(height: int = 64, width: int = 64) -> Inputs:
    return (torch.rand(BATCH, 3, height, width),), ({0: "batch"},), ("pixel_values",)


def sound_inputs() -> Inputs:
    return (torch.rand(BATCH, 16, 128),), ({0: "batch"},), ("input_features",)


def decoder_inputs(steps: int) -> Inputs:
    tensors = (ids_of(steps), torch.randn(BATCH, ENCODED, WIDTH))
    dims = ({0: "batch", 1: "seq"}, {0: "batch", 1: "encoded"})
    return tensors, dims, ("input_ids", "encoder_hidden_states")


def cache_inputs(length: int, heads: int = 2) -> Inputs:
    past, dims = past_of(length, heads, "past")
    mask = torch.ones(BATCH, length + 3, dtype=torch.int64)
    shapes = ({0: "batch", 1: "seq"}, {0: "batch", 1: "past+seq"}, *dims)
    return (ids_of(3), mask, *past), shapes, ()


def cross_cache_inputs(length: int) -> Inputs:
    tensors, dims, _ = decoder_inputs(3)
    past, lasts = past_of(length, HEADS, "past")
    cross, others = past_of(ENCODED, HEADS, "encoded")
    return (*tensors, *past, *cross), (*dims, *lasts, *others), ()


#: kind of inputs -> tensors, dynamic dimensions, names, for a number of words
KINDS: dict[str, Callable[[int], Inputs]] = {
    "text": text_inputs,
    "both": both_inputs,
    "image": lambda _: image_inputs(),
    "picture": lambda _: image_inputs(192, 256),
    "sound": lambda _: sound_inputs(),
    "decoder": decoder_inputs,
    "cache": cache_inputs,
    "full cache": lambda length: cache_inputs(length, HEADS),
    "one head cache": lambda length: cache_inputs(length, 1),
    "cross cache": cross_cache_inputs,
}


def config_of(family: Family, attention: str) -> Any:
    """The configuration of the model of a family."""
    values = dict(family.values)
    if family.config == "DetrConfig":
        values = {**BOTH, "num_queries": 20, "use_timm_backbone": False, "backbone": None,
                  "use_pretrained_backbone": False,
                  "backbone_config": transformers.ResNetConfig(**RESNET)}  # fmt: skip
        values = {k: v for k, v in values.items() if k not in TOKENS}
        implementation: Any = {"": attention, "backbone_config": "eager"}
    else:
        implementation = attention
    return getattr(transformers, family.config)(**values, attn_implementation=implementation)


def trained(model: torch.nn.Module) -> torch.nn.Module:
    """The same model, whose biases are not zeros and whose scales are not ones any more: no
    optimizer removes those of a model that is trained."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.numel() > 1 and (weight == weight.flatten()[0]).all():
                weight += 0.1 * torch.randn_like(weight)
    return model


def module_of(
    family: Family, attention: str, length: int = LENGTH
) -> tuple[torch.nn.Module, tuple, tuple]:
    """The module to export, its inputs, their dynamic dimensions."""
    torch.manual_seed(0)
    model = trained(getattr(transformers, family.cls)(config_of(family, attention)).eval())
    model = getattr(model, family.part) if family.part else model
    tensors, dims, names = KINDS[family.kind](length)
    if family.kind == "cross cache":
        return CrossCached(model).eval(), tensors, dims
    if family.kind.endswith("cache"):
        return Cached(model).eval(), tensors, dims
    return Named(model, names, dict(family.options)).eval(), tensors, dims


def with_ours(module: torch.nn.Module, tensors: tuple, dims: tuple, opset: int) -> onnx.ModelProto:
    """Exported by this project, not optimized."""
    options = OptimizationOptions(patterns=None)
    return to_onnx(module, tensors, dynamic_shapes=(dims,), target_opset=opset, options=options)


def with_dynamo(
    module: torch.nn.Module, tensors: tuple, dims: tuple, opset: int
) -> onnx.ModelProto:
    """Exported by torch.onnx.export, as it does by default."""
    program = torch.onnx.export(
        module, tensors, dynamic_shapes=(dims,), opset_version=opset, dynamo=True, verbose=False
    )
    return program.model_proto


def with_script(
    module: torch.nn.Module, tensors: tuple, dims: tuple, opset: int
) -> onnx.ModelProto:
    """Exported by torch.onnx.export(dynamo=False)."""
    names = [f"x{i}" for i in range(len(tensors))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            module, tensors, path, input_names=names, opset_version=opset, dynamo=False,
            dynamic_axes=dict(zip(names, dims, strict=True)),
        )  # fmt: skip
        return onnx.load(path)


EXPORTERS: dict[str, Callable[..., onnx.ModelProto]] = {
    "ours": with_ours,
    "dynamo": with_dynamo,
    "script": with_script,
}


def export(
    family: Family, exporter: str, attention: str, opset: int, length: int = LENGTH
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model before any optimization of ours, inputs to measure it: a number of words, or of
    words before this one."""
    module, tensors, dims = module_of(family, attention, length)
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        proto = EXPORTERS[exporter](module, tensors, dims, opset)
    if family.kind in (
        "cache",
        "full cache",
        "one head cache",
    ):  # the exported sequence is not a constant
        tensors = (tensors[0][:, :1], tensors[1][:, :-2], *tensors[2:])
    elif family.kind == "cross cache":
        tensors = (tensors[0][:, :1], *tensors[1:])
    inputs = zip(proto.graph.input, used_inputs(proto, tensors), strict=True)
    return proto, {i.name: t.numpy() for i, t in inputs}


def used_inputs(proto: onnx.ModelProto, tensors: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """The tensors an exported model reads: an exporter may drop those without use."""
    if len(proto.graph.input) == len(tensors):
        return list(tensors)
    return [tensors[int(i.name.removeprefix("x"))] for i in proto.graph.input]
