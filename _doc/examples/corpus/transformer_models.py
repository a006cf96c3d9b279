"""
Transformers with random weights
================================

Small models of real architectures, made from configurations of ``transformers``, exported with a
dynamic batch and a dynamic sequence. The other examples use them; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class FirstOutput(torch.nn.Module):
    """Keeps the first output of a model of transformers, called with named arguments."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]):
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.names, args, strict=True))
        return self.model(**named, return_dict=True)[0]


def _on_text(model: torch.nn.Module) -> tuple[torch.nn.Module, tuple, Any]:
    """A model that reads words and their mask, with its inputs and their dynamic dimensions."""
    words = torch.randint(0, model.config.vocab_size, (2, 7))
    inputs = {"input_ids": words, "attention_mask": torch.ones((2, 7), dtype=torch.int64)}
    shapes = ({0: "batch", 1: "seq"}, {0: "batch", 1: "seq"})
    return FirstOutput(model.eval(), tuple(inputs)), tuple(inputs.values()), shapes


def llama() -> tuple[torch.nn.Module, tuple, Any]:
    """A decoder without cache: grouped attention, rotary embeddings, RMS normalization."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        use_cache=False,
        attn_implementation="eager",
    )
    return _on_text(LlamaModel(config))


def bert() -> tuple[torch.nn.Module, tuple, Any]:
    """An encoder."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    return _on_text(BertModel(config))


def whisper_encoder() -> tuple[torch.nn.Module, tuple, Any]:
    """The audio encoder of whisper; its positions fix the length, the batch is dynamic."""
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        max_source_positions=20,
        max_target_positions=20,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        attn_implementation="eager",
    )
    encoder = WhisperModel(config).eval().encoder
    return FirstOutput(encoder, ("input_features",)), (torch.rand(2, 16, 40),), ({0: "batch"},)


def vit() -> tuple[torch.nn.Module, tuple, Any]:
    """A vision transformer."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        attn_implementation="eager",
    )
    return (
        FirstOutput(ViTModel(config).eval(), ("pixel_values",)),
        (torch.rand(2, 3, 32, 32),),
        ({0: "batch"},),
    )


MODELS: dict[str, Callable[[], tuple[torch.nn.Module, tuple, Any]]] = {
    "llama": llama,
    "bert": bert,
    "whisper_encoder": whisper_encoder,
    "vit": vit,
}
