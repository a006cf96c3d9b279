"""Models of transformers with their published sizes, random weights and one fixed shape."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

#: the inputs of a model
Inputs = dict[str, torch.Tensor]


def tokens(length: int) -> Inputs:
    """One sentence, nothing masked."""
    ones = torch.ones(1, length, dtype=torch.int64)
    return {"input_ids": torch.randint(0, 1000, (1, length)), "attention_mask": ones}


def words(length: int) -> Inputs:
    """One sentence without its mask."""
    return {"input_ids": torch.randint(0, 1000, (1, length))}


def picture(height: int, width: int = 0) -> Inputs:
    """One picture."""
    return {"pixel_values": torch.randn(1, 3, height, width or height)}


def sound(name: str, *shape: int) -> Inputs:
    """One recording, or its features."""
    return {name: torch.randn(1, *shape)}


def answer(length: int) -> Inputs:
    """The beginning of what a decoder writes."""
    return {"decoder_input_ids": torch.randint(0, 1000, (1, length))}


def _detr() -> dict[str, Any]:
    backbone = transformers.ResNetConfig(out_features=["stage4"])
    return {"use_timm_backbone": False, "backbone_config": backbone}


_SMALL_DEBERTA = {
    "num_hidden_layers": 6,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_attention_heads": 12,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "vocab_size": 128100,
}
_SMALL_BART = {
    "d_model": 768,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
    "encoder_attention_heads": 12,
    "decoder_attention_heads": 12,
    "use_cache": False,
}
_SMOLLM2 = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
    "use_cache": False,
}
_MAMBA = {"num_hidden_layers": 24, "tie_word_embeddings": True, "use_cache": False}
_ALBERT = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
_TINY_YOLOS = {
    "hidden_size": 192,
    "num_attention_heads": 3,
    "intermediate_size": 768,
    "image_size": [512, 864],
}
_EFFICIENTNET_B0 = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}

#: name -> class, sizes that are not those of its configuration by default, inputs
SIZES: dict[str, tuple[str, Callable[[], dict[str, Any]] | dict[str, Any], Inputs]] = {
    "albert-base": ("AlbertModel", _ALBERT, tokens(128)),
    "bart-base": ("BartModel", _SMALL_BART, {**words(64), **answer(16)}),
    "bert-base": ("BertModel", {}, tokens(128)),
    "clip-vit-base": ("CLIPModel", {}, {**tokens(16), **picture(224)}),
    "convnext-tiny": ("ConvNextModel", {}, picture(224)),
    "deberta-v3-small": ("DebertaV2Model", _SMALL_DEBERTA, tokens(128)),
    "depth-anything-small": ("DepthAnythingForDepthEstimation", {}, picture(518)),
    "detr-resnet50": ("DetrForObjectDetection", _detr, picture(512)),
    "dinov2-base": ("Dinov2Model", {}, picture(224)),
    "efficientnet-b0": ("EfficientNetForImageClassification", _EFFICIENTNET_B0, picture(224)),
    "gpt2": ("GPT2LMHeadModel", {"use_cache": False}, words(64)),
    "hubert-base": ("HubertModel", {}, sound("input_values", 16000)),
    "levit-128s": ("LevitForImageClassification", {}, picture(224)),
    "mamba-130m": ("MambaForCausalLM", _MAMBA, words(32)),
    "mobilenet-v2": ("MobileNetV2ForImageClassification", {}, picture(224)),
    "mobilevit-small": ("MobileViTForImageClassification", {}, picture(256)),
    "regnet-y-040": ("RegNetForImageClassification", {}, picture(224)),
    "resnet50": ("ResNetForImageClassification", {}, picture(224)),
    "segformer-b0": ("SegformerForSemanticSegmentation", {}, picture(512)),
    "siglip-base": ("SiglipVisionModel", {}, picture(224)),
    "smollm2-135m": ("LlamaForCausalLM", _SMOLLM2, words(64)),
    "swin-tiny": ("SwinModel", {}, picture(224)),
    "t5-small": ("T5EncoderModel", {}, tokens(128)),
    "vit-base": ("ViTModel", {}, picture(224)),
    "wav2vec2-base": ("Wav2Vec2Model", {}, sound("input_values", 16000)),
    "whisper-tiny": (
        "WhisperModel",
        {"use_cache": False},
        {**sound("input_features", 80, 3000), **answer(16)},
    ),
    "yolos-tiny": ("YolosForObjectDetection", _TINY_YOLOS, picture(512, 864)),
}


def build(name: str) -> tuple[torch.nn.Module, Inputs]:
    """A model in evaluation mode, and its inputs.

    :param name: one of :data:`SIZES`
    """
    torch.manual_seed(0)
    class_name, sizes, inputs = SIZES[name]
    cls: Any = getattr(transformers, class_name)
    config = cls.config_class(**(sizes() if callable(sizes) else sizes))
    return cls(config).eval(), inputs


def export(folder: Path) -> list[Path]:
    """Exports the models that were not yet with ``torch.onnx.export``, each in its own process.

    :param folder: gets them, about 6 GB together
    :return: the models; one that torch does not export is left out, and its error is printed
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in SIZES:
        path = folder / f"{name}.onnx"
        if not path.exists():
            command = [sys.executable, __file__, name, str(path)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"{name} is not exported:", done.stderr[-2000:])
    return sorted(folder.glob("*.onnx"), key=lambda path: path.stat().st_size)


if __name__ == "__main__":
    model, arguments = build(sys.argv[1])
    program = torch.onnx.export(model, (), kwargs=arguments, dynamo=True, verbose=False)
    assert program is not None
    program.save(sys.argv[2])
