"""The backend of transformers.exporters: parts of a model, run by onnxruntime, token by token."""

from __future__ import annotations

import inspect
from typing import Any

import onnx_ir
import pytest
import torch

from torch_interpreter import to_onnx
from xbuilder.errors import OptionError

transformers = pytest.importorskip("transformers")
pytest.importorskip("transformers.exporters", reason="transformers 5.24 has exporters")

from transformers.exporters import AutoHfExporter, ExportedModel  # noqa: E402

from torch_interpreter.transformers_backend import (  # noqa: E402
    XoptimConfig,
    XoptimExporter,
    automatic_shapes,
    registered_caches,
    with_padding,
)

VOCABULARY, STEPS = 60, 20
DECODER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
}
ENCODER_DECODER = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": VOCABULARY,
}
TOKENS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", DECODER),
    "Qwen2": ("Qwen2ForCausalLM", DECODER),
    "Qwen3": ("Qwen3ForCausalLM", {**DECODER, "head_dim": 8}),
    "Mistral": ("MistralForCausalLM", {**DECODER, "sliding_window": 4}),
    "Mamba2": (
        "Mamba2ForCausalLM",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 4,
            "head_dim": 16,
            "n_groups": 2,
            "chunk_size": 4,
            "vocab_size": VOCABULARY,
        },
    ),
    "GPT2": (
        "GPT2LMHeadModel",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY},
    ),
    "T5": (
        "T5ForConditionalGeneration",
        {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "vocab_size": VOCABULARY,
            "decoder_start_token_id": 0,
        },
    ),
    "Bart": (
        "BartForConditionalGeneration",
        {**ENCODER_DECODER, "decoder_start_token_id": 2, "forced_eos_token_id": None},
    ),
    "Whisper": (
        "WhisperForConditionalGeneration",
        {
            **ENCODER_DECODER,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "decoder_start_token_id": 2,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
    ),
}


@pytest.fixture(scope="module", autouse=True)
def registrations():
    """The other tests find the registrations of to_onnx, or none."""
    pytree = torch.utils._pytree
    before = dict(pytree.SUPPORTED_NODES)
    yield
    for cls in set(pytree.SUPPORTED_NODES) - set(before):
        pytree._deregister_pytree_node(cls)
    for cls, node in before.items():
        if pytree.SUPPORTED_NODES[cls] is not node:
            pytree._deregister_pytree_node(cls)


def make_model(name: str) -> torch.nn.Module:
    """A tiny model whose answers are not always the same token."""
    torch.manual_seed(0)
    cls, options = MODELS[name]
    config = getattr(transformers, f"{name}Config")(**options, **TOKENS)
    model = getattr(transformers, cls)(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(4)
    return model


def make_inputs(name: str, batch: int) -> dict[str, torch.Tensor]:
    """Prompts of different lengths, padded on the left, or sounds."""
    torch.manual_seed(batch)
    if name == "Whisper":
        return {"input_features": torch.randn(batch, 16, 40)}
    ids = torch.randint(3, VOCABULARY, (batch, 6))
    mask = torch.ones_like(ids)
    mask[0, :2] = 0
    return {"input_ids": ids, "attention_mask": mask}


def generate(model: Any, exported: ExportedModel | None, inputs: dict[str, Any]) -> torch.Tensor:
    """The tokens of a model, computed by the parts that were exported if there are some."""
    calls = []

    def forward(**kwargs: Any) -> Any:
        runner = exported.runners["decode" if calls else "prefill"]
        calls.append(runner)
        return runner(**{k: v for k, v in kwargs.items() if k in runner.metadata.kwargs})

    original = model.forward
    if exported is not None:
        forward.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        model.forward = forward
    try:
        with torch.no_grad():
            tokens = model.generate(
                **inputs, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False
            )
    finally:
        model.forward = original
    assert len(calls) == (STEPS if exported is not None else 0)
    return tokens


@pytest.mark.parametrize(
    "name",
    [n if n == "T5" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS],
)
def test_token_by_token(name):
    model = make_model(name)
    exporter = AutoHfExporter.from_config({"export_format": "xoptim"})
    config = XoptimConfig(dynamic=True)
    exported = exporter.export_for_generation(model, make_inputs(name, 2), config)
    assert list(exported.components) == ["prefill", "decode"]
    for batch in (1, 2, 3):
        inputs = make_inputs(name, batch)
        expected = generate(model, None, inputs)
        assert generate(model, exported, inputs).tolist() == expected.tolist()


@pytest.fixture(scope="module")
def llama() -> tuple[Any, ExportedModel]:
    """The parts of a model, exported with prompts of the same length."""
    model, inputs = make_model("Llama"), make_inputs("Llama", 2)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    config = XoptimConfig(dynamic=True, patterns="default+onnxruntime")
    return model, XoptimExporter().export_for_generation(model, inputs, config)


@pytest.mark.parametrize("padded", [True, False])
def test_prompts_with_and_without_padding(llama, padded):
    """transformers gives no mask when nothing is padding, neither to the exporter nor later."""
    model, exported = llama
    inputs = make_inputs("Llama", 3)
    if not padded:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    assert generate(model, exported, inputs).tolist() == generate(model, None, inputs).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Mistral", "Mamba2"])
def test_a_cache_that_does_not_count_its_tokens(name):
    """A window drops tokens, a recurrence keeps none: the mask has their length all the same."""
    model, inputs = make_model(name), make_inputs(name, 2)
    exported = XoptimExporter().export_for_generation(model, inputs, XoptimConfig(dynamic=True))
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    assert generate(model, exported, inputs).tolist() == generate(model, None, inputs).tolist()


def test_a_mask_beside_something_else():
    """A token that stands for a part of an image is not made padding, a mask with padding stays."""
    ids, mask = torch.ones(2, 3), torch.ones(2, 3)
    image = {"input_ids": ids, "attention_mask": mask, "pixel_values": torch.ones(2, 3, 4, 4)}
    assert with_padding(image)["attention_mask"] is mask
    padded = torch.tensor([[1, 1], [0, 1]])
    assert with_padding({"input_ids": ids, "attention_mask": padded})["attention_mask"] is padded
    one = torch.ones(2, 1)
    assert with_padding({"input_ids": one, "attention_mask": one})["attention_mask"] is one
    found = with_padding({"input_ids": ids, "attention_mask": mask})["attention_mask"]
    assert found.tolist() == [[0, 1, 1], [1, 1, 1]] and bool(mask.all())


def test_names_and_rewrites(llama):
    _, exported = llama
    decode = exported.components["decode"].program
    assert isinstance(decode, onnx_ir.Model)
    names = [value.name for value in decode.graph.inputs]
    assert names[:3] == ["input_ids", "attention_mask", "position_ids"]
    assert len(names) == 7 and names[3].startswith("input.") and names[3].endswith("layers.0.keys")
    assert decode.graph.outputs[0].name == "logits"
    assert "SimplifiedLayerNormalization" in {node.op_type for node in decode.graph}


def test_saved_then_read(llama, tmp_path):
    model, exported = llama
    exported.save_pretrained(tmp_path)
    again = ExportedModel.from_pretrained(tmp_path)
    assert again.export_format == "xoptim"
    inputs = make_inputs("Llama", 3)
    assert generate(model, again, inputs).tolist() == generate(model, None, inputs).tolist()


def test_one_graph_after_to_onnx_registered_its_caches():
    """A cache flattened by to_onnx has another order than the one the runner reads."""
    model, inputs = make_model("Llama"), make_inputs("Llama", 2)
    onx = to_onnx(model, kwargs=inputs)
    assert len(onx.graph.output) == 5
    exported = XoptimExporter().export(model, inputs, XoptimConfig(dynamic=True))
    got, expected = exported(**inputs), model(**inputs)
    torch.testing.assert_close(got.logits, expected.logits, atol=1e-4, rtol=1e-4)
    for found, layer in zip(
        got.past_key_values.layers, expected.past_key_values.layers, strict=True
    ):
        torch.testing.assert_close(found.keys, layer.keys, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found.values, layer.values, atol=1e-4, rtol=1e-4)


def test_registrations_come_back():
    cache = transformers.DynamicCache
    to_onnx(make_model("Llama"), kwargs=make_inputs("Llama", 2))
    nodes = torch.utils._pytree.SUPPORTED_NODES
    before, count = nodes[cache], len(nodes)
    with registered_caches([cache, transformers.StaticCache]):
        assert nodes[cache].flatten_fn.__module__.startswith("transformers.exporters.")
    assert nodes[cache].flatten_fn is before.flatten_fn and len(nodes) == count


def test_the_optimization_is_an_option():
    model, inputs = make_model("GPT2"), make_inputs("GPT2", 2)
    sizes = {}
    for optimize in (True, False):
        config = {"dynamic": True, "optimize": optimize, "opset_version": 20}
        program = XoptimExporter().export(model, dict(inputs), config).program
        assert program.opset_imports[""] == 20
        sizes[optimize] = len(list(program.graph))
    assert sizes[True] < sizes[False]


def test_no_quantizer():
    config = XoptimConfig(quantizer=object())
    with pytest.raises(OptionError, match="takes no quantizer"):
        XoptimExporter().export(torch.nn.ReLU(), {"input": torch.ones(2)}, config)


def test_only_the_step_of_a_decoder_is_static():
    auto, static = torch.export.Dim.AUTO, torch.export.Dim.STATIC
    inputs = {"step": torch.ones(1, 1), "mask": torch.ones(1, 5), "sizes": torch.ones(1), "flag": 3}
    assert automatic_shapes(inputs) == {
        "step": {0: auto, 1: static},
        "mask": {0: auto, 1: auto},
        "sizes": {0: auto},
        "flag": None,
    }
