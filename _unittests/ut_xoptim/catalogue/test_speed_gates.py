"""Gates: the measures decide whether a rewrite applies."""

from __future__ import annotations

from pathlib import Path

import pytest

from xbuilder.errors import OptionError
from xbuilder.runtimes import processors
from xbuilder.runtimes.processors import PROVIDERS
from xoptim import get_pattern_list
from xoptim.catalogue import speed_gates
from xoptim.catalogue.speed_gates import (
    SpeedGate,
    closest_gate,
    find_speed_gate,
    merged_gates,
    read_gates,
)

HEAD = "pattern,processor,onnxruntime,features,ratio,kept\n"


def gate(
    version: str = "1.20.0", ratio: float = 0.5, pattern: str = "P", features: str = "f"
) -> SpeedGate:
    return SpeedGate(pattern, "CPU", version, features, ratio)


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("1.19.2", "1.20.0"),
        ("1.20.0", "1.20.0"),
        ("1.20.5+cuda", "1.20.0"),
        ("1.100.0", "1.31.1"),
        ("", "1.20.0"),
    ],
)
def test_the_closest_older_version(installed, expected):
    gates = [gate("1.31.1"), gate("1.20.0")]
    found = closest_gate(gates, "P", "CPU", installed, "f")
    assert found is not None and found.onnxruntime == expected


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("x86 V3", "x86 V3"),
        ("x86", "x86 V3"),
        ("x86 V3 V4", "x86 V3 V4 ICL"),
        ("x86 V3 V4 ICL SPR", "x86 V3 V4 ICL"),
        ("arm", "x86 V3"),
        ("x86 V3 GenuineIntel", "x86 V3"),
    ],
)
def test_the_closest_instructions(features: str, expected: str) -> None:
    """They decide before the version."""
    gates = [gate("1.20.0", features="x86 V3"), gate("1.31.1", features="x86 V3 V4 ICL")]
    for version in ("1.19.2", "1.32.0"):
        found = closest_gate(gates, "P", "CPU", version, features)
        assert found is not None and found.features == expected


def test_who_makes_it():
    """This decides before the instructions."""
    amd = gate(features="x86 AuthenticAMD V3")
    intel = gate(features="x86 GenuineIntel V3 V4")
    for features, expected in (("x86 AuthenticAMD V3 V4", amd), ("x86 GenuineIntel V3", intel)):
        assert closest_gate([amd, intel], "P", "CPU", "1.20.0", features) == expected


def test_nothing_was_measured():
    assert closest_gate([gate()], "P", "CUDA", "1.20.0", "f") is None
    assert closest_gate([gate()], "Q", "CPU", "1.20.0", "f") is None
    assert find_speed_gate("Transpose", "CPU", "CPU") is None


@pytest.mark.parametrize(
    ("target", "kept"),
    [("intel-v3", True), ("intel-v4", True), ("amd-v3", False), ("amd-v4", False)],
)
def test_the_target(target: str, kept: bool):
    """Processors of Intel are slow with tiny numbers, wherever the model is optimized."""
    for scores in ("Causal", "TinyWeights"):
        for name in (f"{scores}Attention", f"{scores}Softmax"):
            found = find_speed_gate(f"{name}(measured=True)", "CPU", f"CPU:{target}")
            assert found is not None and found.kept is kept, name


def test_a_gpu(monkeypatch):
    """Its measures are found by its own features, not by those of the CPU."""
    rows = [
        SpeedGate("P", "CUDA", "1.31.1", "sm_80 NVIDIA A100", 1.2),
        SpeedGate("P", "CUDA", "1.31.1", "sm_90 NVIDIA H100", 0.9),
    ]
    monkeypatch.setattr(speed_gates, "read_gates", lambda: rows)
    for features, kept in (("sm_90 NVIDIA H200", True), ("sm_80 NVIDIA A100", False)):
        monkeypatch.setattr(processors, "gpu_features", lambda found=features: found)
        measured = find_speed_gate.__wrapped__("P", "CUDA", "CUDA")
        assert measured is not None and measured.kept is kept


def test_merged():
    new = gate(ratio=2.0)
    assert merged_gates([gate(), gate("1.31.1")], [new]) == [new, gate("1.31.1")]
    other = gate(features="g")
    assert merged_gates([gate()], [other]) == [gate(), other]
    assert not new.kept and gate().kept
    assert new.to_row()["kept"] == "no" and new.to_row()["ratio"] == "2.000"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "P,CPU,1.20.0,f,fast,yes\n", "Line 2 .* is no measure"),
        (HEAD + "P,CPU\n", "Line 2 .* is no measure"),
        ("pattern,ratio\nP,1\n", "expected the columns"),
        (HEAD + "P,CPU,1.20.0,f,1.5,yes\n", "column kept says 'yes'"),
    ],
)
def test_wrong_file(tmp_path: Path, text: str, message: str):
    path = tmp_path / "gates.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=message):
        read_gates(path)


def test_the_file_of_the_package():
    """Each row is the one of a pattern that asks it."""
    gates = read_gates()
    assert gates == merged_gates(gates, [])
    for row in gates:
        (pattern,) = get_pattern_list(row.pattern)
        assert pattern.gate_name == row.pattern
        assert row.processor in PROVIDERS and row.onnxruntime and row.features
