"""A table of positions that the model makes longer when there are more words than rows."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import op_types, run_ort

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions

#: words that the table of the model has a row for
WORDS = 16


def xglm():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.XGLMConfig(
        vocab_size=64, d_model=32, ffn_dim=64, num_layers=1, attention_heads=4,
        max_position_embeddings=WORDS, use_cache=False,
    )  # fmt: skip
    return transformers.XGLMModel(config).eval()


def exported(words, lengths):
    """The operators of XGLM, right for some numbers of words."""
    model = xglm()
    shapes = {"input_ids": {0: "batch", 1: words}}
    kwargs = {"input_ids": torch.randint(3, 60, (2, 8))}
    options = OptimizationOptions(patterns="default+onnxruntime")
    onx = to_onnx(model, (), kwargs=kwargs, dynamic_shapes=shapes, options=options)
    for length in lengths:
        ids = torch.randint(3, 60, (3, length))
        expected = xglm()(ids).last_hidden_state.detach().numpy()
        assert abs(run_ort(onx, [ids])[0] - expected).max() < 1e-5
    return op_types(onx)


def test_any_number_of_words_computes_the_table():
    found = exported("words", (1, 7, WORDS, WORDS + 1, 40))
    # the rows before the first word and the row of the padding are not written
    assert [found.count(name) for name in ("Sin", "Cos", "Slice", "Gather")] == [1, 1, 1, 1]


def test_a_maximum_reads_the_table_of_the_model():
    found = exported(torch.export.Dim("words", max=WORDS - 4), (2, 7, WORDS - 4))
    assert [found.count(name) for name in ("Sin", "Cos", "Slice", "Gather")] == [0, 0, 0, 2]
