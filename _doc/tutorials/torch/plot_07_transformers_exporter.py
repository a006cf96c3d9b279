"""
The exporter of transformers, with our backend
==============================================

``transformers.exporters`` cuts a generative model into parts, and a backend writes their ONNX models. Importing
``torch_interpreter.transformers_backend`` adds our backend, called ``xoptim``.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from torch_interpreter.transformers_backend import XoptimConfig, XoptimExporter

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=60,
    bos_token_id=1,
    eos_token_id=None,
    pad_token_id=0,
)
model = LlamaForCausalLM(config).eval()
ids = torch.randint(3, 60, (2, 6))
inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

exported = XoptimExporter().export_for_generation(
    model, inputs, XoptimConfig(dynamic=True, patterns="default+onnxruntime")
)
for name, component in exported.components.items():
    graph = component.program.graph
    print(name, len(list(graph)), "nodes,", [value.name for value in graph.inputs][:3])

# %%
# ``exported.save_pretrained(folder)`` writes the parts, and ``exported.runners`` runs them with onnxruntime.
# :doc:`/torch/transformers_backend` generates text with them.
