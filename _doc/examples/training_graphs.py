"""
Graphs of training
==================

Small models (Llama, Phi, GPT2, a convolutional network), their forward and backward graphs as
``torch.compile`` makes them: nodes before and after optimization. Results and gradients of
:class:`torch_interpreter.OnnxBackend` are compared with eager mode first. Nothing is downloaded.

    python _doc/examples/training_graphs.py --output train_graphs
    python _doc/examples/bench_graphs.py train_graphs --checkout ../base --output before.json
    python _doc/examples/bench_graphs.py train_graphs --compare before.json

The first command writes the graphs before optimization, the others compare two checkouts on them.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import torch
import transformers

from torch_interpreter import OnnxBackend
from xbuilder import GraphBuilder, OptimizationOptions

SELECTIONS = ("default", "default+onnxruntime")
SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "use_cache": False,
}
GPT2 = {
    "vocab_size": 99,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "attn_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "resid_pdrop": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}


class Logits(torch.nn.Module):
    """A language model called with ids only, which returns its logits."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids).logits


def convolutions() -> torch.nn.Module:
    """A network with convolutions, normalizations and poolings."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 8, 3, padding=1, groups=4),
        torch.nn.GroupNorm(2, 8),
        torch.nn.SiLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 5),
    )


def language_model(cls: str, config: str, values: dict[str, Any]) -> Callable[[], torch.nn.Module]:
    """A function that makes a small language model of transformers."""

    def make() -> torch.nn.Module:
        return Logits(getattr(transformers, cls)(getattr(transformers, config)(**values)))

    return make


def words() -> torch.Tensor:
    """Random ids."""
    return torch.randint(3, 99, (2, 7))


Maker = tuple[Callable[[], torch.nn.Module], Callable[[], torch.Tensor]]
MODELS: dict[str, Maker] = {
    "llama": (language_model("LlamaForCausalLM", "LlamaConfig", SIZES), words),
    "phi": (language_model("PhiForCausalLM", "PhiConfig", SIZES), words),
    "gpt2": (language_model("GPT2LMHeadModel", "GPT2Config", GPT2), words),
    "cnn": (convolutions, lambda: torch.randn(4, 3, 16, 16)),
}


def gradients(forward: Any, model: torch.nn.Module, value: torch.Tensor) -> list[torch.Tensor]:
    """The loss and the gradients of a model.

    :param forward: the model, or what torch.compile made of it
    :param model: its weights
    :param value: its input
    """
    model.zero_grad()
    loss = forward(value).pow(2).mean()
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


def graphs_of(name: str, dynamic: bool) -> dict[str, onnx.ModelProto]:
    """The forward and the backward of a model, not optimized, once they are as right as eager.

    :param name: the model
    :param dynamic: dynamic dimensions
    """
    make, value_of = MODELS[name]
    torch.manual_seed(0)
    model, value = make(), value_of()
    twin = copy.deepcopy(model)
    expected = gradients(model, model, value)
    found = {}
    for patterns in (None, "default", "default+onnxruntime"):
        torch._dynamo.reset()
        backend = OnnxBackend(OptimizationOptions(patterns=patterns))
        got = gradients(torch.compile(twin, backend=backend, dynamic=dynamic), twin, value)
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        found[patterns] = backend.models
    return found[None]


def optimized_nodes(model: onnx.ModelProto, patterns: str) -> int:
    """The number of nodes after optimization."""
    options = OptimizationOptions(patterns=patterns)
    return len(GraphBuilder(model, optimization_options=options).to_onnx().graph.node)


def rows_of(names: list[str], dynamic: bool, output: Path | None) -> Iterator[dict[str, Any]]:
    """One row for each graph: its nodes before and after.

    :param names: models
    :param dynamic: dynamic dimensions
    :param output: folder where the graphs are written, none by default
    """
    for name in names:
        for kind, model in graphs_of(name, dynamic).items():
            label = f"{name}_{'dynamic_' if dynamic else ''}{kind}"
            if output is not None:
                onnx.save(model, output / f"{label}.onnx")
            nodes = {s: optimized_nodes(model, s) for s in SELECTIONS}
            yield {"graph": label, "nodes": len(model.graph.node), **nodes}


def main(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Prints the table, returns its rows."""
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
    print(f"{'graph':32} {'nodes':>6} {SELECTIONS[0]:>10} {SELECTIONS[1]:>20}")
    rows = []
    for row in rows_of(args.models, args.dynamic, args.output):
        label, nodes, *after = row.values()
        print(f"{label:32} {nodes:6} {after[0]:10} {after[1]:20}", flush=True)
        rows.append(row)
    return rows


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Nodes of the graphs of training.")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--dynamic", action="store_true", help="dynamic dimensions")
    parser.add_argument("--output", type=Path, help="folder of the graphs before optimization")
    return parser.parse_args(words)


if __name__ == "__main__":
    main(arguments_of())
