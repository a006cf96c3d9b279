"""
An LLM with a cache (DynamicCache)
==================================

A decoder reads its own cache, which holds the keys and values of the previous tokens. This page exports one
step of a small Llama, with the names that onnxruntime-genai and optimum expect. It then generates tokens
with onnxruntime.
"""

import torch
import transformers

import xoptim
from torch_interpreter import to_onnx

torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=99,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
model = transformers.LlamaForCausalLM(config).eval()
ids = torch.randint(0, 99, (2, 5))

# %%
# Export one step
# +++++++++++++++
#
# A first run gives a cache. Each layer has a description, which says which of its sizes change.

with torch.no_grad():
    cache = next(iter(v for k, v in model(ids).items() if k != "logits"))
layers = [{0: "batch", 2: "past"}] * config.num_hidden_layers
cache_name = "cache" if "cache" in model(ids) else "past_key_values"
onx = to_onnx(
    model,
    kwargs={"input_ids": ids[:, :2], cache_name: cache},
    dynamic_shapes={
        "input_ids": {0: "batch", 1: "seq"},
        cache_name: {"key_cache": layers, "value_cache": layers},
    },
    cache_names="genai",
)
for value in (*onx.graph.input, *onx.graph.output):
    dims = [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
    print(value.name, dims)

# %%
# Optimize
# ++++++++

done = xoptim.optimize(onx, patterns="default+onnxruntime", verify=True)
print(done.to_dict()["nodes_before"], "->", done.to_dict()["nodes_after"], "nodes")

# %%
# Generate
# ++++++++
#
# The first step starts with an empty cache, of 0 tokens.

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(done.model.SerializeToString())
inputs = [i.name for i in session.get_inputs()]
head = config.hidden_size // config.num_attention_heads
empty = np.zeros((2, config.num_key_value_heads, 0, head), dtype=np.float32)
feeds = {name: empty for name in inputs if name != "input_ids"}
tokens = ids.numpy()
step = tokens
for _ in range(8):
    logits, *present = session.run(None, {"input_ids": step, **feeds})
    step = logits[:, -1:].argmax(-1)
    tokens = np.concatenate([tokens, step], axis=1)
    names = [o.name for o in session.get_outputs()][1:]
    feeds = {
        n.replace("present", "past_key_values"): v for n, v in zip(names, present, strict=True)
    }

expected = model.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0)
print("onnxruntime", tokens[0, 5:].tolist())
print("torch      ", expected[0, 5:].tolist())

# %%
# :doc:`/torch/torch_caches` explains the other caches: static, sliding windows, hybrid, encoder and decoder.
