"""Functions of torch that check the content of their tensors, which no graph can do.

``torch.cov`` and ``torch.corrcoef`` look at the number of observations in a tensor,
``gaussian_nll_loss`` at the signs of the variances, ``interpolate`` at those of its sizes,
``view`` whether a size that is read from a tensor is 1. Here, they compute the same without a look:
the model does not refuse what torch refuses.

So does a model, in ``assert (x > 0).all()``, ``assert torch.allclose(x, y)`` or
``if x.isnan().any(): raise ValueError``. Such a check passes: its condition is the one that does
not raise.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import FrameType, ModuleType
from typing import Any

import torch
from torch._prims_common import make_contiguous_strides_for
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from .assumed_sizes import is_of_user
from .attributes import patched

_UNTYPED: Any = torch
_EQUAL = torch.equal
#: instructions that do nothing, that ask for a truth value before a jump, that leave a block, that
#: look at an error
_NO_STEPS = ("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN")
_ASKING = ("TO_BOOL", "COMPARE_OP")
_ENTERING = ("BEFORE_WITH", "LOAD_SPECIAL")
_ELSEWHERE = ("RETURN_VALUE", "RETURN_CONST", "FOR_ITER", "YIELD_VALUE", "SEND", *_ENTERING)
_CATCHING = ("CHECK_EXC_MATCH", "CHECK_EG_MATCH")
#: instructions between two context managers of a line
_APART = ("BEFORE_WITH", "POP_TOP", "STORE_")
#: methods whose errors tell Python that there is nothing, or nothing more
_ENDING = frozenset(("__getattr__", "__getattribute__", "__getitem__", "__missing__", "__next__"))
_FUNCTIONS: Any = torch.nn.functional
_META: Any = importlib.import_module("torch._meta_registrations")


def _observations(x: torch.Tensor) -> torch.Tensor:
    """One variable for each row."""
    return x if x.ndim == 2 else x.reshape(1, -1)


def _cov(
    input: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """The covariances of the rows, with the frequencies and the weights of their values."""
    x = _observations(input)
    weights = [w for w in (fweights, aweights) if w is not None]
    if weights:
        weight = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total: Any = weight.sum()
        average = (x * weight).sum(1) / total
        lost = correction if aweights is None else correction * (weight * aweights).sum() / total
        degrees: Any = torch.clamp(total - lost, min=0)
    else:
        weight = None
        average = x.sum(1) / x.shape[1]
        degrees = _UNTYPED.sym_max(x.shape[1] - correction, 0)
        degrees = _UNTYPED.full((), degrees, dtype=average.real.dtype)
    centered = x - average.unsqueeze(1)
    weighted = centered if weight is None else centered * weight
    return torch.true_divide(centered @ weighted.mH, degrees).squeeze()


def _corrcoef(input: torch.Tensor) -> torch.Tensor:
    """The covariances over the standard deviations."""
    c = _cov(input)
    if c.ndim == 0:
        return c / c
    deviations = torch.sqrt(c.diagonal().real)
    found = c / deviations.reshape(-1, 1) / deviations.reshape(1, -1)
    if not found.is_complex():
        return found.clip(-1, 1)
    return torch.complex(found.real.clip(-1, 1), found.imag.clip(-1, 1))


def _gaussian_nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    var: torch.Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> torch.Tensor:
    """The negative log-likelihood of a normal law; a negative variance is *eps*, not an error."""
    if isinstance(var, float):
        var = var * torch.ones_like(input)
    if var.ndim == input.ndim - 1:
        var = var.unsqueeze(-1)
    variance = var.clamp(min=eps)
    loss = 0.5 * (torch.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _allclose(
    input: torch.Tensor,
    other: torch.Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> torch.Tensor:
    """Whether two tensors are close, as a tensor: only the model asks for its truth value."""
    return torch.isclose(input, other, rtol, atol, equal_nan).all()


def _equal(input: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have one shape and the same elements, a decision like any other."""
    try:
        return _EQUAL(input, other)
    except DataDependentOutputException:  # they are not constants
        return input.shape == other.shape and bool((input == other).all())


def _resized(original: Callable[..., Any]) -> Callable[..., Any]:
    """The sizes of a resized tensor, which are positive, even read from a tensor."""

    def call(input_size: Any, output_size: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        for size in output_size:
            _UNTYPED._check(size > 0)
        return original(input_size, output_size, *args, **kwargs)

    return call


def _viewed(original: Callable[..., Any]) -> Callable[..., Any]:
    """A view, whose strides no graph keeps: those of a contiguous tensor if they depend on data."""

    def call(a: Any, shape: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(a, shape, *args, **kwargs)
        except GuardOnDataDependentSymNode:
            return a.as_strided(shape, make_contiguous_strides_for(shape))

    return call


def passing_outcome(frame: FrameType) -> bool | None:
    """The truth value that does not raise an error, when a frame asks for the one of a condition
    and the other one raises right after; None if it decides of anything else.

    :param frame: the frame
    """
    steps, places = list[dis.Instruction](), dict[int, int]()
    for step in dis.get_instructions(frame.f_code):
        places[step.offset] = len(steps)
        steps.extend([] if step.opname in _NO_STEPS else [step])
    place = places.get(frame.f_lasti, len(steps))
    if place + 1 < len(steps) and steps[place].opname in _ASKING:
        place += 1
    jump = steps[place].opname if place < len(steps) else ""
    if not jump.startswith("POP_JUMP") or not jump.endswith(("IF_TRUE", "IF_FALSE")):
        return None
    jumps_on = jump.endswith("IF_TRUE")
    falls = _raises(steps[place + 1 :])
    if falls == _raises(steps[places.get(steps[place].argval, len(steps)) :]):
        return None
    return jumps_on if falls else not jumps_on


def checked_outcome(frame: FrameType) -> bool | None:
    """The truth value that does not raise an error, when a frame of the model only checks a
    condition, and no function of the model may catch the error; None otherwise.

    :param frame: the frame
    """
    return passing_outcome(frame) if _is_of_model(frame) and not _is_caught(frame) else None


def _raises(steps: Sequence[dis.Instruction]) -> bool:
    """Whether some instructions raise an error without any other decision."""
    for step in steps:
        if step.opname == "RAISE_VARARGS":
            return True
        if "JUMP" in step.opname or step.opname in _ELSEWHERE:
            return False
    return False


def _is_of_model(frame: FrameType) -> bool:
    """Whether a frame runs the code of a model, or of a module of torch."""
    name = str(frame.f_globals.get("__name__"))
    return not name.startswith("torch.") or name.startswith("torch.nn.")


def _is_caught(frame: FrameType | None) -> bool:
    """Whether a function of the model among those that run may catch an error."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("torch_interpreter."):
            return False
        if not name.startswith("torch.") and _catches(frame):
            return True
        frame = frame.f_back
    return False


def _catches(frame: FrameType) -> bool:
    """Whether a frame may catch an error: an ``except`` anywhere in its function, a ``with`` around
    what it runs, but those of torch, or a method whose errors Python catches."""
    read: Any = dis.Bytecode(frame.f_code)
    steps = [step for step in read if step.opname not in _NO_STEPS]
    entries = read.exception_entries
    places, handlers = [frame.f_lasti], set[int]()
    for place in places:  # a handler may be inside another one
        around = {e.target for e in entries if e.start <= place < e.end} - handlers
        handlers |= around
        places.extend(around)
    starts = {n: min(e.start for e in entries if e.target == n) for n in handlers}
    return frame.f_code.co_name in _ENDING or any(
        step.opname in _CATCHING
        or (
            after.opname == "WITH_EXCEPT_START"
            and step.offset in starts
            and not _enters_torch(frame, steps, starts[step.offset])
        )
        for step, after in pairwise(steps)
    )


def _enters_torch(frame: FrameType, steps: Sequence[dis.Instruction], start: int) -> bool:
    """Whether a block begins with a context manager of torch, such as ``torch.no_grad()``: none of
    them catches an error.

    :param frame: the frame
    :param steps: its instructions
    :param start: the offset of the block
    """
    *before, enter = [step for step in steps if step.offset < start]
    first = enter
    for step in reversed(before):
        if _line(step) != _line(enter) or step.opname.startswith(_APART):
            break
        if "JUMP" in step.opname:
            return False  # a choice of managers
        first = step
    value = frame.f_globals.get(first.argval) if first.opname == "LOAD_GLOBAL" else None
    name = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", "")
    return str(name).partition(".")[0] == "torch"


def _line(step: dis.Instruction) -> int | None:
    return None if step.positions is None else step.positions.lineno


def _with_own_file(original: Callable[[], set[str]]) -> Callable[[], set[str]]:
    """The files whose lines no message shows, and this one."""
    return lambda: {*original(), __file__}


def _frame_of_user(_: Callable[[], FrameType | None]) -> Callable[[], FrameType | None]:
    """The frame a message shows."""

    def call() -> FrameType | None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not is_of_user(frame):
            frame = frame.f_back
        return frame

    return call


def _decided(original: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The truth value of a condition, which is known if the model only checks it."""

    def call(condition: Any) -> bool:
        try:
            return original(condition)
        except GuardOnDataDependentSymNode:
            outcome = checked_outcome(sys._getframe(1))
            if outcome is None:
                raise
            return outcome

    return call


#: private functions of torch, which a version may not have: what it does then is left as it is
_PRIVATE: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (_META, "upsample_common_check", _resized),
    (fake_impls, "_view_unbacked_meta", _viewed),
    (symbolic_shapes, "uninteresting_files", _with_own_file),
    (symbolic_shapes, "_find_user_code_frame", _frame_of_user),
)


@contextlib.contextmanager
def skip_content_checks() -> Iterator[None]:
    """Computes covariances, losses and resized tensors without a look at values in this context."""
    statistics: dict[str, Any] = {"cov": _cov, "corrcoef": _corrcoef}
    statistics |= {"allclose": _allclose, "equal": _equal}
    with contextlib.ExitStack() as stack:
        stack.enter_context(patched(torch, statistics))
        stack.enter_context(patched(torch.Tensor, statistics))
        for owner, name, change in _PRIVATE:
            original = vars(owner).get(name)
            changes = {} if original is None else {name: change(original)}
            stack.enter_context(patched(owner, changes))
        for owner in (torch.Tensor, torch.SymBool):
            stack.enter_context(patched(owner, {"__bool__": _decided(owner.__bool__)}))
        stack.enter_context(patched(_FUNCTIONS, {"gaussian_nll_loss": _gaussian_nll_loss}))
        yield
