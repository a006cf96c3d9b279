"""The processors a model may be meant for."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import numpy as np

from .errors import OptionError

#: execution provider of each processor
PROVIDERS = {"CPU": "CPUExecutionProvider", "CUDA": "CUDAExecutionProvider"}


def processors_of(text: str) -> tuple[str, ...]:
    """The processors a text names.

    ::

        processors_of("CPU, CUDA")  # ("CPU", "CUDA")
    """
    return tuple(name.strip() for name in text.split(","))


def check_processor(text: str) -> None:
    """Refuses a text that names an unknown processor.

    :raises OptionError: it does
    """
    if not isinstance(text, str) or not PROVIDERS.keys() >= set(processors_of(text)):
        raise OptionError(f"Unknown processor {text!r}, expected CPU, CUDA or both.")


@cache
def processor_features() -> str:
    """What this processor is: its family and the instructions numpy finds."""
    known: Any = np.show_config(mode="dicts")
    found = known.get("SIMD Extensions", {}).get("found", ())
    return " ".join([platform.machine(), *sorted(found)])
