"""
Why some families of transformers fail
======================================

What their code does, in words, for the table that ``bench_transformers.py`` writes: the error of an
exporter names a symbol of torch, not a reason.
"""

from __future__ import annotations

_LOOP = "a loop of Python on {} makes it a constant"
_TIES = "the best of equal scores are taken, in an order that torch does not define"
_GLOBAL = "it is decided from the mask, in Python, whether a token has a global attention"
_DURATIONS = "the durations it predicts are tested in Python"
_COUNTS = "a loop of Python counts what each token attends to"
_FRAME = "Python decides whether the last frame of a sound is whole, a graph keeps one of both"
_LENGTHS = "the lengths of sounds and films are compared in Python"
_SIZES = "the size of a picture is read from a tensor and decides in Python"
_STATIC, _UNDECIDED = "inferred a static shape", "data-dependent"

#: family -> a part of the error, why it happens
CAUSES = {
    "cpmant": (_STATIC, _LOOP.format("the length")),
    "deepseek_v4": ("shape", "a step closes a window of tokens or not, which Python decides"),
    "fastspeech2_conformer": (_STATIC, _LOOP.format("the batch")),
    "fastspeech2_conformer_with_hifigan": (_UNDECIDED, _DURATIONS),
    "higgs_audio_v2_tokenizer": ("only be right", _FRAME),
    "hy_v4_vl_vision": ("SymFloat", "the scales of an interpolation are read from a tensor, torch "
                        "accepts numbers"),
    "led": (_UNDECIDED, _GLOBAL),
    "lightglue": (_STATIC, _LOOP.format("the batch")),
    "pe_audio_video": (_UNDECIDED, _LENGTHS),
    "pe_audio_video_encoder": (_UNDECIDED, _LENGTHS),
    "omdet-turbo": ("unhashable", "a cache of Python has the texts as keys"),
    "perception_lm": (_STATIC, "torch.Size.numel() counts the features for a message, which makes "
                      "the batch a constant"),
    "pp_doclayout_v3": ("error", _TIES),
    "pp_doclayout_v4": ("error", _TIES),
    "qwen2_5_vl_vision": (_UNDECIDED, _SIZES),
    "qwen4_exp": (_UNDECIDED, _COUNTS),
    "qwen4_exp_text": (_UNDECIDED, _COUNTS),
    "recurrent_gemma": (_STATIC, _LOOP.format("the length")),
    "rt_detr": ("error", _TIES),
    "rt_detr_v2": ("error", _TIES),
    "rwkv": (_STATIC, _LOOP.format("the length")),
    "sam3": (_UNDECIDED, _SIZES),
    "sam3_lite_text": (_UNDECIDED, _SIZES),
    "video_llama_3_vision": (_UNDECIDED, _SIZES),
    "vilt": (_STATIC, _LOOP.format("the batch")),
    "vit_mae": ("error", "the patches that are hidden are drawn at random at each call"),
    "vits": ("shape", "the durations, so the length of the sound, are drawn at random"),
    "xcodec": ("only be right", _FRAME),
}  # fmt: skip
#: what an error says of any family -> why
KINDS = {
    "_forward_unimplemented": "the model has no forward, its parts have one each",
    "'inference_session'": "the model reads a session of Python that grows, not tensors",
}


def cause_in_words(family: str, error: str) -> str:
    """Why an export fails, followed by its error; the error alone if that is not known.

    :param family: a ``model_type``
    :param error: the error

    >>> cause_in_words("rwkv", "ValueError: inferred a static shape of 8")
    'a loop of Python on the length makes it a constant (ValueError: inferred a static shape of 8)'
    >>> cause_in_words("bark", "TypeError: _forward_unimplemented()")
    'the model has no forward, its parts have one each (TypeError: _forward_unimplemented())'
    >>> cause_in_words("rwkv", "MemoryError: ")
    'MemoryError: '
    """
    kinds = ((part, words) for part, words in KINDS.items() if part in error)
    part, words = CAUSES.get(family, next(kinds, ("", "")))
    return f"{words} ({error})" if words and part in error else error
