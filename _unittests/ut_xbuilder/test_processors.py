"""The processors a model may be meant for."""

from __future__ import annotations

import pytest

from xbuilder.errors import OptionError
from xbuilder.processors import (
    check_processor,
    features_of,
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
        ("CUDA,CPU:x86-64-v3", ("CUDA", "CPU")),
    ],
)
def test_processors(text: str, expected: tuple[str, ...]):
    """An empty name is no processor: options refuse it."""
    assert processors_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CPU:x86-64-v3", "x86_64 X86_V3"),
        ("CUDA, CPU:x86-64-v4", "x86_64 X86_V3 X86_V4"),
        ("CPU:aarch64", "aarch64"),
        ("CPU", processor_features()),
        ("CUDA", processor_features()),
    ],
)
def test_instructions(text: str, expected: str):
    check_processor(text)
    assert features_of(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GPU", "Unknown processor 'GPU', expected CPU, CUDA or both"),
        (3, "Unknown processor 3"),
        ("CPU:", "Unknown instructions ''"),
        ("CPU:avx2", "Unknown instructions 'avx2' .* one of aarch64, x86-64-v2, x86-64-v3"),
        ("CUDA:x86-64-v3", "Unknown instructions 'x86-64-v3' of processor 'CUDA:x86-64-v3'"),
    ],
)
def test_refused(text: str, message: str):
    with pytest.raises(OptionError, match=message):
        check_processor(text)


@pytest.mark.parametrize(
    ("machine", "found", "expected"),
    [
        ("x86_64", ["X86_V3"], "x86_64 X86_V3"),
        ("AMD64", ["AVX2", "AVX512_SKX"], "x86_64 AVX2 AVX512_SKX X86_V3 X86_V4"),
        ("arm64", [], "aarch64"),
    ],
)
def test_the_words_of_other_systems(machine: str, found: list[str], expected: str):
    """Older versions of numpy do not know the levels."""
    assert named_features(machine, found) == expected
