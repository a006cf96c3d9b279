"""
Arguments of the tiny models that need others
=============================================

How to call the families of transformers whose arguments are not those of their kind, for a batch
and a length. ``tiny_models.py`` reads them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .tiny_sizes import WIDTH, WORDS

Arguments = Callable[[int, int], dict[str, torch.Tensor]]
TEXT = {0: "batch", 1: "seq"}
BATCH = {0: "batch"}


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
    "bros": (
        lambda b, n: {"input_ids": words(b, n), "bbox": torch.rand(b, n, 8)},
        {"input_ids": TEXT, "bbox": TEXT},
    ),
    "decision_transformer": (_trajectory, {}),
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
    "udop": (_pages, {"input_ids": TEXT, "bbox": TEXT, "decoder_input_ids": TEXT}),
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
