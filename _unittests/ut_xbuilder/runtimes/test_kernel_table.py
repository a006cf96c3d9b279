"""The kernels of onnxruntime, shipped and installed."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from xbuilder.errors import OptionError
from xbuilder.runtimes import installed
from xbuilder.runtimes.installed import installed_version, kernel_table, read_installed
from xbuilder.runtimes.kernel_table import KernelTable, shipped_kernels

FLOAT, HALF, INT8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8
INT64 = TensorProto.INT64

TABLE = KernelTable(
    {
        "runtime": "any 1",
        "provider": "CPU",
        "kernels": {
            "Relu": [
                [6, 12, {"T": "float"}],
                [13, 13, {"T": "float"}],
                [14, None, {"T": "float int8"}],
            ],
            "Swish": [[23, None, {"T": "float"}]],
            "Attention": [[23, None, {"T1": "float"}], [24, None, {"T1": "float"}]],
            "Cast": [[13, 28, {"T1": "float", "T2": "int8"}]],
            "Simplified": [[1, None, {}]],
            "Where": [[16, None, {"B": "bool", "T": "float int64"}]],
            "own::Two": [
                [1, None, {"T": "float", "I": "int64"}],
                [1, None, {"T": "float16", "I": "int8"}],
            ],
        },
        "parameters": {"own::Two": "T I T"},
    }
)

RUNS = {
    "float": ("Relu", "", 18, [FLOAT], True),
    "another type": ("Relu", "", 18, [HALF], False),
    "old opset": ("Relu", "", 7, [FLOAT], True),
    "type of a newer opset": ("Relu", "", 13, [INT8], False),
    "newer opset": ("Relu", "", 14, [INT8], True),
    "definition of opset 14 in opset 18": ("Relu", "", 18, [INT8], True),
    "another definition": ("Swish", "", 24, [FLOAT], False),
    "definition of opset 24": ("Attention", "", 24, [FLOAT], True),
    "definition of opset 25": ("Attention", "", 25, [FLOAT], False),
    "closed kernel": ("Cast", "", 25, [FLOAT], True),
    "operator onnx does not know": ("Simplified", "", 18, [], True),
    "before the first kernel": ("Where", "", 9, [TensorProto.BOOL, FLOAT, FLOAT], False),
    "several parameters": ("Where", "", 18, [TensorProto.BOOL, INT64, INT64], True),
    "one is wrong": ("Where", "", 18, [INT64, INT64, INT64], False),
    "not compared": ("Where", "", 18, [0, INT64, 0], True),
    "unknown to onnx": ("Two", "own", 1, [FLOAT, INT64, FLOAT], True),
    "types of two kernels": ("Two", "own", 1, [FLOAT, INT8, FLOAT], False),
    "the other kernel": ("Two", "own", 1, [HALF, INT8], True),
    "no kernel": ("Neg", "", 18, [FLOAT], False),
    "domain": ("Relu", "own", 18, [FLOAT], False),
    "ai.onnx": ("Relu", "ai.onnx", 18, [FLOAT], True),
}


@pytest.mark.parametrize("case", RUNS)
def test_runs(case):
    op_type, domain, opset, types, expected = RUNS[case]
    assert TABLE.runs(op_type, domain, opset, types) is expected


@pytest.mark.parametrize(("kind", "expected"), [(INT8, True), (INT64, False)])
def test_outputs(kind, expected):
    """A type that the inputs do not imply."""
    assert TABLE.runs("Cast", "", 25, [FLOAT], [kind]) is expected


def test_operators():
    assert TABLE.knows("Relu") and TABLE.knows("Two", "own") and not TABLE.knows("Two")
    assert [k.since for k in TABLE.of("Relu")] == [6, 13, 14]


def test_shipped_table_is_the_one_of_onnxruntime():
    """The file is what this version of onnxruntime tells."""
    table, read = shipped_kernels("CPU"), read_installed("CPU")
    if table.runtime != f"onnxruntime {installed_version()}":
        pytest.skip("another version of onnxruntime is installed than the one of the file")
    assert read is not None
    assert json.loads(json.dumps(read.data)) == table.data


def test_both_processors_know_what_rewrites_write():
    for processor in ("CPU", "CUDA"):
        table = kernel_table(processor)
        assert table.runs("FusedMatMul", "com.microsoft", 1, [FLOAT, FLOAT])
    assert kernel_table("CUDA").runs("Gelu", "com.microsoft", 1, [HALF])
    assert not kernel_table("CPU").runs("Gelu", "com.microsoft", 1, [HALF])
    assert not kernel_table("CPU").knows("BiasSplitGelu", "com.microsoft")


@pytest.mark.parametrize("version", ["", "0.0.1"])
def test_another_version(monkeypatch, version):
    """Not installed: the file. Another version: what it tells."""
    monkeypatch.setattr(installed, "installed_version", lambda: version)
    kernel_table.cache_clear()
    try:
        table = kernel_table("CPU")
        assert table.knows("Relu")
        assert (table is shipped_kernels("CPU")) is (version == "")
    finally:
        kernel_table.cache_clear()


def test_unknown_processor():
    with pytest.raises(OptionError, match="processor 'NPU' are not known"):
        kernel_table("NPU")


def test_onnx_operators_have_their_own_parameters():
    table = shipped_kernels("CPU")
    known = [
        op
        for op in table.data["parameters"]
        if onnx.defs.has(op.rpartition("::")[2], op.rpartition("::")[0])
    ]
    assert known == []


def test_a_build_that_crashes(monkeypatch):
    """With TensorRT, another process lists the kernels: when it ends, there is no list."""
    providers = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: providers)
    table, expected = read_installed("CPU"), installed._read_here("CPU")
    assert table is not None and expected is not None and table.operators
    assert json.dumps(table.data) == json.dumps(expected.data)
    monkeypatch.setattr(installed, "_PROGRAM", "import os; os.abort()")
    assert read_installed("CPU") is None


class Distribution:
    """A distribution in a folder."""

    def __init__(self, version: str, folder: Path):
        self.version, self.folder = version, folder

    def locate_file(self, name: str) -> Path:
        return self.folder / name


def test_two_distributions(monkeypatch, tmp_path):
    """onnxruntime and onnxruntime-gpu are both installed: the version of what is imported."""
    own = Path(onnxruntime.__file__).resolve().parents[1]
    both = {
        "onnxruntime": Distribution("1.30.0", tmp_path),
        "onnxruntime-gpu": Distribution("1.31.1", own),
    }

    def find(name: str) -> Distribution:
        if name not in both:
            raise installed.PackageNotFoundError(name)
        return both[name]

    monkeypatch.setattr(installed, "distribution", find)
    assert installed_version.__wrapped__() == "1.31.1"
    del both["onnxruntime-gpu"]
    assert installed_version.__wrapped__() == "1.30.0"
    both.clear()
    assert installed_version.__wrapped__() == ""
