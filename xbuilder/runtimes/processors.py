"""The processors a model is optimized for: CPU, CUDA, and the kinds of CPU."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OptionError

#: execution provider of each processor
PROVIDERS = {"CPU": "CPUExecutionProvider", "CUDA": "CUDAExecutionProvider"}
#: vendors of the x86_64 family, as their processors name them
VENDORS = ("AuthenticAMD", "GenuineIntel")
#: kinds of CPU: v3 and v4 are the levels of x86-64, with AVX2 and with AVX-512
KINDS = {
    "aarch64": "aarch64",
    "amd-v3": "x86_64 AuthenticAMD X86_V3",
    "amd-v4": "x86_64 AuthenticAMD X86_V3 X86_V4",
    "intel-v3": "x86_64 GenuineIntel X86_V3",
    "intel-v4": "x86_64 GenuineIntel X86_V3 X86_V4",
}
#: other names of the same things, given by older versions of numpy and by other systems
_SAME = {"AMD64": "x86_64", "arm64": "aarch64", "AVX2": "X86_V3", "AVX512_SKX": "X86_V4"}


@cache
def processors_of(text: str) -> tuple[str, ...]:
    """The processors named by the option *processor*.

    ::

        processors_of("CPU, CUDA")  # ("CPU", "CUDA")
        processors_of("CPU:amd-v3")  # ("CPU",)
    """
    return tuple(name for name, _ in _with_kinds(text))


def cpu_features(text: str) -> str:
    """The features of the CPU named by the option *processor*, those of this machine's processor
    if it names no kind.

    ::

        cpu_features("CPU:amd-v3")  # "x86_64 AuthenticAMD X86_V3"
    """
    kinds = [kind for _, kind in _with_kinds(text) if kind]
    return KINDS[kinds[0]] if kinds else processor_features()


def _with_kinds(text: str) -> list[tuple[str, str | None]]:
    """Each processor of a text with its kind, None if it has none."""
    parts = [name.strip().partition(":") for name in text.split(",")]
    return [(name, kind if colon else None) for name, colon, kind in parts]


def check_processor(text: str) -> None:
    """Refuses an unknown processor, or an unknown kind.

    :raises OptionError: it does
    """
    if not isinstance(text, str) or not PROVIDERS.keys() >= set(processors_of(text)):
        raise OptionError(f"Unknown processor {text!r}, expected CPU, CUDA or both.")
    for name, kind in _with_kinds(text):
        if kind is not None and (name != "CPU" or kind not in KINDS):
            raise OptionError(
                f"Unknown kind {kind!r} of processor {text!r}, expected CPU alone, or CPU: and one "
                f"of {', '.join(KINDS)}."
            )


@cache
def processor_features() -> str:
    """The features of this machine's processor: family, vendor, instructions numpy finds."""
    known: Any = np.show_config(mode="dicts")
    found = known.get("SIMD Extensions", {}).get("found", ())
    return named_features(platform.machine(), _description(), found)


@cache
def gpu_features() -> str:
    """The compute capability and the name of the first GPU, empty if there is none: a key of the
    measures, `"sm_90 NVIDIA H100 80GB HBM3"`."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    query = [program, "--query-gpu=compute_cap,name", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode or not answer.stdout.strip():
        return ""
    capability, name = answer.stdout.splitlines()[0].split(",", 1)
    return f"sm_{capability.strip().replace('.', '')} {name.strip()}"


def measured_features(processor: str, target: str) -> str:
    """The features that measures made on a processor are known by.

    :param processor: `"CPU"` or `"CUDA"`
    :param target: processors the model is meant for, which may name a kind of CPU
    """
    return gpu_features() if processor == "CUDA" else cpu_features(target)


def _description(path: Path = Path("/proc/cpuinfo")) -> str:
    """The system's description of the processor. Linux has it in a file."""
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.read(1024)
    except OSError:
        return platform.processor()


def named_features(machine: str, description: str, found: Sequence[str]) -> str:
    """The features of a processor as one text, the key of the measures.

    ::

        named_features("AMD64", "AuthenticAMD", ["AVX2"])  # "x86_64 AuthenticAMD AVX2 X86_V3"

    :param machine: its family, as the system calls it
    :param description: a text that names its vendor
    :param found: its instructions, as numpy calls them
    """
    names = {*found, *(_SAME[name] for name in found if name in _SAME)}
    vendors = [name for name in VENDORS if name in description]
    return " ".join([_SAME.get(machine, machine), *vendors, *sorted(names)])
