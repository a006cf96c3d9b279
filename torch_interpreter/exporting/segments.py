"""Attends inside segments whose number is dynamic, as vision towers of transformers do.

A tower packs the patches of pictures and windows in one sequence. ``cu_seqlens`` says where each
segment begins, and a loop of Python calls the attention once for each of them, which makes their
number a constant. Here, the attention is called once, with a mask: a patch only sees its segment.
The lengths of the segments may be any.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import torch

from ..patches.attributes import patched

_UNTYPED: Any = torch
_BOUNDS = "cu_seqlens"


@contextlib.contextmanager
def attend_inside_segments(mod: torch.nn.Module) -> Iterator[None]:
    """Calls the attention of transformers (``sdpa``) once for all segments in this context, if
    their number is dynamic.

    :param mod: the model
    """
    library = sys.modules.get("transformers.modeling_utils")
    found = {type(m) for m in mod.modules()} if library is not None else set()
    found = {c for c in found if c.__module__.startswith("transformers.") and _has_bounds(c)}
    if not found:
        yield
        return
    functions: Any = vars(library)["ALL_ATTENTION_FUNCTIONS"]
    before = functions["sdpa"]
    masks: list[torch.Tensor] = []

    @functools.wraps(before)
    def attention(layer: Any, q: Any, k: Any, v: Any, attention_mask: Any, **kwargs: Any) -> Any:
        mask = masks[-1] if masks and attention_mask is None else attention_mask
        return before(layer, q, k, v, mask, **kwargs)

    with contextlib.ExitStack() as stack:
        for cls in found:
            stack.enter_context(patched(cls, {"forward": _with_mask(cls.forward, masks)}))
        functions["sdpa"] = attention
        stack.callback(functions.__setitem__, "sdpa", before)
        yield


def _has_bounds(cls: Any) -> bool:
    """Whether a layer loops on segments."""
    forward = cls.forward
    return _BOUNDS in inspect.signature(forward).parameters and "split(" in inspect.getsource(
        forward
    )


def _with_mask(forward: Any, masks: list[torch.Tensor]) -> Any:
    """A forward that sees one segment; the mask of all of them is in a list while it runs."""
    signature = inspect.signature(forward)

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bounds, states = (bound.arguments.get(name) for name in (_BOUNDS, "hidden_states"))
        if bounds is None or states is None or not isinstance(bounds.shape[0], torch.SymInt):
            return forward(*args, **kwargs)
        length = states.shape[-2]
        places = torch.arange(length, device=bounds.device)
        segments = (places[:, None] >= bounds[1:]).sum(1)
        whole = [_UNTYPED.scalar_tensor(n, dtype=bounds.dtype) for n in (0, length)]
        bound.arguments[_BOUNDS] = torch.stack(whole)
        masks.append((segments[:, None] == segments)[None, None])
        try:
            return forward(*bound.args, **bound.kwargs)
        finally:
            masks.pop()

    return call
