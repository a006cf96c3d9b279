"""Part of GraphBuilder: `g.op.Add(x, y)`, one method per operator, of any domain."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx

from ..errors import OptionError
from ..operators.op_schemas import schema_of
from ..operators.op_traits import AXES_INPUT_SINCE
from .graph_builder_making import BuilderMaking

_ANY = "AnyOpset"


@cache
def _why_not(op_type: str, opset: int) -> str:
    """The reason why an opset does not have an operator of the main domain, empty if it has."""
    if not onnx.defs.has(op_type):
        return "does not exist in the main domain"
    schema = schema_of(op_type, "", opset)
    if schema is None:
        newer = range(opset + 1, onnx.defs.onnx_opset_version() + 1)
        since = next((v for v in newer if schema_of(op_type, "", v) is not None), None)
        later = f", it does from opset {since}" if since else ""
        return f"does not exist in opset {opset} of the graph{later}"
    return f"does not exist any more in opset {opset} of the graph" if schema.deprecated else ""


class Opset:
    """Gives one method per operator.

    Inputs are names, numpy arrays (they become initializers) or None (missing). Names ending with
    `AnyOpset` (`ReduceSumAnyOpset`, `SqueezeAnyOpset`, `DFTAnyOpset`...) take the last signature of
    the operator and write the one of the opset of the graph.

    :param builder: where nodes are added
    :param allow_unknown: accepts operators onnx does not know and registers their domains
    :param registers_domains: registers the domains of the operators

    ::

        y = g.op.Transpose(x, perm=[1, 0])
        z = g.op.ReduceSumAnyOpset(y, np.array([1]), keepdims=0, outputs=["z"])
    """

    def __init__(
        self,
        builder: BuilderMaking,
        allow_unknown: bool = False,
        registers_domains: bool = False,
    ):
        self._builder = builder
        self._allow_unknown = allow_unknown
        self._registers_domains = registers_domains or allow_unknown

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_"):
            raise AttributeError(op_type)
        if op_type.endswith(_ANY):
            return lambda *args, **kwargs: self._any_opset(op_type[: -len(_ANY)], args, kwargs)
        return lambda *args, **kwargs: self._make(op_type, args, **kwargs)

    def _make(
        self,
        op_type: str,
        inputs: tuple[Any, ...],
        outputs: int | str | list[str] | None = None,
        name: str | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> str | tuple[str, ...]:
        if self._registers_domains:
            self._builder.add_domain(domain)
        if not self._allow_unknown and domain == "":
            reason = _why_not(op_type, self._builder.main_opset)
            if reason:
                raise OptionError(
                    f"Operator {op_type!r} {reason}; check its name, give a domain, or use anyop."
                )
        if outputs is None and op_type == "Split" and not domain:
            outputs = _parts(inputs, attributes)
        names = [self._input(i, name or op_type) for i in inputs]
        while names and names[-1] == "":
            names.pop()
        return self._builder.make_node(
            op_type,
            names,
            outputs=1 if outputs is None else outputs,
            domain=domain,
            name=name,
            **attributes,
        )

    def _input(self, value: Any, source: str) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return self._builder.make_initializer("", value, source=source)

    def _any_opset(self, op_type: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        opset = self._builder.main_opset
        if op_type == "DFT":
            return self._dft(opset, inputs, kwargs)
        if op_type not in AXES_INPUT_SINCE:
            raise OptionError(
                f"{op_type}{_ANY} does not exist, known: "
                f"{', '.join(f'{n}{_ANY}' for n in [*AXES_INPUT_SINCE, 'DFT'])}."
            )
        if opset >= AXES_INPUT_SINCE[op_type] or len(inputs) < 2 or inputs[1] is None:
            return self._make(op_type, inputs, **kwargs)
        return self._make(op_type, inputs[:1], axes=self._axes(op_type, inputs[1]), **kwargs)

    def _axes(self, op_type: str, axes: Any) -> list[int]:
        if isinstance(axes, str):
            value = self._builder.graph.constants.value(axes)
            if value is None:
                raise OptionError(
                    f"The axes of {op_type} must be constant for opset "
                    f"{self._builder.main_opset}, {axes!r} is not."
                )
            axes = value
        return [int(i) for i in np.asarray(axes).ravel()]

    def _dft(self, opset: int, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if opset >= 20 or len(inputs) < 3 or inputs[2] is None:
            return self._make("DFT", inputs, **kwargs)
        return self._make("DFT", inputs[:2], axis=self._axes("DFT", inputs[2])[0], **kwargs)


def _parts(inputs: tuple[Any, ...], attributes: dict[str, Any]) -> int:
    """Number of results of a Split when its outputs are not named: as many as parts."""
    sizes = inputs[1] if len(inputs) > 1 else attributes.get("split")
    if sizes is not None and not isinstance(sizes, str):
        return len(sizes)
    return int(attributes.get("num_outputs", 1))
