"""Models of transformers with random weights."""

from __future__ import annotations

import onnx
import pytest
import torch
from ut_torch_interpreter.aot_checks import training_backend
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import ExportOptions, to_onnx
from xbuilder import OptimizationOptions

transformers = pytest.importorskip("transformers")
SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def ids(batch, seq):
    return torch.randint(0, 99, (batch, seq))


def padded(batch, seq):
    mask = torch.ones(batch, seq, dtype=torch.int64)
    mask[-1, : seq // 3] = 0
    return mask


def dims(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def check_model(model, make, dynamic_shapes, others, **kwargs):
    """make(*sizes) gives named arguments; every call gives new ones, caches are modified."""
    onx = to_onnx(
        model,
        kwargs=make(),
        dynamic_shapes=dynamic_shapes,
        options=OptimizationOptions(patterns=None),
        **kwargs,
    )
    onnx.checker.check_model(onx, full_check=True)
    for sizes in [(), *others]:
        values = make(*sizes)
        leaves = torch.utils._pytree.tree_leaves(values)
        feeds = [v.clone() for v in leaves if isinstance(v, torch.Tensor)]
        with torch.no_grad():
            expected = model(**values)
        expected = dict(expected) if hasattr(expected, "to_tuple") else expected
        assert_same(expected, run_ort(onx, feeds), 1e-4)
    return onx


def test_bert():
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()

    def make(batch=2, seq=7):
        zeros = torch.zeros(batch, seq, dtype=torch.int64)
        return {
            "input_ids": ids(batch, seq),
            "attention_mask": padded(batch, seq),
            "token_type_ids": zeros,
        }

    dynamic = {k: {0: "batch", 1: "seq"} for k in make()}
    onx = check_model(model, make, dynamic, [(3, 11), (2, 5)])
    assert onx.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"


LLAMA = {**SIZES, "num_key_value_heads": 2}


def test_llama():
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.llama = llama

        def forward(self, input_ids, attention_mask):
            return self.llama(
                input_ids=input_ids, attention_mask=attention_mask, use_cache=False
            ).logits

    def make(batch=2, seq=7):
        return {"input_ids": ids(batch, seq), "attention_mask": padded(batch, seq)}

    dynamic = {k: {0: "batch", 1: "seq"} for k in make()}
    check_model(Model(), make, dynamic, [(3, 11)])


def test_llama_with_a_cache():
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()

    def make(batch=2, seq=4, past=3):
        cache = transformers.DynamicCache()
        for i in range(2):
            cache.update(torch.rand(batch, 2, past, 8), torch.rand(batch, 2, past, 8), i)
        mask = torch.ones(batch, seq + past, dtype=torch.int64)
        return {"input_ids": ids(batch, seq), "attention_mask": mask, "past_key_values": cache}

    layer = {0: "batch", 2: "past"}
    dynamic = {
        "input_ids": {0: "batch", 1: "seq"},
        "attention_mask": {0: "batch", 1: "total"},
        "past_key_values": [[layer] * 2] * 2,
    }
    names = [{0: "batch", 1: "seq"}, [{0: "batch", 2: "after"}] * 4]
    onx = check_model(model, make, dynamic, [(3, 2, 7)], output_dynamic_shapes=names)
    assert dims(onx.graph.output[-1]) == ["batch", 2, "after", 8]
    assert "past_key_values_key_cache_0" in {i.name for i in onx.graph.input}


def small(name):
    """A small model of each family: encoders, decoders, vision."""
    tr = transformers
    heads = {"num_key_value_heads": 2, "use_cache": False}
    text = {
        "gpt2": lambda: tr.GPT2LMHeadModel(
            tr.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, use_cache=False)
        ),
        "mistral": lambda: tr.MistralForCausalLM(tr.MistralConfig(**SIZES, **heads)),
        "qwen2": lambda: tr.Qwen2ForCausalLM(tr.Qwen2Config(**SIZES, **heads)),
        "gemma": lambda: tr.GemmaForCausalLM(tr.GemmaConfig(**SIZES, **heads, head_dim=8)),
        "phi": lambda: tr.PhiForCausalLM(tr.PhiConfig(**SIZES, use_cache=False)),
        "t5": lambda: tr.T5EncoderModel(
            tr.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        ),
        "mixtral": lambda: tr.MixtralForCausalLM(
            tr.MixtralConfig(**SIZES, **heads, num_local_experts=2)
        ),
    }
    return text[name]().eval()


@pytest.mark.parametrize("name", ["gpt2", "mistral", "qwen2", "gemma", "phi", "t5", "mixtral"])
def test_text_models(name):
    torch.manual_seed(0)
    kwargs = {"input_ids": ids(2, 7), "attention_mask": torch.ones(2, 7, dtype=torch.int64)}
    dynamic = {k: {0: "batch", 1: "seq"} for k in kwargs}
    to_onnx(
        small(name),
        kwargs=kwargs,
        dynamic_shapes=None if name == "mixtral" else dynamic,
        validate_onnx=1e-3,
        options=OptimizationOptions(patterns=None),
    )


def test_vision_models():
    torch.manual_seed(0)
    tr = transformers
    sizes = {k: v for k, v in SIZES.items() if k != "vocab_size"}
    models = [
        tr.ViTModel(tr.ViTConfig(**sizes, image_size=32, patch_size=8)),
        tr.ResNetModel(
            tr.ResNetConfig(
                embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
            )
        ),
    ]
    for model in models:
        to_onnx(
            model.eval(),
            kwargs={"pixel_values": torch.randn(2, 3, 32, 32)},
            dynamic_shapes={"pixel_values": {0: "batch"}},
            validate_onnx=1e-3,
            options=OptimizationOptions(patterns=None),
        )


def test_encoder_and_decoder():
    torch.manual_seed(0)
    sizes = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1}
    config = transformers.T5Config(**sizes, num_heads=4, use_cache=False)
    model = transformers.T5ForConditionalGeneration(config).eval()

    def make(batch=2, seq=7, target=4):
        mask = torch.ones(batch, seq, dtype=torch.int64)
        target_ids = ids(batch, target)
        return {
            "input_ids": ids(batch, seq),
            "attention_mask": mask,
            "decoder_input_ids": target_ids,
        }

    dynamic = {k: {0: "batch", 1: "seq"} for k in make()}
    dynamic["decoder_input_ids"] = {0: "batch", 1: "target"}
    onx = check_model(model, make, dynamic, [(3, 11, 6), (1, 5, 9)])
    assert [dims(o) for o in onx.graph.output] == [["batch", "target", 99], ["batch", "seq", 32]]


VISION = {k: v for k, v in SIZES.items() if k != "vocab_size"} | {"image_size": 32, "patch_size": 8}


def test_text_and_images():
    torch.manual_seed(0)
    text = {**SIZES, "num_hidden_layers": 1, "max_position_embeddings": 20, "eos_token_id": 98}
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**VISION, "num_hidden_layers": 1}, projection_dim=16
    )
    model = transformers.CLIPModel(config).eval()

    def make(batch=2, seq=7, images=3):
        return {
            "input_ids": ids(batch, seq),
            "attention_mask": torch.ones(batch, seq, dtype=torch.int64),
            "pixel_values": torch.randn(images, 3, 32, 32),
        }

    dynamic = {k: {0: "batch", 1: "seq"} for k in make()} | {"pixel_values": {0: "images"}}
    onx = check_model(model, make, dynamic, [(3, 11, 2)])
    assert [dims(o) for o in onx.graph.output][:2] == [["images", "batch"], ["batch", "images"]]


def test_images_of_any_size():
    torch.manual_seed(0)
    model = transformers.Dinov2Model(transformers.Dinov2Config(**VISION)).eval()

    def make(batch=2, height=32, width=48):
        return {"pixel_values": torch.randn(batch, 3, height, width)}

    onx = check_model(
        model, make, {"pixel_values": {0: "batch", 2: "h", 3: "w"}}, [(1, 64, 40), (3, 41, 33)]
    )
    assert dims(onx.graph.output[0]) == ["batch", "(h//8)*(w//8)+1", 32]


def test_sound_of_any_length():
    torch.manual_seed(0)
    convolutions = {"conv_dim": (8, 8), "conv_kernel": (5, 3), "conv_stride": (3, 2)}
    config = transformers.Wav2Vec2Config(
        **SIZES,
        **convolutions,
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )
    model = transformers.Wav2Vec2Model(config).eval()

    def make(batch=2, time=400):
        return {"input_values": torch.randn(batch, time)}

    onx = check_model(model, make, {"input_values": {0: "batch", 1: "time"}}, [(3, 333), (1, 517)])
    assert dims(onx.graph.output[0])[::2] == ["batch", 32]


def test_training_with_dynamic_sizes():
    """torch.compile makes one graph for every size, square roots and embeddings included."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    config = transformers.GPT2Config(
        vocab_size=99,
        n_embd=16,
        n_layer=1,
        n_head=2,
        use_cache=False,
        attn_pdrop=0,
        embd_pdrop=0,
        resid_pdrop=0,
    )
    model = transformers.GPT2Model(config)
    models, backend = training_backend()
    compiled = torch.compile(model, backend=backend, dynamic=True)
    for shape in [(2, 5), (3, 7)]:
        gradients = []
        tokens = ids(*shape)
        for called in (model, compiled):
            model.zero_grad()
            called(input_ids=tokens).last_hidden_state.pow(2).mean().backward()
            found = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
            gradients.append({k: v.clone() for k, v in found.items()})
        assert len(gradients[0]) > 10
        torch.testing.assert_close(gradients[1], gradients[0], atol=1e-4, rtol=1e-3)
    assert len(models) == 2


def test_a_decoder_traced_around_its_inner_model():
    """The mask is chosen from values in the inner model, which the tracer calls as it is."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=2, use_cache=False)
    model = transformers.LlamaForCausalLM(config).eval()
    options = ExportOptions(tracing=True, tracing_module_leaves={transformers.LlamaModel})

    def make(batch=2, seq=7):
        return {"input_ids": ids(batch, seq)}

    dynamic = {"input_ids": {0: "batch", 1: "seq"}}
    check_model(model, make, dynamic, [(3, 5)], export_options=options)
