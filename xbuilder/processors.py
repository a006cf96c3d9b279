"""The processors a model may be meant for."""

from __future__ import annotations

#: execution provider of each processor
PROVIDERS = {"CPU": "CPUExecutionProvider", "CUDA": "CUDAExecutionProvider"}


def processors_of(text: str) -> tuple[str, ...]:
    """The processors a text names.

    ::

        processors_of("CPU, CUDA")  # ("CPU", "CUDA")
    """
    return tuple(name.strip() for name in text.split(","))
