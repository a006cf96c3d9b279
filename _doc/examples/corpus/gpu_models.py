"""Transformers of a size that keeps a GPU busy, with random weights, in float32 or float16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .transformer_models import FirstOutput

#: width, layers, heads of all models
WIDTH, LAYERS, HEADS = 768, 4, 12
BOTH = {0: "batch", 1: "seq"}


def _on_words(model: torch.nn.Module) -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    words = torch.randint(0, 999, (2, 7))
    given = {"input_ids": words, "attention_mask": torch.ones((2, 7), dtype=torch.int64)}
    return FirstOutput(model, tuple(given)), given, dict.fromkeys(given, BOTH)


def bert() -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """An encoder of words."""
    from transformers import BertConfig, BertModel

    size = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    return _on_words(BertModel(BertConfig(vocab_size=1000, intermediate_size=4 * WIDTH, **size)))


def gpt2() -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """A decoder of words, without cache."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(vocab_size=1000, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS)
    config.use_cache = False
    return _on_words(GPT2Model(config))


def llama() -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """A decoder with grouped attention, rotary embeddings and RMS normalization, without cache."""
    from transformers import LlamaConfig, LlamaModel

    size = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    config = LlamaConfig(
        vocab_size=1000, intermediate_size=3 * WIDTH, num_key_value_heads=4, use_cache=False, **size
    )
    return _on_words(LlamaModel(config))


def t5_encoder() -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """An encoder with positions relative to each other."""
    from transformers import T5Config, T5EncoderModel

    size = {"d_model": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "d_ff": 4 * WIDTH}
    return _on_words(T5EncoderModel(T5Config(vocab_size=1000, **size)))


def vit() -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """An encoder of images."""
    from transformers import ViTConfig, ViTModel

    size = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    model = ViTModel(ViTConfig(intermediate_size=4 * WIDTH, **size))
    given = {"pixel_values": torch.rand(2, 3, 224, 224)}
    return FirstOutput(model, tuple(given)), given, {"pixel_values": {0: "batch"}}


def whisper_encoder() -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """An encoder of sounds."""
    from transformers import WhisperConfig, WhisperModel

    size = {"d_model": WIDTH, "encoder_layers": LAYERS, "encoder_attention_heads": HEADS}
    config = WhisperConfig(
        decoder_layers=1, encoder_ffn_dim=4 * WIDTH, max_source_positions=400, **size
    )
    given = {"input_features": torch.rand(2, 80, 800)}
    encoder = WhisperModel(config).encoder
    return FirstOutput(encoder, tuple(given)), given, {"input_features": {0: "batch"}}


MODELS: dict[str, Callable[[], tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]]] = {
    made.__name__: made for made in (bert, gpt2, llama, t5_encoder, vit, whisper_encoder)
}


def exported(name: str, dtype: torch.dtype) -> Any:
    """The ONNX model of one of them, not optimized.

    :param name: a key of `MODELS`
    :param dtype: type of its weights and of its real inputs
    """
    from torch_interpreter import to_onnx

    torch.manual_seed(0)
    model, given, shapes = MODELS[name]()
    inputs = tuple(v.to(dtype) if v.is_floating_point() else v for v in given.values())
    ready = model.eval().to(dtype)
    return to_onnx(ready, inputs, dynamic_shapes=tuple(shapes.values()), optimize=False)
