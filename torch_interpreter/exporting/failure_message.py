"""Explains why torch.export failed: the dimension, the line of the model, what to try."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..common.errors import first_line
from ..common.export_options import ExportOptions
from ..common.types import not_dense
from ..inputs.dynamic_shapes import is_dynamic, spec_items, user_name
from ..inputs.specifications import combined_arguments
from ..patches.assumed_sizes import AssumedSizes, is_of_user, location

_DRAFT = "torch.export.draft_export(model, args) lists all the problems at once."
_ADVICE = (
    "What to try: ExportOptions(strategy='fallback') tries several strategies; "
    f"strategy='strict' goes through dynamo; {_DRAFT}"
)
_SPECIALISED = (
    "A dimension declared dynamic became a constant or is tied to another one: use Dim.AUTO "
    "for it, or leave it static."
)
#: largest number of lines that make a dimension a constant in a message
_LINES = 4
_HINTS = (
    (
        ("data-dependent", "DataDependent", "GuardOnDataDependent"),
        "A python decision depends on the content of a tensor: use torch.cond, torch.where or "
        "torch._check to state what is true. ExportOptions(strategy='example') takes the branch of "
        "the arguments, and names each line that decides so.",
    ),
    (
        (
            "Constraints violated",
            "specialized",
            "inferred a static shape",
            "not valid for all",
            "ConstraintViolation",
        ),
        _SPECIALISED,
    ),
    (
        ("unhashable type: non-nested Sym",),
        "A dynamic dimension is no key of a dictionary and no element of a set: leave it static, "
        "or look the value up in a tensor.",
    ),
    (
        ("Unsupported input type <class 'numpy.",),
        "Arguments are torch tensors: torch.from_numpy(array).",
    ),
    (
        ("np.ndarray of type numpy.object_",),
        "numpy makes no array from a dynamic dimension: call the same function of torch.",
    ),
    (
        ("aten._to_sparse", "aten._sparse", "aten._nested"),
        "ONNX has no sparse and no nested tensor: compute with dense ones.",
    ),
    (
        ("PackedParamsBase",),
        "torch packs the weights of the modules of torch.ao.quantization: export the float model "
        "and quantize the ONNX model, or export the model with its fake quantizers.",
    ),
    (
        ("For combine_mode='pointwise'",),
        "torch runs it on a GPU only: combine_mode='generic' does the same on any device.",
    ),
    (
        ("found at least two devices",),
        "The weights and the arguments must be on one device. Those on device meta have no data: "
        "ExportOptions(fake=True) exports without any.",
    ),
    (
        (
            "functorch",
            "Cannot access data pointer of Tensor that doesn't have storage",
            "Cannot access storage of TensorWrapper",
            "'Tensor' object has no attribute 'constant'",
            "a fake tensor in the exported program constant's list",
            "torch.autograd.grad",
        ),
        "torch.export does not compute gradients (torch.func.grad, jacrev, torch.autograd.grad), "
        "nor vmap of a convolution with a dynamic batch: write the formula of the gradient, and "
        "leave the batch static.",
    ),
    (("dynamic_shapes",), "dynamic_shapes must have the structure of the arguments."),
)
pytree: Any = torch.utils._pytree


class ArgumentLeaf(NamedTuple):
    """A leaf of the arguments.

    :param name: how a reader finds it, ``cache.key_cache[0]``
    :param source: how torch calls it
    :param value: its value
    :param spec: specification of its dimensions
    """

    name: str
    source: str
    value: Any
    spec: Any

    def dimensions(self) -> dict[str, str]:
        """The dynamic dimensions: how torch calls them, how the user does."""
        rank = self.value.ndim if isinstance(self.value, torch.Tensor) else 0
        found = {}
        for axis, asked in spec_items(self.spec, rank):
            if is_dynamic(asked):
                name, place = user_name(asked), f"{axis} of {self.name}"
                text = f"{name!r} ({place})" if name else place
                found[f"{self.source}.size()[{axis}]"] = text
        return found


def argument_leaves(
    mod: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], specs: Sequence[Any]
) -> list[ArgumentLeaf]:
    """The leaves of the arguments of a model, none if a class among them has no keys.

    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    :param specs: specification of every leaf
    """
    try:
        found, _ = pytree.tree_flatten_with_path(combined_arguments(mod, args, kwargs))
    except ValueError:
        return []
    return [
        ArgumentLeaf(
            f"{path[0].key}{pytree.keystr(path[1:])}", f"L{pytree.keystr(path)}", value, spec
        )
        for (path, value), spec in zip(found, specs, strict=False)
    ]


def failure_message(
    mod: torch.nn.Module,
    failures: Sequence[tuple[ExportOptions, Exception]],
    constants: Sequence[AssumedSizes],
    leaves: Sequence[ArgumentLeaf],
) -> str:
    """The message of the error when no strategy works.

    :param mod: the model
    :param failures: the options that were tried and their errors, at least one
    :param constants: what torch assumed each time
    :param leaves: the leaves of the arguments
    """
    hints = [*_not_dense(mod, leaves), *_hints(e for _, e in failures)]
    if _SPECIALISED in hints:
        names = {source: text for leaf in leaves for source, text in leaf.dimensions().items()}
        texts = dict.fromkeys(text for assumed in constants for text in assumed.texts(names))
        sizes = {size for assumed in constants for size in assumed.constants}
        hints = [*list(texts)[:_LINES], *_static(leaves, sizes), *hints]
    if len(failures) > 1:
        rows = [f"  {o.label}: {first_line(e)}" for o, e in failures]
        advice = [*_raised(failures[0][1]), *hints, f"What to try: {_DRAFT}"]
        return "\n".join(["torch.export failed with every strategy:", *rows, *advice])
    options, e = failures[0]
    message = "\n".join([f"{type(e).__name__}: {e}", *_raised(e), *hints, _ADVICE])
    return f"torch.export failed (strategy {options.label}).\n{message}"


def _hints(errors: Iterable[Exception]) -> list[str]:
    """The hints that apply to some errors, each once."""
    texts = [f"{type(e).__name__}: {e}" for e in errors]
    return [hint for keys, hint in _HINTS if any(k in t for k in keys for t in texts)]


def _not_dense(mod: torch.nn.Module, leaves: Sequence[ArgumentLeaf]) -> list[str]:
    """The arguments and the weights whose elements are not all in memory, one after the other."""
    held = ((f"{path}.{n}".lstrip("."), v) for path, n, v in _tensors(mod))
    named = [*((leaf.name, leaf.value) for leaf in leaves), *held]
    found = ((name, not_dense(v)) for name, v in named if isinstance(v, torch.Tensor))
    return [f"{name} {text}" for name, text in found if text]


def _tensors(mod: torch.nn.Module) -> Iterator[tuple[str, str, Any]]:
    """The path of a module, the name and the value of what it holds."""
    for path, module in mod.named_modules():
        for values in (module._parameters, module._buffers, vars(module)):
            yield from ((path, name, value) for name, value in values.items())


def _raised(error: Exception) -> list[str]:
    """The line of the model that raises an error, unless its message has the file."""
    found, trace = None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        package = str(frame.f_globals.get("__name__")).split(".")[0]
        if is_of_user(frame) and package not in sys.stdlib_module_names:
            found = frame, trace.tb_lineno
        trace = trace.tb_next
    if found is None or found[0].f_code.co_filename in str(error):
        return []
    return [f"It was raised at {location(*found)}"]


def _static(leaves: Sequence[ArgumentLeaf], sizes: set[int]) -> list[str]:
    """The arguments the user gave no dynamic dimension, which may be what makes the dimensions of
    the others constants."""
    static = [
        leaf.name
        for leaf in leaves
        if isinstance(leaf.value, torch.Tensor)
        and not leaf.dimensions()
        and not sizes.isdisjoint(leaf.value.shape)
    ]
    if not static:
        return []
    several = f" and {len(static) - 1} more arguments have" if len(static) > 1 else " has"
    return [
        f"{static[0]}{several} no dynamic dimension and one of these sizes: give theirs in "
        "dynamic_shapes too, if they change together."
    ]


@contextlib.contextmanager
def without_printed_graphs() -> Iterator[None]:
    """Keeps torch.export from printing the part of the graph that precedes a failure: the message
    has the line of the model, and a model may be exported several times."""
    from torch.export import _trace  # torch imports it at the first export

    scope: dict[str, Any] = _trace.__dict__
    scope["print"] = lambda *values, **options: None
    try:
        yield
    finally:
        del scope["print"]
