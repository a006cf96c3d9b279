"""Converts operators without converter with torch.onnx and onnxscript's library.

Each of them is exported alone by ``torch.onnx.export`` and the resulting nodes are added to the
graph.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Mapping
from typing import Any

import torch

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError

from ..common.errors import FunctionNotFoundError
from ..writing.registry import OutputFacts
from ..writing.symbols import SymScalar
from .dispatcher import Dispatcher, UserConverter, canonical_name

# size given to a dimension nothing is known about, in the tensors passed to torch.onnx
_ANY_SIZE = 5


class OnnxScriptDispatcher(Dispatcher):
    """Converts the operators without converter with onnxscript's torch library.

    :param registered_functions: converters of the user, they come first
    :param verbose: prints the operators converted this way
    :raises OptionError: onnxscript is not installed

    ::

        to_onnx(model, (x,), dispatcher=OnnxScriptDispatcher())
    """

    def __init__(
        self, registered_functions: Mapping[Any, UserConverter] | None = None, verbose: int = 0
    ) -> None:
        super().__init__(registered_functions, verbose=verbose)
        if importlib.util.find_spec("onnxscript") is None:
            raise OptionError("OnnxScriptDispatcher needs onnxscript: pip install onnxscript.")

    def fallback(
        self, name: Any, fct: UserConverter | None, args: Any, kwargs: Any, builder: Any
    ) -> UserConverter | None:
        """A converter calling torch.onnx for an operator of torch without converter."""
        if fct is not None or not isinstance(name, torch._ops.OpOverload):
            return fct
        if self.verbose:
            print(f"[OnnxScriptDispatcher] {name}")
        return _make_converter(name)


class _OneOperator(torch.nn.Module):
    """A module calling one operator. Its tensors are inputs, the other arguments are constants."""

    def __init__(self, op: torch._ops.OpOverload, args: Any, kwargs: Any) -> None:
        super().__init__()
        self.op = op
        leaves, self.tree = torch.utils._pytree.tree_flatten((args, kwargs))
        self.leaves = leaves

    def forward(self, *tensors: torch.Tensor) -> Any:
        values = iter(tensors)
        leaves = [next(values) if isinstance(v, str) else v for v in self.leaves]
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.tree)
        return self.op(*args, **kwargs)


def _example(fake: torch.Tensor) -> tuple[torch.Tensor, dict[int, Any]]:
    """A tensor of the same type and rank, and its dynamic dimensions."""
    sizes: list[int] = []
    dynamic: dict[int, Any] = {}
    for axis, dim in enumerate(fake.shape):
        if isinstance(dim, torch.SymInt) and not dim.node.expr.is_number:
            dynamic[axis] = torch.export.Dim.DYNAMIC
            hint = dim.node.hint if dim.node.has_hint() else _ANY_SIZE
            sizes.append(max(int(hint), 2))
        else:
            sizes.append(int(dim))
    return torch.zeros(sizes, dtype=fake.dtype), dynamic


def _tensor_nodes(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The tensors among the arguments of a node, in order, with repetitions."""
    leaves = torch.utils._pytree.tree_leaves((node.args, dict(node.kwargs)))
    return [n for n in leaves if isinstance(n, torch.fx.Node)]


def _make_converter(op: torch._ops.OpOverload) -> UserConverter:
    def convert(
        g: GraphBuilder,
        sts: OutputFacts | None,
        outputs: list[str] | None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        flat = torch.utils._pytree.tree_leaves((list(args), kwargs))
        if sts is None or sts.node is None or any(isinstance(v, SymScalar) for v in flat):
            raise FunctionNotFoundError(
                f"No converter for operator {canonical_name(op)!r}, and torch.onnx cannot replace "
                f"it with symbolic numbers among its arguments: {args} {kwargs}."
            )
        fakes = [n.meta["val"] for n in _tensor_nodes(sts.node)]
        model = _export_alone(op, args, kwargs, fakes, g.main_opset)
        inner = GraphBuilder(model)
        names = [v for v in flat if isinstance(v, str) and g.has_type(v)]
        given = outputs or [g.unique_name(n) for n in inner.output_names]
        if len(given) != len(inner.output_names):
            raise FunctionNotFoundError(
                f"torch.onnx gives {len(inner.output_names)} results for "
                f"{canonical_name(op)!r}, {len(given)} are expected."
            )
        added = g.make_nodes(inner, names, given, prefix=f"{sts.node.name}_")
        return [added] if isinstance(added, str) and len(sts.types) != 1 else added

    return convert


def _export_alone(
    op: torch._ops.OpOverload, args: Any, kwargs: Any, fakes: list[Any], opset: int
) -> Any:
    """Exports one operator with torch.onnx, silently."""
    examples = [_example(f) for f in fakes]
    dynamic = (tuple(d for _, d in examples),)
    module = _OneOperator(op, list(args), kwargs)
    tensors = tuple(t for t, _ in examples)
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                tensors,
                dynamic_shapes=dynamic if any(d for _, d in examples) else None,
                opset_version=opset,
                dynamo=True,
                verbose=False,
            )
    except Exception as e:
        raise FunctionNotFoundError(
            f"No converter for operator {canonical_name(op)!r} and torch.onnx failed: {e}"
        ) from e
    finally:
        logger.setLevel(level)
    if program is None:
        raise FunctionNotFoundError(f"torch.onnx gives no program for {canonical_name(op)!r}.")
    return program.model_proto
