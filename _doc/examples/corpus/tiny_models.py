"""
Tiny models of every family of transformers
===========================================

A configuration of every ``model_type`` of the installed transformers, made small: one layer of each
sort, a width of 32, random weights, nothing is downloaded. ``bench_transformers.py`` exports them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from .tiny_inputs import CALLS, words
from .tiny_sizes import BASES, CONTRASTS, HEADS, OWN, SIZES, WORDS
from .tiny_towers import patches_in_a_row, pictures_of_any_size, sounds_in_windows

#: the number of layers of a configuration
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "sep_token_id",
          "cls_token_id", "mask_token_id", "unk_token_id", "sos_token_id", "image_token_id",
          "video_token_id", "audio_token_id", "image_token_index",
          "forced_eos_token_id")  # fmt: skip
#: what reads a spectrogram time after time, before a decoder
TIME_FIRST = ("canary", "cohere_asr", "speech_to_text", "nemotron3_5_asr",
              "nemotron_asr_streaming", "parakeet_rnnt", "parakeet_tdt")  # fmt: skip
#: what reads a sound with a dimension for its channels
WITH_CHANNEL = ("dac", "encodec", "higgs_audio_v2_tokenizer", "mimi", "mimi_encoder",
                "omniasr_audio", "omniasr_ctc", "pe_audio_encoder", "pocket_tts_audio_tokenizer",
                "pocket_tts_audio_tokenizer_encoder", "vibevoice_acoustic_tokenizer",
                "wavtokenizer", "wavtokenizer_encoder", "xcodec")  # fmt: skip
#: what reads a whole number of frames of 960 samples, as its feature extractor gives
WITH_FRAMES = ("xcodec",)
#: what gives no mask by itself while it is exported
MASKED = ("longt5", "switch_transformers")
#: kind of models -> the tables of transformers that say which class exports them, the first wins
KINDS = (
    ("encoder-decoder", ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ")),
    ("encoder", ("MASKED_LM",)),
    ("causal", ("CAUSAL_LM",)),
    ("vision", ("IMAGE_CLASSIFICATION", "IMAGE", "SEMANTIC_SEGMENTATION", "OBJECT_DETECTION",
                "DEPTH_ESTIMATION", "UNIVERSAL_SEGMENTATION", "VIDEO_CLASSIFICATION")),
    ("audio", ("CTC", "AUDIO_CLASSIFICATION")),
    ("encoder", ("TEXT_ENCODING",)),
    ("text and image", ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM")),
    ("other", (None,)),
)  # fmt: skip


@dataclass(slots=True)
class TinyModel:
    """A model and how to call it.

    :param model: the model
    :param inputs: makes arguments of a batch and a length
    :param dims: dynamic dimensions of each argument
    """

    model: torch.nn.Module
    inputs: Any
    dims: dict[str, Any] = field(default_factory=dict)


def families() -> dict[str, tuple[str, str]]:
    """``model_type -> (kind, class)`` for all those of transformers that have a model."""
    found: dict[str, tuple[str, str]] = {}
    for kind, tables in KINDS:
        for table in tables:
            name = "MODEL_MAPPING_NAMES" if table is None else f"MODEL_FOR_{table}_MAPPING_NAMES"
            for family, cls in getattr(modeling_auto, name).items():
                if family in CONFIG_MAPPING_NAMES:
                    found.setdefault(family, (kind, cls if isinstance(cls, str) else cls[0]))
    return found


def tiny_values(config: Any) -> dict[str, Any]:
    """The values that make a configuration small, for its constructor.

    :param config: the configuration as it is by default
    """
    values: dict[str, Any] = {}
    renamed = getattr(config, "attribute_map", {})
    for name, value in _fields(config):
        if isinstance(value, transformers.PreTrainedConfig):
            values[name] = {**_tiny_part(value), "model_type": value.model_type}
        elif name in SIZES and isinstance(value, int) and not isinstance(value, bool):
            values[name] = SIZES[name]
        elif renamed and name in renamed.values():
            other = next((k for k, v in renamed.items() if v == name and k in SIZES), None)
            if other is not None and isinstance(value, int):
                values[name] = SIZES[other]
        elif isinstance(value, dict) and "mrope_section" in value:
            values[name] = _tiny_rope(value)
        elif name in TOKENS and isinstance(value, int) and value >= WORDS:
            values[name] = WORDS - 1 - TOKENS.index(name)
    if values.get("first_k_dense_replace"):
        values.update({n: 2 for n in DEPTHS if n in values})
    values.update(_layers(config, values))
    if "kv_lora_rank" in dict(_fields(config)) and "num_key_value_heads" in values:
        values["num_key_value_heads"] = HEADS  # every head has keys of its own
    return values


def _tiny_part(config: Any) -> dict[str, Any]:
    """The values that make a part of a configuration small, and those that are not the usual ones;
    a backbone keeps its number of results, from layers that exist."""
    values = merged(config.to_diff_dict(), tiny_values(config))
    stages = getattr(config, "out_features", None)
    if stages and "num_hidden_layers" in values and not hasattr(config, "depths"):
        values["num_hidden_layers"] = len(stages)
        stages = [f"stage{i + 1}" for i in range(len(stages))]
    for name in ("out_indices", "per_layer_config", "transformers_version"):
        values.pop(name, None)
    return {**values, "out_features": stages} if stages else values


def _tiny_rope(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Positions of several axes, for the width of a head here."""
    half = int(SIZES["head_dim"] * parameters.get("partial_rotary_factor", 1)) // 2
    return {**parameters, "mrope_section": [half - 2 * (half // 3), half // 3, half // 3]}


def _layers(config: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The lists that say what each layer is, cut to a few layers of every sort."""
    count = next((n for n in (getattr(config, d, None) for d in DEPTHS) if n is not None), 0)
    lists = {
        name: value
        for name, value in _fields(config)
        if isinstance(value, list) and len(value) == count and "layer" in name
    }
    if not lists or not count:
        return {}
    sorts = list(zip(*lists.values(), strict=True))
    kept = sorted({repr(sort): i for i, sort in reversed(list(enumerate(sorts)))}.values())[:4]
    depth = {n: len(kept) for n in DEPTHS if n in values}
    return {**depth, **{name: [value[i] for i in kept] for name, value in lists.items()}}


def _fields(config: Any) -> Iterator[tuple[str, Any]]:
    return iter([(k, v) for k, v in vars(config).items() if not k.startswith("_")])


def tiny_config(family: str) -> Any:
    """A small configuration of a family.

    :param family: its ``model_type``
    """
    cls, own = CONFIG_MAPPING[family], OWN.get(family, {})
    return cls(**merged(tiny_values(cls(**BASES.get(family, {}))), own))


def merged(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Values, those of configurations inside as well, replaced by others.

    :param values: values by name
    :param others: those that replace them
    """
    found = dict(values)
    for name, value in others.items():
        inner = found.get(name)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        found[name] = merged(inner, value) if both else value
    return found


def tiny_model(family: str) -> TinyModel:
    """A small model of a family with random weights, and how to call it.

    :param family: its ``model_type``
    """
    torch.manual_seed(0)
    kind, name = families()[family]
    config = tiny_config(family)
    cls = getattr(transformers, name, None) or _unlisted(config, name)
    model = cls(_part_for(cls, config)).eval().requires_grad_(False)
    _without_constants(model)
    for weight in model.parameters():
        if weight.ndim == 4 and family in CONTRASTS:
            weight *= CONTRASTS[family]
    return TinyModel(model, *_call(model, kind, config))


def _unlisted(config: Any, name: str) -> Any:
    """A class that transformers names in its tables only, from the module of its family."""
    module = type(config).__module__.replace("configuration_", "modeling_")
    return getattr(importlib.import_module(module), name)


def _without_constants(model: torch.nn.Module) -> None:
    """Changes weights whose values are all the same: experts with equal scores have no order."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.numel() > 1 and (weight == weight.flatten()[0]).all():
                weight += 0.1 * torch.randn_like(weight)


def _part_for(cls: type, config: Any) -> Any:
    """The part of a configuration a class is made for, that of the text for example."""
    expected = cls.config_class
    parts = [config, *(v for _, v in _fields(config) if isinstance(v, expected))]
    return next((c for c in parts if isinstance(c, expected)), config)


def _call(model: torch.nn.Module, kind: str, config: Any) -> tuple[Any, dict[str, Any]]:
    """How a model of a kind is called: arguments for a batch and a length, dynamic dimensions."""
    if config.model_type in CALLS:
        return CALLS[config.model_type]
    first = getattr(model, "main_input_name", "input_ids")
    parameters = inspect.signature(model.forward).parameters
    text = {0: "batch", 1: "seq"}

    if kind == "other" and {"grid_thw", "image_grid_thw"} & set(parameters):
        return pictures_of_any_size(model, config, parameters)
    if kind == "other" and "target_sizes" in parameters:
        return patches_in_a_row(model)
    if config.model_type == "qwen3_asr_encoder":
        return sounds_in_windows(model, 200)
    is_video = "pixel_values_videos" in parameters and "input_ids" not in parameters
    if first == "pixel_values" or is_video:
        return _images(config, parameters)
    if kind == "other" and {"input_ids", "pixel_values"} <= set(parameters):
        images, dims = _images(config, parameters)
        return (
            lambda b, n: {"input_ids": words(b, n), **images(b, n)},
            {"input_ids": text, **dims},
        )
    if first == "input_values" or (first == "inputs" and "input_values" in parameters):
        return _sounds(config, parameters, words)
    if first == "input_features":
        return _features(model, config, parameters)
    if kind == "encoder-decoder" and "decoder_input_ids" in parameters:
        return _pairs(words, config.model_type in MASKED)
    if kind == "encoder" and "attention_mask" in parameters:
        return (
            lambda b, n: {"input_ids": words(b, n), "attention_mask": torch.ones(b, n).long()},
            {"input_ids": text, "attention_mask": text},
        )
    if config.model_type.startswith("musicgen"):  # as many rows as codebooks for each music
        rows = config.get_text_config(decoder=True).num_codebooks
        return lambda b, n: {"input_ids": words(rows * b, n)}, {"input_ids": {1: "seq"}}
    return lambda b, n: {"input_ids": words(b, n)}, {"input_ids": text}


def _pairs(words: Any, masked: bool) -> tuple[Any, dict[str, Any]]:
    """Words for an encoder and for a decoder, and their masks."""
    lengths = {"input_ids": 2, "decoder_input_ids": 0}
    masks = {"attention_mask": 2, "decoder_attention_mask": 0} if masked else {}
    dims = {
        n: {0: "batch", 1: "encoded" if more else "seq"} for n, more in (lengths | masks).items()
    }
    return (
        lambda b, n: {
            **{name: words(b, n + more) for name, more in lengths.items()},
            **{name: torch.ones(b, n + more).long() for name, more in masks.items()},
        },
        dims,
    )


def _sounds(config: Any, parameters: Any, words: Any) -> tuple[Any, dict[str, Any]]:
    """Samples of a sound, and words if a decoder reads some."""
    channels = (1,) if config.model_type in WITH_CHANNEL else ()
    decoded = ["decoder_input_ids"] if "decoder_input_ids" in parameters else []
    first, more = (0, 960) if config.model_type in WITH_FRAMES else (1600, 400)
    return (
        lambda b, n: {
            "input_values": torch.randn(b, *channels, first + more * n),
            **{name: words(b, n) for name in decoded},
        },
        {
            "input_values": {0: "batch", 1 + len(channels): "samples"},
            **{name: {0: "batch", 1: "seq"} for name in decoded},
        },
    )


def _images(config: Any, parameters: Any) -> tuple[Any, dict[str, Any]]:
    """Pictures or videos, a batch of any size."""
    inner = getattr(config, "vision_config", config)
    size = getattr(inner, "image_size", None) or 32
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = getattr(inner, "num_channels", 3)
    frames = getattr(inner, "num_frames", getattr(inner, "frames_per_clip", None))
    name = "pixel_values" if "pixel_values" in parameters else "pixel_values_videos"
    if config.model_type in ("siglip2", "siglip2_vision_model"):
        return _patches(inner)
    is_video = frames is not None or config.model_type == "videomt"
    shape = (*([frames or 2] if is_video else []), channels, height, width)
    return lambda b, n: {name: torch.randn(b, *shape)}, {name: {0: "batch"}}


def _patches(config: Any) -> tuple[Any, dict[str, Any]]:
    """Pictures cut into patches, their mask and their sizes."""
    side = int(config.num_patches**0.5)
    width = config.num_channels * config.patch_size**2
    return (
        lambda b, n: {
            "pixel_values": torch.randn(b, side * side, width),
            "pixel_attention_mask": torch.ones(b, side * side).long(),
            "spatial_shapes": torch.tensor([[side, side]] * b),
        },
        {n: {0: "batch"} for n in ("pixel_values", "pixel_attention_mask", "spatial_shapes")},
    )


def _features(model: torch.nn.Module, config: Any, parameters: Any) -> tuple[Any, dict[str, Any]]:
    """Spectrograms and their mask, and words if a decoder reads some; a first convolution over time
    reads the bins of a spectrogram first."""
    names = ("num_mel_bins", "feat_extract_dim", "input_feat_per_channel",
             "feature_projection_input_dim")  # fmt: skip
    parts = (config, getattr(config, "encoder_config", None))
    bins = next((getattr(part, n) for part in parts for n in names if hasattr(part, n)), 16)
    length = 2 * getattr(config, "max_source_positions", 32)
    decoded = ["decoder_input_ids"] if "decoder_input_ids" in parameters else []
    masks = ["input_features_mask"] if "input_features_mask" in parameters else []
    bins_first = decoded and config.model_type not in TIME_FIRST
    if bins_first or isinstance(getattr(model, "conv1", None), torch.nn.Conv1d):
        sizes = (bins, length)
    else:
        sizes = (length, bins)
    return (
        lambda b, n: {
            "input_features": torch.randn(b, *sizes),
            **{name: torch.ones(b, length).long() for name in masks},
            **{name: words(b, n) for name in decoded},
        },
        {
            "input_features": {0: "batch"},
            **{name: {0: "batch"} for name in masks},
            **{name: {0: "batch", 1: "seq"} for name in decoded},
        },
    )
