"""The processors a model may be meant for."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from xbuilder.errors import OptionError
from xbuilder.runtimes import processors
from xbuilder.runtimes.processors import (
    _description,
    check_processor,
    cpu_features,
    gpu_features,
    named_features,
    processor_features,
    processors_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CPU", ("CPU",)),
        ("CPU, CUDA", ("CPU", "CUDA")),
        ("CPU,", ("CPU", "")),
        ("", ("",)),
        ("CUDA,CPU:intel-v3", ("CUDA", "CPU")),
    ],
)
def test_processors(text: str, expected: tuple[str, ...]):
    """An empty name is no processor: options refuse it."""
    assert processors_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CPU:amd-v3", "x86_64 AuthenticAMD X86_V3"),
        ("CUDA, CPU:intel-v4", "x86_64 GenuineIntel X86_V3 X86_V4"),
        ("CPU:aarch64", "aarch64"),
        ("CPU", processor_features()),
        ("CUDA", processor_features()),
    ],
)
def test_kinds(text: str, expected: str):
    check_processor(text)
    assert cpu_features(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GPU", "Unknown processor 'GPU', expected CPU, CUDA or both"),
        (3, "Unknown processor 3"),
        ("CPU:", "Unknown kind ''"),
        ("CPU:avx2", "Unknown kind 'avx2' .* one of aarch64, amd-v3, amd-v4"),
        ("CUDA:amd-v3", "Unknown kind 'amd-v3' of processor 'CUDA:amd-v3'"),
    ],
)
def test_refused(text: str, message: str):
    with pytest.raises(OptionError, match=message):
        check_processor(text)


@pytest.mark.parametrize(
    ("machine", "description", "found", "expected"),
    [
        ("x86_64", "vendor_id: GenuineIntel", ["X86_V3"], "x86_64 GenuineIntel X86_V3"),
        (
            "AMD64",
            "AMD64 Family 25, AuthenticAMD",
            ["AVX2", "AVX512_SKX"],
            "x86_64 AuthenticAMD AVX2 AVX512_SKX X86_V3 X86_V4",
        ),
        ("arm64", "", [], "aarch64"),
    ],
)
def test_the_words_of_other_systems(
    machine: str, description: str, found: list[str], expected: str
):
    """Older versions of numpy do not know the levels."""
    assert named_features(machine, description, found) == expected


def test_who_makes_this_one(tmp_path: Path):
    """Linux tells it in a file, other systems do not have it."""
    path = tmp_path / "cpuinfo"
    assert _description(path) == platform.processor()
    path.write_text("processor: 0\nvendor_id: AuthenticAMD\n" + "x" * 5000, encoding="utf-8")
    assert "AuthenticAMD" in _description(path) and len(_description(path)) == 1024


@pytest.mark.parametrize(
    ("program", "code", "text", "expected"),
    [
        (
            "nvidia-smi",
            0,
            "9.0, NVIDIA H100 80GB HBM3\n9.0, other\n",
            "sm_90 NVIDIA H100 80GB HBM3",
        ),
        ("nvidia-smi", 9, "NVIDIA-SMI has failed\n", ""),
        ("nvidia-smi", 0, "\n", ""),
        (None, 0, "", ""),
    ],
)
def test_features_of_a_gpu(monkeypatch, program: str | None, code: int, text: str, expected: str):
    """The first one; none where there is no driver."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[0] == "nvidia-smi" and "--query-gpu=compute_cap,name" in command
        return subprocess.CompletedProcess(command, code, text)

    monkeypatch.setattr(processors.shutil, "which", lambda name: program)
    monkeypatch.setattr(processors.subprocess, "run", run)
    assert gpu_features.__wrapped__() == expected
