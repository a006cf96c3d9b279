"""
Models of more than 2 GB
========================

Makes models with external data, optimizes each one into another folder with the command ``xoptim``,
and compares with ``cp`` of the same files: alone, and until they are on the disk, as what xoptim
writes is. Other processes make a command wait, not work: the time of the processors is written as
well. The files are in the memory of the system, or are not (*cold*). What the model does to
its weights changes from model to model: nothing, a Transpose the product absorbs, a scale, a
normalization, a Transpose nothing absorbs... No weight is ever held: the memory the command
takes, less what it takes on the same model with small weights, is measured as well.

``python _doc/examples/bench_large_model.py`` needs 7 GB of disk.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
from onnx import ModelProto, TensorProto

#: most additional memory the optimization may take, in MB
MEMORY_LIMIT = 300
#: most time the optimization may take, 1 is a copy that is on the disk
TIME_LIMIT = 2.0
#: what layer @ does with its weight w@, from u@ to n@
KINDS = {
    "copied": "n@ = MatMul (u@, w@)",
    "Transpose absorbed": "t@ = Transpose <perm=[1, 0]> (w@) n@ = MatMul (u@, t@)",
    "Mul of the weight": "h@ = Mul (w@, half) n@ = MatMul (u@, h@)",
    "Mul by a number": "m@ = MatMul (u@, w@) n@ = Mul (m@, half)",
    "Mul by a vector": "m@ = MatMul (u@, w@) n@ = Mul (m@, scale)",
    "BatchNormalization": """m@ = MatMul (u@, w@)
        n@ = BatchNormalization (m@, scale, shift, mean, var)""",
    "of a convolution": """m@ = Conv <pads=[1, 1, 1, 1]> (u@, w@)
        n@ = BatchNormalization (m@, scale, shift, mean, var)""",
    "of a Gemm": """m@ = Gemm (u@, w@, shift)
        n@ = BatchNormalization (m@, scale, shift, mean, var)""",
    "Transpose left": "t@ = Transpose <perm=[1, 0]> (w@) n@ = MatMul (u@, t@)",
    "Transpose, a vector": """t@ = Transpose <perm=[1, 0]> (w@) m@ = MatMul (u@, t@)
        n@ = Mul (m@, scale)""",
    "float16, a vector": "m@ = MatMul (u@, w@) n@ = Mul (m@, scale)",
    "float16, normalized": """m@ = MatMul (u@, w@)
        n@ = BatchNormalization (m@, scale, shift, mean, var)""",
    "bfloat16, a vector": "m@ = MatMul (u@, w@) n@ = Mul (m@, scale)",
    "bfloat16, normalized": """m@ = MatMul (u@, w@)
        n@ = BatchNormalization (m@, scale, shift, mean, var)""",
    "int8, dequantized": "d@ = DequantizeLinear (w@, half) n@ = MatMul (u@, d@)",
    "Cast left": """h@ = Cast <to=10> (w@) d@ = Cast <to=10> (u@)
        m@ = MatMul (d@, h@) n@ = Cast <to=1> (m@)""",
}
#: the same nodes around each layer: two moves that cancel each other, a bias, Relu
LAYER = "s@ = Transpose <perm=[{perm}]> (r@) u@ = Transpose <perm=[{perm}]> (s@) {layer}"
NEXT = " a@ = Add (n@, shift_) r{next} = Relu (a@) "


def types_of(kind: str) -> tuple[int, int]:
    """Types of the data and of the weights."""
    name = kind.partition(",")[0]
    if name == "int8":
        return TensorProto.FLOAT, TensorProto.INT8
    found = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
    return (found.get(name, TensorProto.FLOAT),) * 2


def numpy_type(data_type: int) -> np.dtype:
    """The type of an array."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(data_type))


def data_of(kind: str, width: int) -> tuple[str, str, list[int]]:
    """Dimensions of the data, how they are moved, dimensions of the weights."""
    if "convolution" in kind:
        return f"batch, {width}, 4, 4", "1, 0, 2, 3", [width, width, 3, 3]
    if kind in ("Transpose left", "Transpose, a vector"):  # Gemm would absorb it
        return f"batch, 4, {width}", "1, 0, 2", [width, width]
    return f"batch, {width}", "1, 0", [width, width]


def make_graph(kind: str, layers: int, width: int) -> ModelProto:
    """A chain of layers, without their weights."""
    dims, perm, _ = data_of(kind, width)
    data_type, dtype = TensorProto.DataType.Name(types_of(kind)[0]).lower(), types_of(kind)[0]
    text = "".join(
        (LAYER + NEXT).format(perm=perm, layer=KINDS[kind], next=i + 1).replace("@", str(i))
        for i in range(layers)
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> agraph ({data_type}[{dims}] r0) => '
        f"({data_type}[{dims}] r{layers}) {{ {text} }}"
    )
    rng = np.random.default_rng(0)
    vectors = {n: rng.random(width, np.float32) + 0.5 for n in ("scale", "shift", "mean", "var")}
    vectors["half"] = np.array(0.5, np.float32)
    vectors["shift_"] = vectors["shift"].reshape((-1, 1, 1) if "convolution" in kind else -1)
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value.astype(numpy_type(dtype)), name)
        for name, value in vectors.items()
        if name in read
    )
    return model


def make_model(folder: Path, kind: str, layers: int, width: int) -> Path:
    """Writes a model; its weights go to one data file."""
    folder.mkdir(parents=True)
    model = make_graph(kind, layers, width)
    *_, dims = data_of(kind, width)
    data_type = types_of(kind)[1]
    dtype = numpy_type(data_type)
    size = dtype.itemsize * math.prod(dims)
    # what a process holds counts in the memory of those it starts: the same MB is written again
    piece = np.random.default_rng(0).standard_normal(min(size, 1 << 20) // dtype.itemsize)
    scale = 30 if data_type == TensorProto.INT8 else 1 / width
    content = (piece * scale).astype(dtype).tobytes()
    with open(folder / "model.onnx.data", "wb") as data:
        for i in range(layers):
            weight = TensorProto(name=f"w{i}", data_type=data_type, dims=dims)
            weight.data_location = TensorProto.EXTERNAL
            begin = data.tell()
            for key, value in (
                ("location", "model.onnx.data"),
                ("offset", begin),
                ("length", size),
            ):
                weight.external_data.add(key=key, value=str(value))
            model.graph.initializer.append(weight)
            for _ in range(size // len(content)):
                data.write(content)
            data.write(content[: size % len(content)])
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def run(command: list[str]) -> tuple[float, float, float]:
    """Seconds a command takes, those of the processors, and MB."""
    # what is installed is compiled, these modules are once for all commands
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    duration = time.perf_counter() - begin
    if status:
        raise subprocess.CalledProcessError(status, command)
    return duration, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def optimization(source: Path, target: Path) -> list[str]:
    """The command that optimizes a model."""
    return [sys.executable, "-m", "xoptim", "optimize", str(source), str(target)]


def prepare(files: list[Path], target: Path, cold: bool) -> None:
    """Empties the folder to write; puts files in the memory of the system, or out of it.

    As much is written and removed just before: a virtual machine that gave back the memory of a
    copy would get it again while the next command runs, and not while another one does."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    os.sync()
    with open(target / "removed", "wb", buffering=0) as file:
        for _ in range(sum(path.stat().st_size for path in files) >> 22):
            file.write(bytes(1 << 22))
    (target / "removed").unlink()
    for path in files:
        with open(path, "rb", buffering=0) as file:
            if cold:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while not cold and file.read(1 << 22):
                pass


def compare(source: Path, target: Path, cold: bool, repeat: int) -> dict[str, float]:
    """Seconds of the two copies and of the optimization, the best of some; MB it takes."""
    files = sorted(source.parent.iterdir())
    copy = ["cp", *map(str, files), str(target)]
    on_disk = ["sh", "-c", 'cp "$@" && sync "$0"/*', str(target), *copy[1:]]
    optimize = optimization(source, target / "model.onnx")
    found: dict[str, float] = {}
    for _ in range(repeat):
        for name, command in (("cp", copy), ("cp+sync", on_disk), ("xoptim", optimize)):
            prepare(files, target, cold)
            duration, used, memory = run(command)
            found[name] = min(duration, found.get(name, duration))
            found[f"{name} used"] = min(used, found.get(f"{name} used", used))
            if name == "xoptim":
                found["MB"] = max(memory, found.get("MB", memory))
    return found


def measure(kind: str, layers: int, width: int, repeat: int) -> bool:
    """Prints two lines of the table, tells if a model takes the time and memory it may."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        # a convolution has 9 numbers for each pair of channels
        width = width // 3 if "convolution" in kind else width
        layers = layers * 4 // numpy_type(types_of(kind)[1]).itemsize
        small = make_model(folder / "small", kind, layers, 64)
        *_, imports = run(optimization(small, folder / "small" / "optimized.onnx"))
        source = make_model(folder / "source", kind, layers, width)
        size = source.with_name("model.onnx.data").stat().st_size / 1e9
        ok = True
        for cold in (False, True):
            found = compare(source, folder / "target", cold, repeat)
            ratios = [found["xoptim"] / found[name] for name in ("cp", "cp+sync")]
            memory = found["MB"] - imports
            print(
                f"{kind:<20} {'cold' if cold else 'cached':<8} {size:5.2f}"
                f"{found['cp']:8.2f} {found['cp+sync']:8.2f} {found['xoptim']:8.2f}"
                f"{ratios[0]:8.2f} {ratios[1]:8.2f} {memory:6.0f}"
                f"{found['cp used']:8.2f} {found['xoptim used']:8.2f}",
                flush=True,
            )
            ok = ok and ratios[1] < TIME_LIMIT and memory < MEMORY_LIMIT
        return ok


def main(kinds: list[str], layers: int, width: int, repeat: int) -> int:
    """Runs everything, returns an exit code."""
    print(
        f"{'weights':<20} {'files':<8} {'GB':>5}{'cp s':>8} {'cp+sync':>8} {'xoptim':>8}"
        f"{'/cp':>8} {'/cp+sync':>8} {'MB':>6}{'cp CPU':>8} {'CPU s':>8}"
    )
    results = [measure(kind, layers, width, repeat) for kind in kinds]
    ok = all(results)
    print("OK" if ok else "FAILED: more memory or more time than allowed")
    return 0 if ok else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Optimizes large models.")
    parser.add_argument("--layers", type=int, default=17)
    parser.add_argument("--width", type=int, default=5700)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kinds", default="", help="those that contain these words, ','")
    args = parser.parse_args()
    words = args.kinds.split(",")
    chosen = [kind for kind in KINDS if any(word in kind for word in words)]
    sys.exit(main(chosen, args.layers, args.width, args.repeat))
