"""One call that optimizes a model of any form, and checks and measures what it gives."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from xbuilder.errors import OptionError, XoptimError

from ..trust.verification import VerificationError
from ..trust.windows.validation import Validation
from .measure import measure_models
from .optimization import Optimization
from .result import OptimizedModel

#: arguments of the comparison of the results
_COMPARISON = ("sizes", "rtol", "atol", "seed")


def optimize(
    model: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    patterns: Any = "default",
    output: str | os.PathLike[str] | None = None,
    processor: str = "CPU",
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    verify: bool = False,
    validate: bool = False,
    measure: bool = False,
    **options: Any,
) -> OptimizedModel:
    """Optimizes a model: what ``xoptim optimize`` does, in Python.

    :param model: the path of a file, the bytes of a model, a ModelProto, an `onnx_ir.Model`, an
        ONNXProgram, or a `torch.nn.Module`, which is converted first
    :param args: positional arguments of a torch module, an example
    :param kwargs: its named arguments, likewise
    :param dynamic_shapes: its dynamic dimensions, see :func:`torch_interpreter.to_onnx`
    :param patterns: the rewrites: sets and names, such as `default+onnxruntime` for a model that
        onnxruntime runs; instances of patterns; None for the passes alone
    :param output: where the model is written, only if everything went well
    :param processor: the processors the model is meant for
    :param inputs: inputs by name for *verify* and *measure*, or several sets; others are drawn
    :param verify: runs both models and compares their outputs
    :param validate: checks each rewrite in its window, see :doc:`/verification`
    :param measure: measures the time of both models
    :param options: `sizes`, `rtol`, `atol`, `seed` of :func:`verify`; other ones of
        :class:`xoptim.tasks.optimization.Optimization`: `target_opset`, `trust_shapes`, `saving`...
    :return: the optimized model, its statistics and reports
    :raises VerificationError: the outputs differ, or the model does not run
    :raises WrongRewriteError: a rewrite is wrong, with *validate*
    :raises XoptimError: the model cannot be read or optimized, an option is not valid

    .. code-block:: python

        import xoptim

        done = xoptim.optimize("model.onnx", patterns="default+onnxruntime", verify=True)
        print(done)
        done.save("optimized.onnx")
    """
    how = {name: options.pop(name) for name in _COMPARISON if name in options}
    if how and not (verify or measure):
        raise OptionError(f"{', '.join(how)}: nothing is run without verify or measure.")
    known = {n for n in Optimization.__dataclass_fields__ if n not in {"model", "comparison"}}
    unknown = sorted(set(options) - known)
    if unknown:
        raise OptionError(f"optimize has no option {unknown[0]!r}, it has {sorted(known)}.")
    source = _source(model, args, kwargs, dynamic_shapes)
    if output is not None:
        options.setdefault("folder", Path(output).absolute().parent)
    task = Optimization(
        model=source,
        patterns=_patterns(patterns),
        processor=processor,
        comparison={"inputs": inputs, **how} if verify else None,
        validation=Validation() if validate is True else validate or None,
        **options,
    )
    done = task.run()
    if done.failure:
        raise VerificationError(done.failure)
    if measure:
        given = {n: v for n, v in how.items() if n in ("sizes", "seed")}
        names = "before", "after"
        done.latency = measure_models(source, done.stored, inputs=inputs, names=names, **given)
    if output is not None:
        done.save(output)
    return done


def _patterns(patterns: Any) -> Any:
    """The selection, `none` is another way to write None."""
    is_none = isinstance(patterns, str) and patterns.strip().lower() == "none"
    return None if is_none else patterns


def _source(model: Any, args: Any, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> Any:
    """The model as a path or a proto."""
    if _is_torch(model):
        if args is None and not kwargs:
            raise OptionError(
                f"{type(model).__name__} is a torch module: give args=, an example of its "
                "arguments, to convert it."
            )
        to_onnx = importlib.import_module("torch_interpreter").to_onnx
        return to_onnx(model, args, kwargs, dynamic_shapes=dynamic_shapes, optimize=False)
    if args is not None or kwargs or dynamic_shapes is not None:
        raise OptionError("args, kwargs and dynamic_shapes are for a torch module.")
    if isinstance(model, (str, os.PathLike)):
        return Path(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parsed(bytes(model))
    if type(model).__module__.startswith(("onnx_ir", "onnxscript")):
        import onnx_ir

        return onnx_ir.to_proto(model)
    return getattr(model, "model_proto", model)


def _parsed(content: bytes) -> onnx.ModelProto:
    """The model of a serialized one."""
    try:
        model = onnx.load_from_string(content)
    except Exception as e:
        raise XoptimError(f"these {len(content)} bytes are no ONNX model: {e}") from e
    return model


def _is_torch(model: Any) -> bool:
    """Whether a model is a module of torch, which is not imported for that."""
    return any(
        f"{c.__module__}.{c.__qualname__}" == "torch.nn.modules.module.Module"
        for c in type(model).__mro__
    )
