"""
More families of transformers
=============================

Text, pictures and sound, small models with random weights, nothing is downloaded. The first
families are in ``transformer_families.py``, ``bench_families.py`` measures both.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from corpus.transformer_families import (
    BART,
    BATCH,
    GPT2,
    HEADS,
    IMAGE,
    KINDS,
    LAYERS,
    NO_CACHE,
    SHARED,
    TEXT,
    TOKENS,
    WIDTH,
    Family,
    Inputs,
    text_inputs,
)


def box_inputs(length: int) -> Inputs:
    """Words and their boxes in a page."""
    (ids, mask), dims, names = text_inputs(length)
    corners = torch.randint(0, 500, (BATCH, length, 2))
    boxes = torch.cat([corners, corners + torch.randint(0, 500, (BATCH, length, 2))], dim=-1)
    return (ids, boxes, mask), (dims[0], dims[0], dims[1]), (names[0], "bbox", names[1])


def wave_inputs() -> Inputs:
    return (torch.randn(BATCH, 4000),), ({0: "batch", 1: "samples"},), ("input_values",)


def series_inputs() -> Inputs:
    """Values of the past and of the future, their features."""
    tensors = (
        torch.randn(BATCH, 32),
        torch.randn(BATCH, 32, 2),
        torch.ones(BATCH, 32),
        torch.randn(BATCH, 8),
        torch.randn(BATCH, 8, 2),
    )
    names = ("past_values", "past_time_features", "past_observed_mask", "future_values",
             "future_time_features")  # fmt: skip
    return tensors, ({0: "batch"},) * len(tensors), names


MORE_KINDS: dict[str, Callable[[int], Inputs]] = {
    "boxes": box_inputs,
    "wave": lambda _: wave_inputs(),
    "series": lambda _: series_inputs(),
}
KINDS.update(MORE_KINDS)

ALONE = {**TEXT, **TOKENS}
HALF = {**SHARED, "num_key_value_heads": HEADS}
WIDE = {**SHARED, "head_dim": WIDTH // HEADS}
SHORT = {"vocab_size": 999, **TOKENS}
OPT = {**SHORT, "hidden_size": WIDTH, "ffn_dim": 2 * WIDTH, "num_hidden_layers": LAYERS,
       "num_attention_heads": HEADS, "max_position_embeddings": 1024,
       "word_embed_proj_dim": WIDTH}  # fmt: skip
BLOOM = {**SHORT, "hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
GPTJ = {**SHORT, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 1024,
        "rotary_dim": 32}  # fmt: skip
NEO = {**SHORT, "hidden_size": WIDTH, "num_layers": LAYERS, "num_heads": HEADS,
       "max_position_embeddings": 1024, "attention_types": [[["global", "local"], 1]],
       "window_size": 16}  # fmt: skip
MPT = {**SHORT, "d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS}
FALCON = {**SHORT, "alibi": False, "new_decoder_architecture": True, "num_kv_heads": 2,
          "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS}  # fmt: skip
DISTIL = {"vocab_size": 999, "dim": WIDTH, "hidden_dim": 2 * WIDTH, "n_layers": LAYERS,
          "n_heads": HEADS, "pad_token_id": 0}  # fmt: skip
MODERN = {**SHORT, **TEXT, "global_attn_every_n_layers": 2, "local_attention": 16,
          "cls_token_id": 1, "sep_token_id": 2}  # fmt: skip
MOBILE = {**TEXT, "embedding_size": 64, "intra_bottleneck_size": 128, "pad_token_id": 0}
DEBERTA = {**TEXT, "pad_token_id": 0, "relative_attention": True, "max_relative_positions": -1,
           "position_buckets": 32, "norm_rel_ebd": "layer_norm", "share_att_key": True,
           "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
           "type_vocab_size": 0}  # fmt: skip
MOE = {**SHARED, "num_local_experts": 4, "num_experts_per_tok": 2}
GEMMA3 = {**WIDE, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
SPEECH = {**SHORT, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH,
          "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "conv_dim": [32, 32, 32],
          "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 8], "num_conv_pos_embeddings": 16,
          "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3}  # fmt: skip
DATA2VEC = {**SPEECH, "conv_pos_kernel_size": 19, "num_conv_pos_embeddings": 2}
PVT = {"image_size": 64, "depths": [1, 1, 1, 1], "hidden_sizes": [32, 64, 128, 256],
       "num_attention_heads": [1, 2, 4, 8]}  # fmt: skip
SAM = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS,
       "num_attention_heads": HEADS, "image_size": 64, "patch_size": 8, "output_channels": 32,
       "window_size": 4, "global_attn_indexes": [1], "mlp_dim": 2 * WIDTH}  # fmt: skip
SERIES = {"prediction_length": 8, "context_length": 25, "num_time_features": 2, "d_model": 64,
          "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS,
          "decoder_attention_heads": HEADS, "encoder_ffn_dim": 128,
          "decoder_ffn_dim": 128}  # fmt: skip
TROCR = {**SHORT, "d_model": WIDTH, "decoder_layers": LAYERS, "decoder_ffn_dim": 2 * WIDTH,
         "decoder_attention_heads": HEADS}  # fmt: skip
XGLM = {**SHORT, "d_model": WIDTH, "num_layers": LAYERS, "attention_heads": HEADS,
        "ffn_dim": 2 * WIDTH}  # fmt: skip
GROUPS = {"image_size": 64, "patch_size": 8, "hidden_size": WIDTH, "num_attention_heads": HEADS,
          "depths": [2, 1, 1], "num_group_tokens": [8, 4, 0],
          "num_output_groups": [8, 4, 0]}  # fmt: skip
XLM = {"vocab_size": 999, "emb_dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS}
CROSS = 2 * LAYERS


def decoder(name: str, values: dict, config: str = "") -> dict[str, Family]:
    """A decoder that makes words, without and with keys and values of the steps before."""
    cls, config = f"{name}ForCausalLM", config or f"{name}Config"
    kind = "cache" if values.get("num_key_value_heads") == 2 else "full cache"
    key = name.lower()
    return {
        key: Family(cls, config, values, options=NO_CACHE),
        f"{key}, cache": Family(cls, config, values, kind),
    }


def translator(name: str, values: dict) -> dict[str, Family]:
    """An encoder and a decoder, the decoder alone with keys and values of the steps before."""
    cls, config, key = f"{name}Model", f"{name}Config", name.lower()
    return {
        key: Family(cls, config, values, "both", 3 * LAYERS, NO_CACHE),
        f"{key} decoder": Family(cls, config, values, "decoder", CROSS, NO_CACHE, part="decoder"),
        f"{key} decoder, cache": Family(cls, config, values, "cross cache", CROSS, part="decoder"),
    }


def encoder(
    name: str, values: dict, kind: str = "text", expected: int = LAYERS
) -> dict[str, Family]:
    """A model that reads."""
    return {name.lower(): Family(f"{name}Model", f"{name}Config", values, kind, expected)}


MORE = {
    **encoder("RoFormer", {**ALONE, "embedding_size": WIDTH}),
    **encoder("ModernBert", MODERN),
    **encoder("Esm", {**ALONE, "position_embedding_type": "rotary", "mask_token_id": 3,
                      "token_dropout": False}),
    **encoder("LayoutLM", ALONE, "boxes"),
    **encoder("MobileBert", MOBILE),
    **encoder("Albert", {**TEXT, "embedding_size": 64}),
    **encoder("DebertaV2", DEBERTA),
    **encoder("XLMRoberta", {**ALONE, "pad_token_id": 1}),
    **encoder("DistilBert", DISTIL),
    **encoder("Electra", {**TEXT, "embedding_size": 64}),
    **encoder("Data2VecText", {**ALONE, "pad_token_id": 1}),
    **encoder("MPNet", ALONE),
    **encoder("XLM", XLM),
    **decoder("OPT", OPT),
    "bloom": Family("BloomForCausalLM", "BloomConfig", BLOOM, options=NO_CACHE),
    "bloom, cache": Family("BloomForCausalLM", "BloomConfig", BLOOM, "full cache"),
    **decoder("GPTNeoX", {**ALONE, "rotary_pct": 0.25}),
    **decoder("GPTNeo", NEO),
    **decoder("GPTJ", GPTJ),
    **decoder("CodeGen", GPTJ),
    **decoder("Mpt", MPT),
    **decoder("XGLM", XGLM),
    "gptbigcode": Family("GPTBigCodeForCausalLM", "GPTBigCodeConfig", GPT2, options=NO_CACHE),
    "gptbigcode, cache": Family(
        "GPTBigCodeForCausalLM", "GPTBigCodeConfig", GPT2, "one head cache"
    ),
    **decoder("Falcon", FALCON),
    **decoder("Phi", HALF),
    **decoder("StableLm", SHARED),
    **decoder("Starcoder2", SHARED),
    **decoder("Olmo2", SHARED),
    **decoder("Cohere", SHARED),
    **decoder("Granite", SHARED),
    **decoder("Qwen3", WIDE),
    **decoder("Gemma2", {**WIDE, "sliding_window": 16}),
    **decoder("Gemma3", GEMMA3, "Gemma3TextConfig"),
    **decoder("SmolLM3", SHARED),
    **decoder("Mixtral", MOE),
    **decoder("GptOss", {**MOE, "head_dim": WIDTH // HEADS, "sliding_window": 16}),
    **encoder("Dinov2", IMAGE, "image"),
    **encoder("SiglipVision", IMAGE, "image"),
    **encoder("BlipVision", IMAGE, "image"),
    **encoder("Beit", {**IMAGE, "use_relative_position_bias": True}, "image"),
    **encoder("DINOv3ViT", IMAGE, "image"),
    **encoder("Pvt", PVT, "image", 4),
    **encoder("PvtV2", {**PVT, "sr_ratios": [8, 4, 2, 1]}, "image", 4),
    **encoder("SamVision", SAM, "image"),
    **encoder("GroupViTVision", GROUPS, "image", 6),
    **encoder("Hubert", SPEECH, "wave"),
    **encoder("WavLM", SPEECH, "wave"),
    **encoder("Wav2Vec2", SPEECH, "wave"),
    **encoder("Data2VecAudio", DATA2VEC, "wave"),
    **translator("Marian", BART),
    **translator("Pegasus", BART),
    **translator("MBart", BART),
    **translator("PLBart", BART),
    **translator("M2M100", BART),
    **{k: f for k, f in translator("LED", BART).items() if k != "led"},
    "trocr": Family("TrOCRForCausalLM", "TrOCRConfig", TROCR, "decoder", CROSS, NO_CACHE),
    "time series": Family(
        "TimeSeriesTransformerModel", "TimeSeriesTransformerConfig", SERIES, "series", 3 * LAYERS,
        NO_CACHE,
    ),
}  # fmt: skip
