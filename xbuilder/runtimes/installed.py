"""Reads the kernels of the installed onnxruntime."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from .kernel_table import KernelTable, key_of, shipped_kernels
from .processors import PROVIDERS

#: last version onnxruntime gives for a kernel that still exists
_FOREVER = 2**31 - 1
#: distributions that provide onnxruntime
_DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml")
#: a provider whose kernels cannot be listed without its library
_RISKY = "TensorrtExecutionProvider"
#: prints the kernels of a processor, the paths of the modules and the processor are its arguments
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from xbuilder.runtimes.installed import _read_here
table = _read_here(sys.argv[2])
print(json.dumps(table and table.data))
"""
#: first version, last one, types of each parameter
Row: TypeAlias = "tuple[int, int | None, dict[str, str]]"
_KEPT_DOMAINS = ("", "ai.onnx.ml", "com.microsoft")


@cache
def installed_version() -> str:
    """Version of onnxruntime, empty if it is not installed. When several distributions provide it,
    the one that Python imports."""
    found = []
    for name in _DISTRIBUTIONS:
        try:
            found.append(distribution(name))
        except PackageNotFoundError:
            continue
    if len(found) > 1:
        spec = find_spec("onnxruntime")
        place = Path(str(spec.origin)).parents[1] if spec is not None else None
        found.sort(key=lambda d: Path(str(d.locate_file(""))).resolve() != place)
    return found[0].version if found else ""


@cache
def kernel_table(processor: str) -> KernelTable:
    """The kernels of a processor: those of the installed onnxruntime if it lists them, otherwise
    those shipped with the package.

    :param processor: `"CPU"` or `"CUDA"`
    :raises OptionError: the kernels of this processor are not known
    """
    shipped = shipped_kernels(processor)
    installed = installed_version()
    if not installed or shipped.runtime == f"onnxruntime {installed}":
        return shipped
    found = read_installed(processor)
    return found if found is not None and found.operators else shipped


def read_installed(processor: str) -> KernelTable | None:
    """Reads the kernels of the installed onnxruntime.

    A build with TensorRT crashes when it lists its kernels and the library is missing, so another
    process asks it.

    :param processor: `"CPU"` or `"CUDA"`
    :return: the table, None if onnxruntime is not installed or does not list them
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    if _RISKY not in onnxruntime.get_available_providers():
        return _read_here(processor)
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), processor]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode or not answer.stdout.strip():
        return None
    data = json.loads(answer.stdout.splitlines()[-1])
    return None if data is None else KernelTable(data)


def _read_here(processor: str) -> KernelTable | None:
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        definitions = state.get_all_opkernel_def()
        schemas = state.get_all_operator_schema()
    except (ImportError, AttributeError, RuntimeError):
        return None
    own = {
        key_of(s.name, s.domain): s
        for s in sorted(schemas, key=lambda s: s.since_version)
        if not onnx.defs.has(s.name, s.domain)
    }
    kernels: dict[str, list[Row]] = defaultdict(list)
    for definition in definitions:
        if definition.provider == PROVIDERS[processor] and definition.domain in _KEPT_DOMAINS:
            key = key_of(definition.op_name, definition.domain)
            row = _row(definition, own.get(key))
            if all(row[2].values()):
                kernels[key].append(row)
    opsets = {
        domain: max(found)
        for domain in _KEPT_DOMAINS
        if (found := [s.since_version for s in schemas if s.domain == domain])
    }
    parameters = {k: " ".join(i.typeStr for i in s.inputs) for k, s in own.items() if k in kernels}
    return KernelTable(
        {
            "runtime": f"onnxruntime {installed_version()}",
            "provider": PROVIDERS[processor],
            "opsets": opsets,
            "kernels": {op: _merged(rows) for op, rows in sorted(kernels.items())},
            "parameters": dict(sorted(parameters.items())),
        }
    )


def _row(definition: Any, schema: Any) -> Row:
    """A kernel, without the types that the definition of the operator refuses."""
    since, until = definition.version_range
    allowed = {} if schema is None else {i.typeStr: set(i.types) for i in schema.inputs}
    types = {
        name: " ".join(_short(t) for t in kinds if t in allowed.get(name, kinds))
        for name, kinds in definition.type_constraints.items()
    }
    return since, None if until == _FOREVER else until, types


def _merged(rows: list[Row]) -> list[Row]:
    """Merges the kernels that have one type parameter and the same versions into one row."""
    found: dict[Any, Row] = {}
    for row in rows:
        since, until, types = row
        alone = len(types) == 1
        key = (since, until, *types) if alone else repr(row)
        if alone and key in found:
            ((name, text),) = types.items()
            joined = dict.fromkeys(f"{found[key][2][name]} {text}".split())
            row = since, until, {name: " ".join(joined)}
        found[key] = row
    return list(found.values())


def _short(name: str) -> str:
    """Short name of a type: `float` for `tensor(float)`; a sequence keeps its name."""
    return name[len("tensor(") : -1] if name.startswith("tensor(") else name
