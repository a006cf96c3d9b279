"""
.. _plot-train-gpt2:

Training a GPT2 with onnxruntime
================================

A small GPT2 learns to count modulo 8. ``torch.compile`` gives its graphs to
:class:`torch_interpreter.OnnxBackend`: the forward and the backward become models onnxruntime runs,
the optimizer stays the one of torch. A twin learns in eager mode on the same batches, the losses
are the same.

    python _doc/examples/plot_train_gpt2.py --steps 60 --output train_output
"""

from __future__ import annotations

import argparse
import copy
import time
from pathlib import Path

import torch
import transformers

from torch_interpreter import OnnxBackend

WORDS, LENGTH, BATCH = 8, 12, 16

# %%
# The model
# +++++++++
#
# No dropout: random numbers of onnxruntime are not those of torch, losses could not be compared.


def make_model() -> transformers.GPT2LMHeadModel:
    """A GPT2 with random weights."""
    config = transformers.GPT2Config(
        vocab_size=WORDS,
        n_positions=32,
        n_embd=32,
        n_layer=2,
        n_head=4,
        attn_pdrop=0.0,
        embd_pdrop=0.0,
        resid_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(config)


def sequences(generator: torch.Generator) -> torch.Tensor:
    """Numbers that follow each other modulo 8, with a step that is different in each sequence."""
    first = torch.randint(WORDS, (BATCH, 1), generator=generator)
    step = torch.randint(1, 4, (BATCH, 1), generator=generator)
    return (first + step * torch.arange(LENGTH)) % WORDS


# %%
# The training loop
# +++++++++++++++++
#
# It is the same for both: nothing in it knows about onnxruntime.


def train(forward: torch.nn.Module, model: torch.nn.Module, steps: int) -> list[float]:
    """Trains a model, returns the losses.

    :param forward: the model, or what torch.compile made of it
    :param model: its weights
    :param steps: number of batches
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        batch = sequences(generator)
        optimizer.zero_grad()
        loss = forward(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
# Both trainings
# ++++++++++++++


def main(steps: int = 60, output: Path | None = None) -> tuple[list[float], list[float]]:
    """Trains the model and its twin, returns the losses in eager mode and with onnxruntime.

    :param steps: number of batches
    :param output: where the two models are written
    """
    model = make_model()
    twin = copy.deepcopy(model)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    backend = OnnxBackend(folder=output, verbose=1)
    compiled = torch.compile(twin, backend=backend)
    times, losses = [], []
    for forward, weights in ((model, model), (compiled, twin)):
        begin = time.perf_counter()
        losses.append(train(forward, weights, steps))
        times.append(time.perf_counter() - begin)
    print("step   eager  onnxruntime")
    for i in sorted({*range(0, steps, max(steps // 6, 1)), steps - 1}):
        print(f"{i:4} {losses[0][i]:7.4f}  {losses[1][i]:11.4f}")
    gap = max(abs(a - b) for a, b in zip(*losses, strict=True))
    print(f"largest difference between the losses: {gap:.2g}")
    print(f"eager {times[0]:.1f} s, onnxruntime {times[1]:.1f} s with the compilation")
    return losses[0], losses[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Trains a small GPT2 with onnxruntime.")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    main(arguments.steps, arguments.output)
