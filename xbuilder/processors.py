"""The processors a model may be meant for."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import numpy as np

from .errors import OptionError

#: execution provider of each processor
PROVIDERS = {"CPU": "CPUExecutionProvider", "CUDA": "CUDAExecutionProvider"}
#: instructions of a CPU, by the name compilers give to the level that has them, as numpy tells them
INSTRUCTIONS = {
    "aarch64": "aarch64",
    "x86-64-v2": "x86_64",
    "x86-64-v3": "x86_64 X86_V3",
    "x86-64-v4": "x86_64 X86_V3 X86_V4",
}
#: what numpy, before it knew the levels, and other systems call the same
_SAME = {"AMD64": "x86_64", "arm64": "aarch64", "AVX2": "X86_V3", "AVX512_SKX": "X86_V4"}


@cache
def processors_of(text: str) -> tuple[str, ...]:
    """The processors a text names.

    ::

        processors_of("CPU, CUDA")  # ("CPU", "CUDA")
        processors_of("CPU:x86-64-v3")  # ("CPU",)
    """
    return tuple(name.strip().partition(":")[0] for name in text.split(","))


def features_of(text: str) -> str:
    """The instructions of the CPU a text names: those of this processor if it does not tell them.

    ::

        features_of("CPU:x86-64-v3")  # "x86_64 X86_V3"
    """
    levels = [level for _, level in _with_levels(text) if level]
    return INSTRUCTIONS[levels[0]] if levels else processor_features()


def _with_levels(text: str) -> list[tuple[str, str | None]]:
    """Each processor of a text, and the level it gives, None if it gives none."""
    parts = [name.strip().partition(":") for name in text.split(",")]
    return [(name, level if colon else None) for name, colon, level in parts]


def check_processor(text: str) -> None:
    """Refuses a text that names an unknown processor, or unknown instructions.

    :raises OptionError: it does
    """
    if not isinstance(text, str) or not PROVIDERS.keys() >= set(processors_of(text)):
        raise OptionError(f"Unknown processor {text!r}, expected CPU, CUDA or both.")
    for name, level in _with_levels(text):
        if level is not None and (name != "CPU" or level not in INSTRUCTIONS):
            raise OptionError(
                f"Unknown instructions {level!r} of processor {text!r}, expected CPU or CPU: and "
                f"one of {', '.join(INSTRUCTIONS)}."
            )


@cache
def processor_features() -> str:
    """What this processor is: its family and the instructions numpy finds."""
    known: Any = np.show_config(mode="dicts")
    found = known.get("SIMD Extensions", {}).get("found", ())
    return named_features(platform.machine(), found)


def named_features(machine: str, found: list[str] | tuple[str, ...]) -> str:
    """A processor in the words the measures are kept in.

    ::

        named_features("AMD64", ["AVX2"])  # "x86_64 AVX2 X86_V3"

    :param machine: its family, as the system calls it
    :param found: its instructions, as numpy calls them
    """
    names = {*found, *(_SAME[name] for name in found if name in _SAME)}
    return " ".join([_SAME.get(machine, machine), *sorted(names)])
