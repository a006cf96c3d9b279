"""
Arguments of the tiny models that need others
=============================================

How to call the families of transformers whose arguments are not those of their kind, for a batch
and a length. ``tiny_models.py`` reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .tiny_sizes import WIDTH, WORDS

Arguments = Callable[[int, int], dict[str, Any]]
TEXT = {0: "batch", 1: "seq"}
BATCH = {0: "batch"}
FILM = {0: "batch", 1: "frames"}
#: the token a picture replaces, how many of them
PLACE, PLACES = 90, 4


def words(batch: int, length: int) -> torch.Tensor:
    """Random tokens, none of them special."""
    return torch.randint(3, WORDS // 2, (batch, length))


def boxes(batch: int, length: int) -> torch.Tensor:
    """A box for each token, in a page of 100 units."""
    corner = torch.randint(0, 50, (batch, length, 2))
    return torch.cat([corner, corner + torch.randint(1, 50, (batch, length, 2))], 2)


def _pages(batch: int, length: int) -> dict[str, torch.Tensor]:
    """Tokens with their boxes in a page of 1, and tokens for a decoder."""
    return {
        "input_ids": words(batch, length),
        "attention_mask": torch.ones(batch, length).long(),
        "bbox": boxes(batch, length) / 100,
        "decoder_input_ids": words(batch, length),
    }


def _series(batch: int, length: int) -> dict[str, torch.Tensor]:
    """The past of a series with its features, and those of its future."""
    return {
        "past_values": torch.randn(batch, 11),
        "past_time_features": torch.randn(batch, 11, 2),
        "past_observed_mask": torch.ones(batch, 11),
        "future_values": torch.randn(batch, 4),
        "future_time_features": torch.randn(batch, 4, 2),
    }


def _sentence_and_image(name: str) -> Arguments:
    """A picture, and tokens under some name."""
    return lambda b, n: {"pixel_values": torch.randn(b, 3, 32, 32), name: words(b, n)}


def _trajectory(batch: int, length: int) -> dict[str, torch.Tensor]:
    """States, actions and rewards."""
    return {
        "states": torch.randn(batch, length, 17),
        "actions": torch.randn(batch, length, 4),
        "rewards": torch.randn(batch, length, 1),
        "returns_to_go": torch.randn(batch, length, 1),
        "timesteps": torch.arange(length).expand(batch, length).clone(),
        "attention_mask": torch.ones(batch, length),
    }


def _images(*sizes: int) -> Arguments:
    """Pictures, or several for each element of a batch."""
    return lambda b, n: {"pixel_values": torch.randn(b, *sizes)}


def _captioned(*sizes: int, name: str = "pixel_values") -> Arguments:
    """Pictures or videos and tokens."""
    return lambda b, n: {"input_ids": words(b, n), name: torch.randn(b, *sizes)}


def _audio(name: str, *sizes: int, mask: str = "") -> Arguments:
    """Numbers of some sizes for each element of a batch, with a mask of their first dimension."""
    return lambda b, n: {
        name: torch.randn(b, *sizes),
        **({mask: torch.ones(b, sizes[0], dtype=torch.bool)} if mask else {}),
    }


def _around(*sizes: int, **others: int) -> Arguments:
    """A picture, and tokens after those it is put in; other tokens under their names."""
    return lambda b, n: {
        "pixel_values": torch.randn(b, *sizes),
        "input_ids": torch.cat([torch.full((b, PLACES), PLACE), words(b, n)], 1),
        **{name: words(b, length) for name, length in others.items()},
    }


def _forecast(batch: int, length: int) -> dict[str, torch.Tensor]:
    """The past of a series, its padding and its frequency."""
    return {
        "past_values": torch.randn(batch, 64),
        "past_values_padding": torch.zeros(batch, 64),
        "freq": torch.zeros(batch, 1).long(),
    }


def _positions(batch: int, side: int) -> torch.Tensor:
    """The coordinates of the patches of square pictures."""
    axis = torch.arange(side)
    return (
        torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
        .reshape(1, -1, 2)
        .repeat(batch, 1, 1)
    )


def _around_film(batch: int, length: int) -> dict[str, torch.Tensor]:
    """Two frames for each element of a batch, and tokens after those they are put in."""
    given = _around(2, 3, 32, 32, qformer_input_ids=5)(batch, length)
    ids = given["input_ids"]
    return {**given, "input_ids": torch.cat([ids[:, :PLACES], ids], 1)}


def _film(batch: int, length: int) -> dict[str, torch.Tensor]:
    """As many frames as a length for each element of a batch."""
    return {"pixel_values_videos": torch.randn(batch, length, 3, 32, 32)}


def _sound(batch: int, length: int) -> dict[str, torch.Tensor]:
    """Samples of a sound of one channel."""
    return {"input_values": torch.randn(batch, 1, 4000)}


def _shared_states(batch: int, length: int) -> dict[str, Any]:
    """The states of a model, and the keys and values of its layers: an assistant reads them."""
    keys = torch.randn(batch, 2, length + 2, 8)
    states = dict.fromkeys(("full_attention", "sliding_attention"), (keys, keys + 1))
    return {
        "inputs_embeds": torch.randn(batch, 1, 2 * WIDTH),
        "position_ids": torch.full((batch, 1), length + 1),
        "shared_kv_states": states,
    }


def _classes(batch: int, length: int) -> dict[str, torch.Tensor]:
    """Pictures, the names of two classes and a task for each."""
    return {
        "pixel_values": torch.randn(batch, 3, 64, 64),
        "classes_input_ids": words(2 * batch, 5),
        "classes_attention_mask": torch.ones(2 * batch, 5).long(),
        "tasks_input_ids": words(batch, length),
        "tasks_attention_mask": torch.ones(batch, length).long(),
        "classes_structure": torch.full((batch,), 2),
    }


def _recurrent_step(batch: int, length: int) -> dict[str, Any]:
    """The next two tokens, and the states of two layers after those before."""
    return {
        "input_ids": words(batch, 2),
        "state": [torch.rand(batch, WIDTH, 2) + (i == 3) for i in range(5)],
    }


def _spectrogram(*sizes: int) -> Arguments:
    return lambda b, n: {"input_values": torch.randn(b, *sizes)}


#: family -> its arguments, and their dynamic dimensions
CALLS: dict[str, tuple[Arguments, dict[str, dict[int, str]]]] = {
    "audio-spectrogram-transformer": (_spectrogram(64, 16), {"input_values": BATCH}),
    "autoformer": (_series, {}),
    "blip": (_sentence_and_image("input_ids"), {"input_ids": TEXT}),
    "blip_2_qformer": (
        lambda b, n: {
            "query_embeds": torch.randn(b, n, WIDTH),
            "encoder_hidden_states": torch.randn(b, 6, WIDTH),
        },
        {"query_embeds": TEXT},
    ),
    "blip-2": (_around(3, 32, 32), {"input_ids": TEXT}),
    "bros": (
        lambda b, n: {"input_ids": words(b, n), "bbox": torch.rand(b, n, 8)},
        {"input_ids": TEXT, "bbox": TEXT},
    ),
    "clap": (_captioned(1, 256, 16, name="input_features"), {"input_ids": TEXT}),
    "clvp": (_captioned(80, 20, name="input_features"), {"input_ids": TEXT}),
    "depth_pro": (_images(3, 128, 128), {"pixel_values": BATCH}),
    "edgetam": (_images(3, 64, 64), {"pixel_values": BATCH}),
    "edgetam_vision_model": (_images(3, 64, 64), {"pixel_values": BATCH}),
    "efficientloftr": (_images(2, 3, 64, 64), {"pixel_values": BATCH}),
    "embedding_gemma2": (lambda b, n: {"input_ids": words(b, n)}, {"input_ids": TEXT}),
    "fun_asr_nano_encoder": (
        _audio("input_features", 24, 112, mask="input_features_mask"),
        {"input_features": BATCH},
    ),
    "gemma3n_audio": (_audio("audio_mel", 64, 16, mask="audio_mel_mask"), {"audio_mel": BATCH}),
    "gemma3n_vision": (_images(3, 64, 64), {"pixel_values": BATCH}),
    "gemma4_assistant": (_shared_states, {"inputs_embeds": TEXT, "position_ids": TEXT}),
    "gemma4_unified_assistant": (_shared_states, {"inputs_embeds": TEXT, "position_ids": TEXT}),
    "gemma4_audio": (
        _audio("input_features", 64, 128, mask="attention_mask"),
        {"input_features": BATCH},
    ),
    "gemma4_vision": (
        lambda b, n: {
            "pixel_values": torch.rand(b, 36, 3 * 8 * 8),
            "pixel_position_ids": _positions(b, 6),
        },
        {"pixel_values": BATCH, "pixel_position_ids": BATCH},
    ),
    "granite_docling_vision": (_images(3, 32, 32), {"pixel_values": BATCH}),
    "granite_speech5_encoder": (_audio("input_features", 64, 64), {"input_features": BATCH}),
    "grounding-dino": (_captioned(3, 64, 64), {"input_ids": TEXT}),
    "idefics": (
        lambda b, n: {
            "input_ids": words(b, n),
            "pixel_values": torch.randn(b, 1, 3, 32, 32),
            "image_attention_mask": torch.ones(b, n, 1).long(),
        },
        {"input_ids": TEXT, "image_attention_mask": TEXT},
    ),
    "idefics3_vision": (_images(3, 32, 32), {"pixel_values": BATCH}),
    "layoutlmv3": (
        lambda b, n: {
            "input_ids": words(b, n),
            "bbox": boxes(b, n),
            "pixel_values": torch.randn(b, 3, 32, 32),
        },
        {"input_ids": TEXT, "bbox": TEXT},
    ),
    "lightglue": (_images(2, 3, 64, 64), {"pixel_values": BATCH}),
    "glm_image": (lambda b, n: {"input_ids": words(b, n)}, {"input_ids": TEXT}),
    "omdet-turbo": (_classes, {"tasks_input_ids": TEXT, "tasks_attention_mask": TEXT}),
    "pe_audio_video": (
        lambda b, n: {"input_ids": words(b, n), **_sound(b, n), **_film(b, n)},
        {"input_ids": TEXT, "pixel_values_videos": FILM},
    ),
    "pe_audio_video_encoder": (
        lambda b, n: {**_sound(b, n), **_film(b, n)},
        {"pixel_values_videos": FILM},
    ),
    "pe_video": (
        lambda b, n: {"input_ids": words(b, 6), **_film(b, n)},
        {"input_ids": TEXT, "pixel_values_videos": FILM},
    ),
    "pe_video_encoder": (_film, {"pixel_values_videos": FILM}),
    "perception_lm": (
        lambda b, n: {
            "pixel_values": torch.randn(b, 1, 3, 32, 32),
            "input_ids": torch.cat([torch.full((b, 16), PLACE), words(b, n)], 1),
        },
        {"input_ids": TEXT, "pixel_values": BATCH},
    ),
    "mimi_decoder": (
        lambda b, n: {"latents": torch.randn(b, WIDTH, n)},
        {"latents": {0: "batch", 2: "frames"}},
    ),
    "mm-grounding-dino": (_captioned(3, 64, 64), {"input_ids": TEXT}),
    "nemotron3_5_transcribe_word_timestamp": (
        lambda b, n: {"inputs_embeds": torch.randn(b, n, WIDTH)},
        {"inputs_embeds": TEXT},
    ),
    "muse_glimmer_assistant": (
        lambda b, n: {
            "noise_embeds": torch.randn(b, n, WIDTH),
            "context_hidden_states": torch.randn(b, 6, 4 * WIDTH),
            "attention_mask": torch.ones(b, 6 + n).long(),
        },
        {"noise_embeds": TEXT, "attention_mask": {0: "batch", 1: "6+seq"}},
    ),
    "neucodec": (
        lambda b, n: {
            "input_values": torch.randn(b, 1, 3200),
            "input_features": torch.randn(b, 10, 160),
        },
        {"input_values": BATCH, "input_features": BATCH},
    ),
    "paligemma": (
        lambda b, n: {
            "input_ids": words(b, n),
            "token_type_ids": (torch.arange(n) > 2).long().repeat(b, 1),
        },
        {"input_ids": TEXT, "token_type_ids": TEXT},
    ),
    "patchtsmixer": (lambda b, n: {"past_values": torch.randn(b, 32, 1)}, {"past_values": BATCH}),
    "pe_audio": (
        lambda b, n: {"input_ids": words(b, n), "input_values": torch.randn(b, 1, 4000)},
        {"input_ids": TEXT},
    ),
    "pi0": (
        lambda b, n: {
            "state": torch.randn(b, WIDTH),
            "noise": torch.randn(b, 8, WIDTH),
            "timestep": torch.rand(b),
            "input_ids": torch.cat([torch.full((b, 16), PLACE), words(b, n)], 1),
            "pixel_values": torch.randn(b, 1, 3, 32, 32),
            "pixel_attention_mask": torch.ones(b, 1, dtype=torch.bool),
        },
        {"input_ids": TEXT},
    ),
    "pixtral": (
        lambda b, n: {"pixel_values": torch.randn(2, 3, 32, 8 * n)},
        {"pixel_values": {3: "width"}},
    ),
    "pocket_tts_audio_tokenizer_decoder": (
        lambda b, n: {"latents": torch.randn(b, WIDTH, n)},
        {"latents": {0: "batch", 2: "frames"}},
    ),
    "pp_formulanet": (_sentence_and_image("decoder_input_ids"), {"decoder_input_ids": TEXT}),
    "pp_ocrv5_mobile_rec": (_images(3, 96, 96), {"pixel_values": BATCH}),
    "pp_ocrv5_server_rec": (_images(3, 48, 64), {"pixel_values": BATCH}),
    "pp_ocrv6_small_rec": (_images(3, 48, 64), {"pixel_values": BATCH}),
    "pp_ocrv6_tiny_rec": (_images(3, 48, 64), {"pixel_values": BATCH}),
    "recurrent_gemma": (lambda b, n: {"input_ids": words(b, 8)}, {"input_ids": BATCH}),
    "reformer": (
        lambda b, n: {"input_ids": words(2, n), "attention_mask": torch.ones(2, n).long()},
        {"input_ids": {1: "seq"}, "attention_mask": {1: "seq"}},
    ),
    "rwkv": (_recurrent_step, {"input_ids": BATCH}),
    "sam2": (_images(3, 64, 64), {"pixel_values": BATCH}),
    "sam2_hiera_det_model": (_images(3, 64, 64), {"pixel_values": BATCH}),
    "sam2_vision_model": (_images(3, 64, 64), {"pixel_values": BATCH}),
    "sam3": (_captioned(3, 32, 32), {"input_ids": TEXT}),
    "sam3_lite_text": (_captioned(3, 32, 32), {"input_ids": TEXT}),
    "sam3_lite_text_text_model": (lambda b, n: {"input_ids": words(b, n)}, {"input_ids": TEXT}),
    "seggpt": (
        lambda b, n: {
            "pixel_values": torch.randn(b, 3, 32, 32),
            "prompt_pixel_values": torch.randn(b, 3, 32, 32),
            "prompt_masks": torch.randn(b, 3, 32, 32),
        },
        {},
    ),
    "smolvlm_vision": (_images(3, 32, 32), {"pixel_values": BATCH}),
    "t5gemma2_encoder": (lambda b, n: {"input_ids": words(b, n)}, {"input_ids": TEXT}),
    "timesfm": (_forecast, {}),
    "timesfm2_5": (lambda b, n: {"past_values": torch.randn(b, 64)}, {"past_values": BATCH}),
    "tvp": (lambda b, n: _captioned(2, 3, 128, 128)(1, n), {"input_ids": {1: "seq"}}),
    "univnet": (
        lambda b, n: {
            "input_features": torch.randn(b, 4 * n, 16),
            "noise_sequence": torch.randn(b, 4 * n, 64),
        },
        dict.fromkeys(("input_features", "noise_sequence"), FILM),
    ),
    "uvdoc": (_images(3, 128, 128), {"pixel_values": BATCH}),
    "vibevoice_acoustic_tokenizer_decoder": (
        lambda b, n: {"hidden_states": torch.randn(b, WIDTH, n)},
        {"hidden_states": {0: "batch", 2: "frames"}},
    ),
    "vibevoice_acoustic_tokenizer_encoder": (
        lambda b, n: {"hidden_states": torch.randn(b, 1, 40 * n)},
        {"hidden_states": {0: "batch", 2: "samples"}},
    ),
    "videoprism": (
        _captioned(2, 3, 32, 32, name="pixel_values_videos"),
        {"input_ids": TEXT},
    ),
    "voxtral_realtime_encoder": (
        lambda b, n: {"input_features": torch.randn(b, 16, 64)},
        {"input_features": BATCH},
    ),
    "voxtral_realtime_text": (
        lambda b, n: {"input_ids": words(b, n), "t_cond": torch.randn(1, 1, WIDTH)},
        {"input_ids": TEXT},
    ),
    "xcodec2": (
        lambda b, n: {
            "input_values": torch.randn(b, 1, 3200),
            "input_features": torch.randn(b, 10, 160),
        },
        {"input_values": BATCH, "input_features": BATCH},
    ),
    "decision_transformer": (_trajectory, {}),
    "diffusion_gemma": (
        lambda b, n: {"input_ids": words(b, n), "decoder_input_ids": words(b, 8)},
        {"input_ids": TEXT, "decoder_input_ids": BATCH},
    ),
    "dia": (
        lambda b, n: {
            "input_ids": words(b, n + 2),
            "decoder_input_ids": torch.randint(3, WORDS // 2, (b, n, 9)),
        },
        {"input_ids": {0: "batch", 1: "encoded"}, "decoder_input_ids": TEXT},
    ),
    "granite_speech5_ctc": (
        lambda b, n: {"input_features": torch.randn(b, 64, 64)},
        {"input_features": BATCH},
    ),
    "informer": (_series, {}),
    "instructblipvideo": (_around_film, {"input_ids": TEXT}),
    "instructblip": (_around(3, 32, 32, qformer_input_ids=5), {"input_ids": TEXT}),
    "kosmos-2": (
        lambda b, n: {
            "pixel_values": torch.randn(b, 3, 32, 32),
            "input_ids": words(b, n + 8),
            "image_embeds_position_mask": (torch.arange(n + 8) < 8).expand(b, n + 8).clone(),
        },
        {"input_ids": TEXT, "image_embeds_position_mask": TEXT},
    ),
    "kyutai_speech_to_text": (
        lambda b, n: {"input_ids": torch.randint(3, 19, (b, n, 3))},
        {"input_ids": TEXT},
    ),
    "lilt": (
        lambda b, n: {"input_ids": words(b, n), "bbox": boxes(b, n)},
        {"input_ids": TEXT, "bbox": TEXT},
    ),
    "lxmert": (
        lambda b, n: {
            "input_ids": words(b, n),
            "visual_feats": torch.randn(b, 6, 2048),
            "visual_pos": torch.rand(b, 6, 4),
        },
        {"input_ids": TEXT},
    ),
    "oneformer": (
        lambda b, n: {"pixel_values": torch.randn(b, 3, 64, 64), "task_inputs": words(b, 77)},
        {},
    ),
    "patchtst": (lambda b, n: {"past_values": torch.randn(b, 32, 1)}, {"past_values": BATCH}),
    "pix2struct": (
        lambda b, n: {
            "flattened_patches": torch.randn(b, 6, 2 + 3 * 8 * 8).abs(),
            "decoder_input_ids": words(b, n),
        },
        {"decoder_input_ids": TEXT},
    ),
    "time_series_transformer": (_series, {}),
    "udop": (
        _pages,
        dict.fromkeys(("input_ids", "attention_mask", "bbox", "decoder_input_ids"), TEXT),
    ),
    "vision-encoder-decoder": (
        _sentence_and_image("decoder_input_ids"),
        {"decoder_input_ids": TEXT},
    ),
    "vit_mae": (
        lambda b, n: {"pixel_values": torch.randn(b, 3, 32, 32), "noise": torch.rand(b, 16)},
        {"pixel_values": BATCH, "noise": BATCH},
    ),
    "voxtral_realtime": (
        lambda b, n: {
            "input_ids": words(b, n),
            "input_features": torch.randn(b, 16, 8 * n),
            "num_delay_tokens": torch.tensor(2),
        },
        {"input_ids": TEXT},
    ),
}
