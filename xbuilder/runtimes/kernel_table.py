"""The kernels of an execution provider: for each operator, the opsets and the types they accept."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

from ..errors import OptionError
from .processors import PROVIDERS

#: kernels shipped with the package, one file for each processor
DATA = Path(__file__).parent / "data"
_TYPES: dict[str, int] = {name.lower(): value for name, value in TensorProto.DataType.items()}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of an operator.

    :param since: first version of the domain it implements
    :param until: last one, None if it is still there
    :param types: for each type parameter of the operator (`"T"`), the types it accepts, as onnx
        names them: `"float"`, `"int64"`, `"seq(tensor(float))"`
    """

    since: int
    until: int | None
    types: Mapping[str, tuple[str, ...]]

    def is_for(self, opset: int) -> bool:
        """Whether the kernel implements a version of the domain."""
        return self.since <= opset and (self.until is None or opset <= self.until)

    def accepts(self, types: Mapping[str, int]) -> bool:
        """Whether the kernel accepts element types.

        :param types: element type of each type parameter; the answer is no for 0, an unknown type
        """
        return all(
            name not in self.types or any(_TYPES.get(t) == kind for t in self.types[name])
            for name, kind in types.items()
        )


class KernelTable:
    """The kernels of an execution provider.

    :param data: content of the file: `runtime` (name and version), `provider`, `kernels` (for each
        operator, `"Relu"` or `"com.microsoft::Gelu"`, rows with the first version, the last one or
        None, and the types of each parameter), `parameters` (the type parameter of each input of
        the operators onnx does not know), `complete` (false when other operators have kernels)
    """

    def __init__(self, data: Mapping[str, Any]):
        self.data = data
        self.runtime: str = data["runtime"]
        self.provider: str = data["provider"]
        #: whether every kernel is listed
        self.is_complete: bool = data.get("complete", True)
        self._found: dict[str, Sequence[Kernel]] = {}

    @property
    def operators(self) -> Collection[str]:
        """Every operator that has a kernel."""
        kernels: Mapping[str, Any] = self.data["kernels"]
        return kernels.keys()

    def knows(self, op_type: str, domain: str = "") -> bool:
        """Whether an operator has a kernel, for some types."""
        return key_of(op_type, domain) in self.operators

    def of(self, op_type: str, domain: str = "") -> Sequence[Kernel]:
        """The kernels of an operator, possibly none."""
        key = key_of(op_type, domain)
        if key not in self._found:
            rows = self.data["kernels"].get(key, ())
            self._found[key] = [
                Kernel(since, until, {n: tuple(t.split()) for n, t in types.items()})
                for since, until, types in rows
            ]
        return self._found[key]

    def runs(self, op_type: str, domain: str, opset: int, input_types: Sequence[int]) -> bool:
        """Whether a kernel runs an operator on inputs of some types.

        :param op_type: operator type
        :param domain: domain
        :param opset: version of the domain
        :param input_types: element type of each input, 0 if it is missing or not known, in which
            case the input is not compared
        """
        names = self._parameters(op_type, domain, opset)
        types = {n: t for n, t in zip(names, input_types, strict=False) if t}
        since = _since(op_type, domain, opset)
        return any(k.is_for(since) and k.accepts(types) for k in self.of(op_type, domain))

    def _parameters(self, op_type: str, domain: str, opset: int) -> Sequence[str]:
        """Type parameter of each input."""
        own: str | None = self.data["parameters"].get(key_of(op_type, domain))
        return _schema_parameters(op_type, domain, opset) if own is None else own.split()


def key_of(op_type: str, domain: str) -> str:
    """Key of an operator in the table."""
    return f"{domain}::{op_type}" if domain not in ("", "ai.onnx") else op_type


@cache
def _schema_parameters(op_type: str, domain: str, opset: int) -> Sequence[str]:
    if not onnx.defs.has(op_type, opset, domain):
        return ()
    return [i.type_str for i in onnx.defs.get_schema(op_type, opset, domain).inputs]


@cache
def _since(op_type: str, domain: str, opset: int) -> int:
    """Version of the definition of an operator in an opset, the one kernels are registered for."""
    if not onnx.defs.has(op_type, opset, domain):
        return opset
    return int(onnx.defs.get_schema(op_type, opset, domain).since_version)


@cache
def shipped_table(processor: str) -> KernelTable:
    """The table shipped with the package.

    :param processor: `"CPU"` or `"CUDA"`
    :raises OptionError: there is no table for this processor
    """
    path = DATA / f"{processor.lower()}.json"
    if processor not in PROVIDERS:
        raise OptionError(
            f"The kernels of processor {processor!r} are not known: expected one of "
            f"{sorted(PROVIDERS)}."
        )
    return KernelTable(json.loads(path.read_text(encoding="utf-8")))
