"""The kernels of an execution provider: for each operator, the opsets and the types they accept."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from onnx import TensorProto

from ..errors import OptionError
from ..operators.op_schemas import schema_of
from .processors import PROVIDERS

#: kernels shipped with the package, one file for each processor
DATA = Path(__file__).parent / "data"
_TYPES: dict[str, int] = {name.lower(): value for name, value in TensorProto.DataType.items()}


class Kernel(NamedTuple):
    """One kernel of an operator.

    :param since: first definition of the operator it implements, the version of the domain that
        introduced it
    :param until: last version of the domain it is for, None if the kernel is not closed: it is then
        for definition *since* only
    :param types: for each type parameter of the operator (`"T"`), the types it accepts, as onnx
        names them: `"float"`, `"int64"`, `"seq(tensor(float))"`
    """

    since: int
    until: int | None
    types: Mapping[str, tuple[str, ...]]

    def is_for(self, definition: int) -> bool:
        """Whether the kernel implements a definition of the operator.

        onnxruntime does not know whether a kernel without end implements the definitions that
        came after it was written, and only takes it for its own.

        :param definition: version of the domain that introduced the definition

        >>> kernel = Kernel(23, None, {})
        >>> kernel.is_for(23), kernel.is_for(24)
        (True, False)
        """
        if self.until is None:
            return definition == self.since
        return self.since <= definition <= self.until

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
        the operators onnx does not know), `opsets` (the newest version of each domain), `complete`
        (false when other operators have kernels)
    """

    def __init__(self, data: Mapping[str, Any]):
        self.data = data
        #: newest version of each domain that the runtime supports, where it is known
        self.opsets: Mapping[str, int] = data.get("opsets", {})
        self.runtime: str = data["runtime"]
        self.provider: str = data["provider"]
        #: whether every kernel is listed
        self.is_complete: bool = data.get("complete", True)
        self._found: dict[str, Sequence[Kernel]] = {}
        # by operator, domain, opset and types
        self._answers: dict[tuple[object, ...], bool] = {}

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

    def runs(
        self,
        op_type: str,
        domain: str,
        opset: int,
        input_types: Sequence[int],
        output_types: Sequence[int] = (),
    ) -> bool:
        """Whether a kernel runs an operator on inputs of some types. The runtime may load operators
        without kernel: see :func:`xbuilder.nodes.loading.loads`.

        :param op_type: operator type
        :param domain: domain
        :param opset: version of the domain
        :param input_types: element type of each input, 0 if it is missing or not known, in which
            case the input is not compared
        :param output_types: the same for the outputs, where the inputs do not imply them
        """
        key = op_type, domain, opset, tuple(input_types), tuple(output_types)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._runs(*key)
        return answer

    def _runs(
        self,
        op_type: str,
        domain: str,
        opset: int,
        input_types: Sequence[int],
        output_types: Sequence[int],
    ) -> bool:
        """Same as :meth:`runs`, which keeps the answers."""
        definition, inputs, outputs = _definition(op_type, domain, opset)
        own: str | None = self.data["parameters"].get(key_of(op_type, domain))
        pairs = [
            *zip(inputs if own is None else own.split(), input_types, strict=False),
            *zip(outputs, output_types, strict=False),
        ]
        types = {name: kind for name, kind in pairs if kind}
        kernels = self.of(op_type, domain)
        if definition is None:
            # kernels start where the definitions of the runtime do
            definition = max((k.since for k in kernels if k.since <= opset), default=opset)
        return any(k.is_for(definition) and k.accepts(types) for k in kernels)


def key_of(op_type: str, domain: str) -> str:
    """Key of an operator in the table."""
    return f"{domain}::{op_type}" if domain not in ("", "ai.onnx") else op_type


@cache
def _definition(
    op_type: str, domain: str, opset: int
) -> tuple[int | None, Sequence[str], Sequence[str]]:
    """The definition of an operator in an opset, None if onnx does not know it, and the type
    parameter of each input and of each output."""
    schema = schema_of(op_type, domain, opset)
    if schema is None:
        return None, (), ()
    inputs = [i.type_str for i in schema.inputs]
    return schema.since_version, inputs, [o.type_str for o in schema.outputs]


@cache
def shipped_kernels(processor: str) -> KernelTable:
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
