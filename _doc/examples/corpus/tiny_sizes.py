"""
Sizes of the tiny models of transformers
========================================

What makes each configuration small, and what some families need besides. ``tiny_models.py`` reads
them.
"""

from __future__ import annotations

from typing import Any

WIDTH, HEADS, LAYERS, WORDS = 32, 4, 1, 99
#: what is made small wherever a configuration has it
SIZES = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "emb_dim", "embedding_size",
         "word_embed_proj_dim", "hidden_dim", "projection_dim", "decoder_hidden_size",
         "encoder_hidden_size", "attention_hidden_size", "lru_width", "emb_size"), WIDTH),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
         "decoder_attention_heads", "attention_heads", "decoder_num_attention_heads",
         "encoder_num_attention_heads", "linear_num_value_heads", "mamba_n_heads",
         "mamba_num_heads", "lightning_nh", "lightning_nkv", "n_mamba_heads"), HEADS),
    **dict.fromkeys(
        ("num_key_value_heads", "num_kv_heads", "n_head_kv", "linear_num_key_heads",
         "decoder_num_key_value_heads", "encoder_num_key_value_heads", "mamba_n_groups",
         "multi_query_group_num"), 2),
    **dict.fromkeys(
        ("head_dim", "d_kv", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
         "attention_head_dim", "attention_head_size", "linear_key_head_dim", "mamba_head_dim",
         "linear_value_head_dim", "kv_channels", "global_head_dim", "rope_head_dim",
         "index_head_dim", "lightning_head_dim"), 8),
    "mamba_d_head": 16,
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers",
         "decoder_layers", "num_decoder_layers", "num_encoder_layers", "num_blocks",
         "decoder_num_hidden_layers", "encoder_num_hidden_layers"), LAYERS),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "d_ff", "n_inner", "encoder_ffn_dim", "d_inner",
         "decoder_ffn_dim", "moe_intermediate_size", "shared_expert_intermediate_size", "mlp_dim",
         "expert_ffn_hidden_size", "ffn_hidden_size", "moe_shared_expert_intermediate_size",
         "shared_intermediate_size", "block_ffn_dim", "decoder_intermediate_size",
         "encoder_intermediate_size", "block_dim", "block_ff_dim", "intermediate_size_mlp",
         "dense_intermediate_size", "mamba_expand_size"), 64),
    **dict.fromkeys(
        ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts",
         "num_routed_experts"), 4),
    **dict.fromkeys(
        ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "n_group", "top_k",
         "num_selected_experts"), 2),
    **dict.fromkeys(("topk_group", "first_k_dense_replace", "num_nextn_predict_layers"), 1),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "o_lora_rank"), 16),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), WORDS),
    **dict.fromkeys(("state_size", "mamba_d_state", "ssm_state_size", "mamba_state_dim"), 8),
    **dict.fromkeys(("chunk_size", "mamba_chunk_size", "block_size"), 8),
    **dict.fromkeys(("time_step_rank", "mamba_dt_rank"), 4),
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx", "seq_length",
         "max_target_positions", "max_seq_len"), 128),
    "max_source_positions": 32, "num_mel_bins": 16, "image_size": 32, "patch_size": 8,
    "sliding_window": 64, "rotary_dim": 8, "hidden_size_per_layer_input": 8, "index_topk": 16,
    "index_n_heads": 2, "mamba_expand": 2, "expand": 2, "n_groups": 1, "num_kv_shared_layers": 0,
    "attention_window": 16, "local_attention": 16, "num_codebooks": 2,
}  # fmt: skip
SWIN = {"embed_dim": 24, "depths": [1, 1], "num_heads": [2, 4], "patch_size": 4, "window_size": 4}
QUERIES = {"decoder_layers": 2, "num_queries": 8}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
MROPE = {**ROPE, "mrope_section": [2, 1, 1]}
NO_CACHE = {"use_cache": False}
SERIES = {
    "prediction_length": 4,
    "context_length": 8,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 2,
}
#: a backbone that needs no other package
CONVOLUTIONS = {
    "use_timm_backbone": False, "backbone": None, "use_pretrained_backbone": False,
    "backbone_config": {"model_type": "resnet", "embedding_size": 16, "depths": [1, 1, 1, 1],
                        "hidden_sizes": [16, 32, 32, 32], "out_features": ["stage4"]},
}  # fmt: skip
#: every head has keys of its own
ALL_KEYS = {"num_key_value_heads": HEADS}
DIARIZATION = {"head_config": {"audio_hidden_size": WIDTH}, "audio_config": ALL_KEYS}
SWIN_STAGES = {**SWIN, "depths": [1, 1, 1, 1], "num_heads": [2] * 4, "image_size": 64}
STAGES = {"num_filters": 4, "depths": [1, 1, 1], "downsampling_ratios": [2, 2]}
WAVES = {"num_hidden_layers": 2, "patch_sizes": [4, 2], "hidden_sizes": [16, WIDTH],
         "depths": [1, 1], "out_hidden_size": WIDTH}  # fmt: skip
CODES = {"codebook_dim": WIDTH, "decoder_num_layers": 1}
GROUNDING = {"num_queries": 8, "backbone_config": SWIN_STAGES}
#: the encoder and the decoder of masks of the SAM models, for a picture of 4 x 4 patches
SAM = {"vision_config": {"output_channels": WIDTH, "num_pos_feats": 16, "global_attn_indexes": [0]},
       "prompt_encoder_config": {"image_embedding_size": 4},
       "mask_decoder_config": {"iou_head_hidden_dim": WIDTH, "vit_dim": WIDTH}}  # fmt: skip
HIERA = {"blocks_per_stage": [1, 1, 2, 1], "embed_dim_per_stage": [16, 24, 32, 48],
         "num_attention_heads_per_stage": [1, 2, 2, 2], "hidden_size": 16, "image_size": [64, 64],
         "global_attention_blocks": [3], "window_size_per_stage": [8, 4, 2, 2]}  # fmt: skip
PYRAMID = {"fpn_hidden_size": WIDTH, "backbone_channel_list": [48, 32, 24, 16],
           "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]}  # fmt: skip
#: models of timm: the towers of the perception encoders, a backbone of convolutions
TOWER = {"img_size": 32, "patch_size": 8, "depth": 1, "embed_dim": WIDTH, "num_heads": HEADS,
         "ref_feat_shape": [4, 4]}  # fmt: skip
PERCEPTION = {"architecture": "vit_pe_core_tiny_patch16_384", "num_labels": WIDTH,
              "model_args": {**TOWER, "global_pool": "map"}}  # fmt: skip
FILMS = {"vision_config": PERCEPTION}
REPVIT = {"backbone_config": {"architecture": "repvit_m1", "model_args": {
              "in_chans": 3, "features_only": True, "out_indices": [0, 1, 2, 3],
              "embed_dim": [16, 24, 32, 48], "depth": [1, 1, 1, 1]}}, **PYRAMID}  # fmt: skip
#: convolutions of the detectors of text, of every shape
SQUEEZES = {
    f"{way}_{name}": [[a, b], [1, 1], [a // 2, b // 2]]
    for size, ratio in ((7, "longratio"), (5, "midratio"), (3, "shortratio"))
    for way, name, a, b in (
        ("vertical", f"long_to_small_conv_{ratio}", size, 1),
        ("horizontal", f"small_to_long_conv_{ratio}", 1, size),
        ("symmetric", f"conv_long_{ratio}", size, size),
    )
}
#: four stages of convolutions, each half as large as the one before
HALVES = {"block_configs": [[[3, 16, 16, 1, True]], [[3, 16, 24, 2, False]], [[3, 24, 32, 2, True]],
                            [[3, 32, 48, 2, False]]], "stem_channels": [3, 8, 16],
          "stage_out_channels": [16, 24, 32, 48],
          "out_features": ["stage1", "stage2", "stage3", "stage4"]}  # fmt: skip
LINES = {
    "intraclass_block_config": {
        **SQUEEZES,
        "reduce_channel": [1, 1, 0],
        "return_channel": [1, 1, 0],
    }
}
#: what a configuration needs to be made at all
BASES = {
    "gemma4_assistant": {
        "text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
    }
}
#: what a family needs more: sizes that depend on each other, or a shape of configuration of its own
OWN: dict[str, dict[str, Any]] = {
    "align": {"projection_dim": 640},
    "apertus1p5": {
        "image_token_id": 20, "audio_token_id": 21, "image_token_offset": 60,
        "audio_token_offset": 68, "audio_config": {**CODES, "codebook_size": 8},
        "vision_config": {"base_channels": WIDTH, "num_res_blocks": 1, "codebook_size": 8}},
    "bamba": {"num_hidden_layers": 2, "attn_layer_indices": [1]},
    "bailing_hybrid": {"num_key_value_heads": HEADS},
    "blt": {"patcher_config": {"num_hidden_layers": 1}, "patch_in_forward": False,
            "encoder_hash_byte_group_vocab": WORDS, "use_cache": False,
            "decoder_config": {"hidden_size_global": WIDTH},
            "encoder_config": {"hidden_size_global": WIDTH}},
    "chameleon": {"vocabulary_map": {"<image>": 90},
                  "vq_config": {"base_channels": WIDTH, "channel_multiplier": [1, 2],
                                "num_res_blocks": 1, "resolution": 32, "latent_channels": WIDTH}},
    "clap": {"audio_config": {
        "depths": [1, 1], "num_attention_heads": [2, 4], "spec_size": 64, "hidden_size": 48,
        "patch_embeds_hidden_size": 24, "patch_size": 4, "window_size": 4}},
    "clvp": {part: {"hidden_size": 128}
             for part in ("text_config", "speech_config", "decoder_config")},
    "cohere_compass_text": {"layer_types": ["full_attention"],
                            "rope_parameters": {"full_attention": ROPE}},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "deepseek_v2": {"topk_group": 1, "n_group": 1, "num_experts_per_tok": 2},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["sparse"], "num_experts_per_tok": 2}},
    "depth_pro": {
        "patch_size": 32, "intermediate_hook_ids": [1, 0], "fusion_hidden_size": WIDTH,
        "intermediate_feature_dims": [WIDTH, WIDTH],
        "scaled_images_feature_dims": [WIDTH, WIDTH, WIDTH],
        "patch_model_config": {"num_hidden_layers": 2}},
    "diffusion_gemma": {"canvas_length": 8, "text_config": {
        "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 64}},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "dots3_note": {"num_key_value_heads": HEADS, "text_config": {"num_key_value_heads": HEADS},
                   "vision_config": {"adapter_in_dim": WIDTH, "adapter_out_dim": WIDTH},
                   "audio_config": {"adapter_input_size": WIDTH, "adapter_output_size": WIDTH}},
    "dots3_note_text": {"num_key_value_heads": HEADS},
    "efficientloftr": {"stage_num_blocks": [1, 1, 1, 1], "out_features": [16, 16, WIDTH, WIDTH],
                       "num_attention_layers": 1, "num_attention_heads": 8,
                       "num_key_value_heads": 8},
    "ernie4_5_vl_moe": {"text_config": {"rope_parameters": {**ROPE, "mrope_section": [1, 1, 2]},
                                        "moe_intermediate_size": [64, 64]}},
    "esm": {"vocab_size": WORDS, "mask_token_id": 3, "pad_token_id": 1},
    "esmc": {"num_key_value_heads": HEADS},
    "falcon_h1": {"mamba_d_ssm": 64},
    "fastspeech2_conformer_with_hifigan": {"vocoder_config": {
        "model_in_dim": 16, "upsample_initial_channel": WIDTH}},
    "fun_asr_nano": {"adaptor_config": {"intermediate_size": WIDTH // 4}},
    "gemma4_assistant": {"backbone_hidden_size": WIDTH, "text_config": {"global_head_dim": 8,
        "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}},
    "gemma4_unified_assistant": {"backbone_hidden_size": WIDTH,
                                 "text_config": {"global_head_dim": 8}},
    "gemma3n_audio": {"conf_num_attention_heads": HEADS, "conf_num_hidden_layers": 1,
                      "input_feat_size": 16},
    "glm_image": {"text_config": {"rope_parameters": MROPE}},
    "glm_image_text": {"rope_parameters": MROPE},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "granite_docling_vision": {"deepstack_visual_indexes": [0], "out_hidden_size": WIDTH},
    "granite_speech5_ctc": {"encoder_config": {"num_key_value_heads": HEADS}},
    "granite_speech5_encoder": {"num_key_value_heads": HEADS},
    "grounding-dino": GROUNDING,
    "mm-grounding-dino": GROUNDING,
    "granitemoehybrid": {"num_hidden_layers": 2,
                         "layer_types": ["linear_attention", "full_attention"]},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8, "num_experts": 2, "moe_topk": 1},
    "jamba": {"num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
              "expert_layer_period": 2, "expert_layer_offset": 1},
    "kimi_linear": {"num_key_value_heads": HEADS},
    "kyutai_speech_to_text": {"audio_pad_token_id": 90, "codebook_vocab_size": 20,
                              "codec_config": {"upsample_groups": 8}},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4, "input_size": 32},
    "lfm2_moe": {"num_hidden_layers": 2, "num_dense_layers": 1,
                 "layer_types": ["conv", "full_attention"]},
    "longcat_flash": {"num_key_value_heads": HEADS},
    "mamba2": {"head_dim": 16},
    "ministral": {"head_dim": 8},
    "moonshine": {"encoder_num_key_value_heads": HEADS, "decoder_num_key_value_heads": HEADS},
    "moonshine_streaming": {"num_key_value_heads": HEADS,
                            "encoder_config": {"num_key_value_heads": HEADS,
                                               "sliding_windows": [[16, 4]]}},
    "nemotron": {"num_key_value_heads": 2},
    "nemo_speechlm": {"audio_config": {"asr_config": ALL_KEYS, "diarization_config": DIARIZATION},
                      "audio_token_id": WORDS - 1,
                      "word_timestamp_config": {"blank_token_id": WORDS - 1, **ALL_KEYS}},
    "edgetam": {"vision_config": REPVIT,
                "prompt_encoder_config": {"image_size": 64, "patch_size": 16}},
    "edgetam_vision_model": REPVIT,
    "gemma3n_vision": {"model_args": {"channel_multiplier": 0.05}},
    "granite4_vision": {
        "downsample_rate": "2/4", "deepstack_layer_map": [[-1, 0]], "image_token_id": 90,
        "spatial_target_layers": [1, 2, 3, 4], "image_grid_pinpoints": [[32, 32]],
        "vision_config": {"hidden_size": 64}, "qformer_config": {"hidden_size": 64}},
    "lightglue": {"num_hidden_layers": 2, "depth_confidence": -1.0, "width_confidence": -1.0},
    "pe_audio_video": {"audio_video_config": {"video_config": FILMS}},
    "pe_audio_video_encoder": {"video_config": FILMS},
    "pe_video": {"video_config": FILMS},
    "pe_video_encoder": FILMS,
    "perception_lm": {"image_token_id": 90, "video_token_id": 91, "vision_config": {
        "architecture": "vit_pe_lang_large_patch14_448",
        "model_args": {**TOWER, "global_pool": ""}}},
    "pp_ocrv5_server_det": {**LINES, "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]},
    "pp_ocrv6_small_det": {"layer_list_out_channels": [16, 24, 32, 48], "backbone_config": HALVES},
    "pp_ocrv6_medium_det": {**LINES, "backbone_config": HALVES,
                            "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]},
    "higgs_audio_v2_tokenizer": {"acoustic_model_config": {
        "downsampling_ratios": [8, 5, 4, 2, 3], "upsampling_ratios": [8, 5, 4, 2, 3]}},
    "omdet-turbo": {
        "backbone_config": {"model_type": "swin", **SWIN_STAGES, "out_indices": [2, 3, 4]},
        "apply_layernorm_after_vision_backbone": False,
        "encoder_in_channels": [48, 96, 192], "vision_features_channels": [WIDTH] * 3,
        "encoder_hidden_dim": WIDTH, "decoder_hidden_dim": WIDTH, "decoder_num_layers": 1,
        "num_queries": 8, "text_config": {"projection_dim": 64, "hidden_size": 64},
        "text_projection_in_dim": 64, "text_projection_out_dim": 64, "class_embed_dim": 64},
    "kosmos-2": {"latent_query_num": 8},
    "lilt": {"hidden_size": 48},
    "mask2former": {"backbone_config": {**SWIN, "depths": [1, 1, 1, 1], "num_heads": [2] * 4,
                                        "image_size": 64}},
    "maskformer": {"backbone_config": {**SWIN, "depths": [1, 1, 1, 1], "num_heads": [2] * 4,
                                       "image_size": 64}},
    "neomme": {"rope_parameters": {"full_attention": {**ROPE, "partial_rotary_factor": 0.5}}},
    "qwen4_exp_text": {"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8,
                       "indexer_budget": 16, "indexer_compress_ratio": 2},
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {"is_decoder": False, "axial_pos_shape": (8, 16), "axial_pos_embds_dim": (8, 24),
                 "attn_layers": ["local", "lsh"], "num_hashes": 1, "feed_forward_size": 64},
    "rf_detr": {"num_queries": 8},
    "rt_detr": QUERIES,
    "rt_detr_v2": QUERIES,
    "cpmant": {"use_cache": False},
    "d_fine": QUERIES,
    "deimv2": QUERIES,
    "pp_doclayout_v3": QUERIES,
    "pp_doclayout_v4": QUERIES,
    "roc_bert": {"pronunciation_vocab_size": WORDS, "shape_vocab_size": WORDS},
    "swin": SWIN,
    "donut-swin": SWIN,
    "swinv2": SWIN,
    "convnext": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "convnextv2": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320},
    "levit": {"patch_size": 16, "image_size": 64},
    "mobilevitv2": {"patch_size": 2, "image_size": 64},
    "depth_anything": {"reassemble_hidden_size": WIDTH},
    "prompt_depth_anything": {"reassemble_hidden_size": WIDTH},
    "glm4v_text": {"rope_parameters": {**ROPE, "mrope_section": [2, 1, 1]}},
    "glm4v_moe_text": {"rope_parameters": {**ROPE, "partial_rotary_factor": 0.5,
                                           "mrope_section": [2, 0, 0]}},
    "detr": CONVOLUTIONS,
    "conditional_detr": CONVOLUTIONS,
    "dab-detr": CONVOLUTIONS,
    "deformable_detr": {**CONVOLUTIONS, "num_feature_levels": 1},
    "table-transformer": CONVOLUTIONS,
    "shieldgemma2": {"yes_token_index": 5, "no_token_index": 7},
    "siglip2": {"vision_config": {"num_patches": 16}},
    "swin2sr": {**SWIN, "num_heads": [2, 2], "patch_size": 1},
    "wav2vec2-bert": {"vocab_size": WORDS},
    "wav2vec2-conformer": {"vocab_size": WORDS},
    "rwkv": {"num_hidden_layers": 2},
    "xlstm": {"hidden_size": 128, "num_hidden_layers": 1, "num_blocks": 1},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"num_hidden_layers": 3,
              "layers_block_type": ["linear_attention", "hybrid", "hybrid"],
              "attention_head_dim": 16, "attention_hidden_size": 64},
    "zamba2": {"num_hidden_layers": 2, "layers_block_type": ["linear_attention", "hybrid"],
               "attention_head_dim": 16, "attention_hidden_size": 64},
    "audio-spectrogram-transformer": {"max_length": 64, "frequency_stride": 8, "time_stride": 8},
    "autoformer": {**SERIES, "label_length": 4},
    "bros": {"hidden_size": 64},
    "bridgetower": {"hidden_size": 64, "num_attention_heads": HEADS,
                    "vision_config": {"hidden_size": 64}, "text_config": {"hidden_size": 64}},
    "cohere_compass": {"text_config": {"layer_types": ["full_attention"],
                                       "rope_parameters": {"full_attention": ROPE}}},
    "csm": {"codec_config": {"upsample_groups": 8}},
    "decision_transformer": {"hidden_size": WIDTH},
    "dia": {"decoder_config": {"cross_hidden_size": WIDTH}},
    "dory": {"num_hidden_layers": 4, "n_input_layers": 1, "n_output_layers": 1,
             "n_recurrent_layers": 2, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "gemma3n": {"text_config": {"intermediate_size": 64,
                                "activation_sparsity_pattern": [0.95, 0.0]}},
    "glm46v": {"text_config": {"rope_parameters": MROPE}},
    "glm4v": {"text_config": {"rope_parameters": MROPE}},
    "glm4v_moe": {"text_config": {"rope_parameters": {
        **ROPE, "partial_rotary_factor": 0.5, "mrope_section": [2, 0, 0]}}},
    "glm5_next": {"text_config": {"qk_rope_head_dim": 0}},
    "glm5_next_text": {"qk_rope_head_dim": 0},
    "glm_ocr": {"text_config": {"rope_parameters": MROPE}},
    "glm_ocr_text": {"rope_parameters": MROPE},
    "glmga": {"text_config": {"rope_parameters": MROPE}},
    "gradium_phonon_tts": {"flow_head_config": {"condition_dim": WIDTH}},
    "granite_docling": {"vision_config": {"out_hidden_size": WIDTH}},
    "blip-2": {"image_token_index": 90, "num_query_tokens": 4},
    "instructblip": {"image_token_index": 90, "num_query_tokens": 4},
    "instructblipvideo": {"video_token_index": 90, "num_query_tokens": 4},
    "hunyuan_vl": {"text_config": {"head_dim": 8, "rope_parameters": MROPE}},
    "hunyuan_vl_text": {"head_dim": 8, "rope_parameters": MROPE},
    "informer": SERIES,
    "inkling2": {"vision_config": {"text_hidden_size": WIDTH}},
    "inkling2_loop": {"vision_config": {"text_hidden_size": WIDTH}},
    "lw_detr": {"projector_scale_factors": [1.0], "decoder_self_attention_heads": HEADS,
                "decoder_cross_attention_heads": HEADS, "group_detr": 1,
                "backbone_config": {"num_windows": 4, "num_windows_side": 2}, **QUERIES},
    "maskformer-swin": SWIN,
    "mimi": {"upsample_groups": 8, "num_quantizers": 4},
    "mimi_decoder": {"upsample_groups": 8},
    "minicpm_ocr_vision": {"insert_layer_id": 0},
    "minicpmv4_7_vision": {"insert_layer_id": 0},
    "mistral4": {"num_key_value_heads": HEADS, "rope_parameters": {
        **ROPE, "partial_rotary_factor": 1.0, "llama_4_scaling_beta": 0.1,
        "original_max_position_embeddings": 64}},
    "molmo2": {"adapter_config": {"vision_feature_layer": [-1]}},
    "muse_spark": {"audio_config": WAVES},
    "muse_spark_audio": WAVES,
    "musicgen": {"decoder": NO_CACHE},
    "musicgen_melody": {"decoder": NO_CACHE},
    "neucodec": {"quantization_dim": 64, "num_key_value_heads": HEADS},
    "nemotron3_5_transcribe_asr_audio": ALL_KEYS,
    "nemotron3_5_transcribe_audio": {"asr_config": ALL_KEYS, "diarization_config": DIARIZATION},
    "nemotron3_5_transcribe_word_timestamp": {"blank_token_id": WORDS - 1, **ALL_KEYS},
    "nemotron3_diarization": DIARIZATION,
    "nemotron3_diarization_audio": ALL_KEYS,
    "paddleocr_vl": {"text_config": {"rope_parameters": MROPE}},
    "patchtsmixer": {"context_length": 32, "patch_length": 4, "patch_stride": 4},
    "pi0": {"vlm_config": {"image_token_index": 90}},
    "pocket_tts": {"flow_head_config": {"condition_dim": WIDTH}},
    "pocket_tts_audio_tokenizer": {"upsample_groups": 8},
    "pocket_tts_audio_tokenizer_decoder": {"upsample_groups": 8},
    "patchtst": {"context_length": 32, "patch_length": 4, "patch_stride": 4},
    "pix2struct": {"vision_config": {"patch_embed_hidden_size": 3 * 8 * 8}},
    "oneformer": {"decoder_layers": 3,
                  "backbone_config": {**SWIN, "depths": [1, 1, 1, 1], "num_heads": [2] * 4,
                                      "image_size": 64}},
    "qwen2_5_omni_thinker": {"text_config": {"rope_parameters": MROPE}},
    "qwen3_omni_moe": {"talker_config": {
        "spatial_merge_size": 2, "text_config": {"shared_expert_intermediate_size": 64}}},
    "qwen2_vl_text": {"rope_parameters": MROPE},
    "qwen2_5_vl": {"text_config": {"rope_parameters": MROPE}},
    "qwen2_5_vl_text": {"rope_parameters": MROPE},
    "qwen2_vl": {"text_config": {"rope_parameters": MROPE}},
    "qwen4_exp": {"text_config": {
        "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8, "indexer_budget": 16,
        "indexer_compress_ratio": 2}},
    "sam": SAM,
    "sam2": {"vision_config": {"backbone_config": HIERA, **PYRAMID},
             "prompt_encoder_config": {"image_size": 64, "patch_size": 16}},
    "sam2_hiera_det_model": HIERA,
    "sam2_vision_model": {"backbone_config": HIERA, **PYRAMID},
    "sam3": {"vision_config": PYRAMID},
    "sam3_lite_text": {"vision_config": PYRAMID},
    "sam3_tracker": {"vision_config": PYRAMID},
    "sam_hq": SAM,
    "sapiens2": {"num_key_value_attention_heads": HEADS, "num_key_value_heads_per_layer": [4, 4],
                 "head_config": {"upsample_out_channels": [WIDTH], "conv_out_channels": [WIDTH]}},
    "pp_doclayout_v2": {**QUERIES, "class_thresholds": [0.5] * 25, "class_order": [0] * 25},
    "seggpt": {"image_size": [64, 32], "intermediate_hidden_state_indices": [0, 1, 2, 3],
               "num_hidden_layers": 4, "merge_index": 0, "pretrain_image_size": 32},
    "siglip2_vision_model": {"num_patches": 16},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "timesfm": {"context_length": 64, "patch_length": 8, "horizon_length": 16},
    "timesfm2_5": {"context_length": 64, "patch_length": 8, "horizon_length": 16,
                   "num_key_value_heads": HEADS},
    "timm_backbone": {"backbone": "resnet18", "use_pretrained_backbone": False},
    "uvdoc": {"backbone_config": {"out_features": [f"stage{i}" for i in range(1, 7)]}},
    "tvp": {"max_img_size": 128, "visual_prompt_size": 8, "num_frames": 2, "backbone_config": {
        "embedding_size": 16, "depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 32, WIDTH]}},
    "vibevoice_acoustic_tokenizer": {**STAGES, "vae_std": 0.0},
    "vibevoice_acoustic_tokenizer_decoder": STAGES,
    "vibevoice_acoustic_tokenizer_encoder": STAGES,
    "videoprism": {"vision_config": {"tubelet_size": [1, 8, 8], "num_frames": 2,
                                     "num_spatial_layers": 1, "num_temporal_layers": 1,
                                     "num_auxiliary_layers": 1}},
    "vision-text-dual-encoder": {"vision_config": {"pooler_output_size": WIDTH}},
    "wavtokenizer": CODES,
    "wavtokenizer_encoder": CODES,
    "xcodec2": {"quantization_dim": 64, "num_key_value_heads": HEADS},
    "xclip": {"prompt_num_attention_heads": HEADS, "vision_config": {
        "mit_hidden_size": WIDTH, "mit_intermediate_size": 64, "mit_num_attention_heads": HEADS}},
    "step3p7": {"text_config": {"sliding_window": 64}},
    "time_series_transformer": SERIES,
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip
#: families that choose between pixels, which a tiny model does not tell apart: what multiplies the
#: weights of their convolutions
CONTRASTS = {
    "rt_detr": 3, "rt_detr_v2": 3, "pp_doclayout_v2": 9, "pp_doclayout_v3": 9, "pp_doclayout_v4": 9,
}  # fmt: skip
