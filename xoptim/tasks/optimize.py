"""One call that optimizes a model of any form, and checks and measures what it gives."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xbuilder.errors import OptionError

from ..catalogue.targets import target_options
from ..surgery.signature import SignatureChanges
from .optimization import Optimization
from .result import OptimizedModel
from .sources import model_source

if TYPE_CHECKING:
    from ..trust.windows.validation import Validation

#: arguments of the comparison of the results
COMPARISON = ("sizes", "rtol", "atol", "seed")
#: arguments that change the signature -> their names in SignatureChanges
SIGNATURE = {
    "set_dims": "sizes",
    "input_shapes": "shapes",
    "rename_dims": "dims",
    "rename": "names",
    "keep_outputs": "outputs",
    "inputs_order": "inputs",
    "cast": "types",
}


def optimize(
    model: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    patterns: Any = "default",
    output: str | os.PathLike[str] | None = None,
    processor: str = "CPU",
    target: str | None = None,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    verify: bool = False,
    validate: bool = False,
    measure: bool = False,
    keep_faster: float = 0.0,
    **options: Any,
) -> OptimizedModel:
    """Optimizes a model: what ``xoptim optimize`` does, in Python.

    :param model: the path of a file, bytes, a ModelProto, an `onnx_ir.Model`, an ONNXProgram, or a
        `torch.nn.Module`, which is converted first
    :param args: positional arguments of a torch module, an example
    :param kwargs: its named arguments
    :param dynamic_shapes: see :func:`torch_interpreter.to_onnx`
    :param patterns: sets and names, such as `default+onnxruntime` for a model that onnxruntime
        runs; instances of patterns; None for the passes alone
    :param output: where the model is written, if everything went well
    :param processor: the processors the model is meant for
    :param target: what runs the model: `any`, `onnxruntime`, `onnxruntime-cuda`, `openvino`,
        `tensorrt`. It chooses the sets in place of `default` and the operators that may be written
    :param inputs: inputs by name, or several sets; the others are drawn
    :param verify: runs both models and compares their outputs
    :param validate: checks each rewrite in its window
    :param measure: measures the time of both models
    :param keep_faster: seconds to look for what is measured the fastest, 0 does not
    :param options: `sizes`, `rtol`, `atol`, `seed` of :func:`verify`; changes made first to the
        signature, `set_dims={"batch": 1}`, `input_shapes`, `rename_dims`, `rename={"old": "new"}`,
        `keep_outputs`, `inputs_order`, `cast={"x": "float16"}`, `dynamic={"x": ("batch", 3)}`;
        those of :class:`xoptim.tasks.optimization.Optimization`
    :return: the model, its statistics and reports
    :raises VerificationError: the outputs differ, or the model does not run
    :raises WrongRewriteError: a rewrite is wrong, with *validate*
    :raises XoptimError: the model cannot be read or optimized, an option is not valid

    ::

        done = xoptim.optimize("model.onnx", target="onnxruntime", verify=True)
        print(done)
    """
    how = {"inputs": inputs, **_comparison(options, verify or measure or keep_faster > 0)}
    task = _task(
        _with_signature(options),
        output,
        model=model_source(model, args, kwargs, dynamic_shapes),
        **_chosen(target, patterns, processor, options.pop("public_operators", False)),
        comparison=how if verify else None,
        measured=_measured(how) if measure or keep_faster > 0 else None,
        validation=_validation() if validate else None,
    )
    return _saved(_fastest(task, keep_faster) if keep_faster > 0 else task.run(), output)


def _fastest(task: Optimization, seconds: float) -> OptimizedModel:
    """The fastest of the measured models, see :func:`optimize`."""
    from .keep_faster import keep_faster

    return keep_faster(task, seconds)


def _validation() -> Validation:
    """The observer that runs each rewrite in its window."""
    from ..trust.windows.validation import Validation

    return Validation()


def _saved(done: OptimizedModel, output: str | os.PathLike[str] | None) -> OptimizedModel:
    """The model that was optimized, written unless its outputs differ.

    :raises VerificationError: they differ
    """
    if done.failure:
        from ..trust.sessions.runtime import VerificationError

        raise VerificationError(done.failure)
    if output is not None:
        done.save(output)
    return done


def _with_signature(options: dict[str, Any]) -> dict[str, Any]:
    """The options, those that change the signature in one of them."""
    changes = {field: options.pop(name) for name, field in SIGNATURE.items() if name in options}
    if changes:
        options["signature"] = SignatureChanges(**changes)
    return options


def _chosen(target: str | None, patterns: Any, processor: str, public: bool) -> dict[str, Any]:
    """The options that say which rewrites may apply, for an optimization."""
    other_set = "onnxruntime" if patterns == "default" and target is None else ""
    chosen = target_options(target, _patterns(patterns), processor, public)
    return {**chosen, "other_set": other_set}


def _measured(how: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the measure among those of the comparison."""
    return {name: how[name] for name in ("inputs", "sizes", "seed") if name in how}


def _comparison(options: dict[str, Any], runs: bool) -> dict[str, Any]:
    """Takes the arguments of the comparison out of the options.

    :raises OptionError: there are some, and nothing is run
    """
    how = {name: options.pop(name) for name in COMPARISON if name in options}
    if how and not runs:
        raise OptionError(f"{', '.join(how)}: nothing is run without verify or measure.")
    return how


def _task(
    options: dict[str, Any], output: str | os.PathLike[str] | None, **chosen: Any
) -> Optimization:
    """The optimization with these options.

    :raises OptionError: one of them is unknown
    """
    known = sorted(set(Optimization.__dataclass_fields__) - set(chosen))
    unknown = [name for name in options if name not in known]
    if unknown:
        raise OptionError(
            f"optimize has no option {unknown[0]!r}, it has {sorted([*known, *SIGNATURE])}."
        )
    if output is not None:
        options.setdefault("folder", Path(output).absolute().parent)
    return Optimization(**chosen, **options)


def _patterns(patterns: Any) -> Any:
    """The selection, `none` is another way to write None."""
    is_none = isinstance(patterns, str) and patterns.strip().lower() == "none"
    return None if is_none else patterns
