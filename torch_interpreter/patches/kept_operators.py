"""Context managers that change how torch traces some functions while a model is exported.

* ``associative_scan`` is unrolled for the size of the arguments; here, it stays one operator,
* ``torch.stft`` is cut into frames, that are multiplied and transformed; here, it is one operator,
* ``torch.istft`` has the number of frames of the arguments; here, it is one operator too,
* ``torch.distributions`` checks its arguments, which no graph can do; here, it does not,
* ``torch.nn.TransformerEncoder`` reads a mask to know if it is causal; here, it uses the mask,
* the attention of transformers looks at the number of its queries; here, it may depend on the data,
* the scale of an attention is a number, not an expression; here, one multiplies the queries,
* a fake quantiser reads its switches in tensors, on which no graph branches; here, before it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.distributions import Distribution
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true

from ..common.errors import ExportError
from .attributes import patched

_TRANSFORMER: Any = importlib.import_module("torch.nn.modules.transformer")
_FUNCTIONS: Any = torch.nn.functional
_SCANS: Any = importlib.import_module("torch._higher_order_ops.associative_scan")
_UNTYPED: Any = torch
_LIBRARY: Any = _UNTYPED.library.Library("aten", "IMPL", "Meta")
_OURS: Any = _UNTYPED.library.Library("torch_interpreter", "FRAGMENT")


def _tensor_and_mask(x: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


def _counts(x: torch.Tensor, bins: Sequence[int], **_: Any) -> torch.Tensor:
    return x.new_empty(bins)


def _counts_and_edges(x: torch.Tensor, bins: int = 100, **_: Any) -> list[torch.Tensor]:
    return [x.new_empty(bins), x.new_empty(bins + 1)]


def _counts_between(x: torch.Tensor, bins: Any, **_: Any) -> Any:
    edges = [bins] if isinstance(bins, torch.Tensor) else bins
    counts = x.new_empty([e.shape[0] - 1 for e in edges])
    return [counts, torch.empty_like(bins)] if isinstance(bins, torch.Tensor) else counts


def _edges(x: torch.Tensor, bins: Sequence[int], **_: Any) -> list[torch.Tensor]:
    return [x.new_empty(count + 1) for count in bins]


def _reflectors(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), x.new_empty((*x.shape[:-2], min(x.shape[-2:])))


#: the shapes of the results of operators whose shapes torch only knows by running them
_SHAPES: dict[str, Callable[..., Any]] = {
    "fake_quantize_per_tensor_affine_cachemask": _tensor_and_mask,
    "fake_quantize_per_channel_affine_cachemask": _tensor_and_mask,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _tensor_and_mask,
    "geqrf": _reflectors,
    "histogram.bin_ct": _counts_and_edges,
    "histogram.bins_tensor": _counts_between,
    "_histogramdd_bin_edges": _edges,
    "_histogramdd_from_bin_cts": _counts,
    "_histogramdd_from_bin_tensors": _counts_between,
}
for _name, _shapes in _SHAPES.items():
    if not _UNTYPED._C._dispatch_has_kernel_for_dispatch_key(f"aten::{_name}", "Meta"):
        _LIBRARY.impl(_name, _shapes)


def _one_operator(combine: Any, leaves: Sequence[torch.Tensor], **_: Any) -> Any:
    """Replaces the recursion of torch. *combine* runs on all elements at once, the operator
    needs a function of two of them."""
    vectorized = inspect.getclosurevars(combine.keywords["combine_fn"]).nonlocals["func"]
    alone = functools.partial(combine.func, **{**combine.keywords, "combine_fn": vectorized})

    def run(combine_fn: Callable[..., Any], xs: Any) -> Any:
        return _SCANS.associative_scan_op(combine_fn, xs, additional_inputs=())

    with torch.no_grad():  # the operator refuses the gradient of what *combine* reads
        found = _SCANS._maybe_compile_and_run_fn(run, alone, list(leaves))
    return torch.utils._pytree.tree_leaves(found)


@contextlib.contextmanager
def keep_associative_scans() -> Iterator[None]:
    """Keeps ``associative_scan(combine_mode="generic")`` as one operator in this context."""
    with patched(_SCANS, {"generic_associative_scan": _one_operator}):
        yield


def _spectrum(x: torch.Tensor, window: torch.Tensor, hop: int) -> torch.Tensor:
    """The transform of each frame of the rows of *x*."""
    operator: Any = torch.ops.aten.stft.default
    found: torch.Tensor = operator(x, window.shape[0], hop, None, window, False, True, True)
    return found.clone()


def _spectrum_shape(x: torch.Tensor, window: torch.Tensor, hop: int) -> torch.Tensor:
    """The shape of the result, for fake tensors."""
    (rows, length), size = x.shape, window.shape[0]
    shape = (rows, size // 2 + 1, (length - size) // hop + 1)
    return x.new_empty(shape, dtype=x.dtype.to_complex())


_OURS.define("spectrum(Tensor x, Tensor window, int hop) -> Tensor")
_OURS.impl("spectrum", _spectrum, "CompositeExplicitAutograd")
_UNTYPED.library.register_fake("torch_interpreter::spectrum", _spectrum_shape, lib=_OURS)


def _signal(
    x: torch.Tensor, window: torch.Tensor, hop: int, start: int, length: int, is_padded: bool
) -> torch.Tensor:
    """The weighted sum of the overlapping frames whose transforms are in the columns of *x*, from
    *start*, then zeros if it is too short and *is_padded*."""
    size, total = window.shape[0], window.shape[0] + hop * (x.shape[2] - 1)
    frames = torch.fft.irfft(x, n=size, dim=1) * window[:, None]
    weights = (window**2)[None, :, None].expand(1, size, x.shape[2])
    shape, fold = (1, total), _FUNCTIONS.fold
    added, weight = (fold(t, shape, (1, size), stride=(1, hop)) for t in (frames, weights))
    found: torch.Tensor = (added / weight)[:, 0, 0, start : start + length]
    return torch.nn.functional.pad(found, (0, length - found.shape[1])).clone()


def _signal_shape(
    x: torch.Tensor, window: torch.Tensor, hop: int, start: int, length: int, is_padded: bool
) -> torch.Tensor:
    """The shape of the result, for fake tensors."""
    return window.new_empty((x.shape[0], length))


_OURS.define(
    "signal(Tensor x, Tensor window, int hop, int start, SymInt length, bool is_padded) -> Tensor"
)
_OURS.impl("signal", _signal, "CompositeExplicitAutograd")
_UNTYPED.library.register_fake("torch_interpreter::signal", _signal_shape, lib=_OURS)


@contextlib.contextmanager
def keep_signals() -> Iterator[None]:
    """Keeps ``torch.istft`` as one operator in this context: half of the frequencies, 32 bits."""
    original = _UNTYPED.istft

    @functools.wraps(original)
    def istft(
        input: Any,
        n_fft: Any,
        hop_length: Any = None,
        win_length: Any = None,
        window: Any = None,
        center: bool = True,
        normalized: bool = False,
        onesided: bool | None = None,
        length: Any = None,
        return_complex: bool = False,
    ) -> Any:
        x = input
        given = (hop_length, win_length, window, center, normalized, onesided, length)
        hop = n_fft // 4 if hop_length is None else hop_length
        width = n_fft if win_length is None else win_length
        numbers = all(type(n) is int and n > 0 for n in (n_fft, hop, width)) and width <= n_fft
        plain = onesided is not False and not return_complex and x.ndim in (2, 3)
        single = x.dtype == torch.complex64 and (window is None or window.dtype == torch.float32)
        if not (numbers and plain and single):
            return original(x, n_fft, *given, return_complex)
        weights = torch.ones(width, device=x.device) if window is None else window
        before = (n_fft - width) // 2
        weights = _FUNCTIONS.pad(weights, (before, n_fft - width - before))
        rows = (x if x.ndim == 3 else x[None]) * (n_fft**0.5 if normalized else 1)
        total, start = n_fft + hop * (x.shape[-1] - 1), n_fft // 2 if center else 0
        size = total - 2 * start if length is None else length
        is_padded = not statically_known_true(start + size <= total)
        found = torch.ops.torch_interpreter.signal(rows, weights, hop, start, size, is_padded)
        return found if x.ndim == 3 else found[0]

    with patched(_UNTYPED, {"istft": istft}), patched(_UNTYPED.functional, {"istft": istft}):
        yield


@contextlib.contextmanager
def keep_spectra() -> Iterator[None]:
    """Keeps ``torch.stft`` as one operator in this context, in its usual form: half of the
    frequencies, not normalised, a window as long as a frame."""
    original = _UNTYPED._VF.stft

    def stft(x: Any, size: Any, hop: Any, width: Any, window: Any, *options: Any) -> Any:
        normalized, onesided, is_complex, *_ = options
        hop = size // 4 if hop is None else hop
        numbers = all(type(n) is int and n > 0 for n in (size, hop)) and width in (None, size)
        plain = is_complex and not normalized and onesided is not False
        alike = window is not None and window.shape == (size,) and window.dtype == x.dtype
        known = x.dtype in (torch.float32, torch.float64) and x.ndim in (1, 2)
        if not (numbers and plain and alike and known):
            return original(x, size, hop, width, window, *options)
        rows = x if x.ndim == 2 else x[None]
        found = torch.ops.torch_interpreter.spectrum(rows, window, hop)
        return found if x.ndim == 2 else found[0]

    with patched(_UNTYPED._VF, {"stft": stft}):
        yield


@contextlib.contextmanager
def skip_distribution_checks() -> Iterator[None]:
    """Disables the checks of arguments of ``torch.distributions`` in this context."""
    with patched(Distribution, {"_validate_args": False}):
        yield


@contextlib.contextmanager
def skip_mask_detection() -> Iterator[None]:
    """Stops the transformer layers of torch from looking for a causal mask in this context.

    Knowing that a mask is causal only lets torch skip it, the results are the same.
    """

    def said(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
        return is_causal is True

    with patched(_TRANSFORMER, {"_detect_is_causal_mask": said}):
        yield


@contextlib.contextmanager
def any_number_of_queries() -> Iterator[None]:
    """Lets the attention of transformers have as many queries as the data say in this context.

    It looks whether there is one query, to be faster; the results are the same, unless it is causal
    without a mask.
    """
    module = sys.modules.get("transformers.modeling_utils")
    if module is None:
        yield
        return
    functions: Any = vars(module)["ALL_ATTENTION_FUNCTIONS"]
    before = functions["sdpa"]

    @functools.wraps(before)
    def attention(
        layer: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any
    ) -> Any:
        causal = kwargs.get("is_causal")
        is_causal = getattr(layer, "is_causal", True) if causal is None else causal
        for length in (query.shape[2], key.shape[2]):
            if (attention_mask is not None or not is_causal) and free_unbacked_symbols(length):
                _UNTYPED._check(length > 1)
                _UNTYPED._check(length != 0)
        return before(layer, query, key, value, attention_mask, **kwargs)

    functions["sdpa"] = attention
    try:
        yield
    finally:
        functions["sdpa"] = before


@contextlib.contextmanager
def scale_queries() -> Iterator[None]:
    """Makes the scale of an attention any expression of sizes in this context."""
    before = _FUNCTIONS.scaled_dot_product_attention

    @functools.wraps(before)
    def attention(query: Any, *args: Any, scale: Any = None, **kwargs: Any) -> Any:
        if isinstance(scale, torch.SymInt | torch.SymFloat):
            return before(query * scale, *args, scale=1.0, **kwargs)
        return before(query, *args, scale=scale, **kwargs)

    with patched(_FUNCTIONS, {"scaled_dot_product_attention": attention}):
        yield


@contextlib.contextmanager
def keep_fake_quantizers(model: torch.nn.Module) -> Iterator[None]:
    """Makes each fake quantiser of a model one operator in this context.

    :param model: the model
    :raises ExportError: a quantiser still observes what it quantises
    """
    quantization: Any = sys.modules.get("torch.ao.quantization.fake_quantize")
    with contextlib.ExitStack() as stack:
        for name, module in model.named_modules() if quantization is not None else ():
            if isinstance(module, quantization.FakeQuantizeBase):
                stack.enter_context(patched(module, {"forward": _quantizer(name, module)}))
        yield


def _quantizer(name: str, module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function of a fake quantiser whose switches are known."""
    observes, quantizes = (
        bool(getattr(module, switch).reshape(-1)[0])
        for switch in ("observer_enabled", "fake_quant_enabled")
    )
    if observes:
        raise ExportError(
            f"The fake quantiser {name!r} observes the tensors it quantises and changes its scale: "
            f"call model.apply(torch.ao.quantization.disable_observer) before."
        )

    def forward(x: torch.Tensor) -> torch.Tensor:
        bounds = module.activation_post_process.quant_min, module.activation_post_process.quant_max
        how = module.scale, module.zero_point
        if not quantizes:
            return x
        if module.is_per_channel:
            return torch.fake_quantize_per_channel_affine(x, *how, module.ch_axis, *bounds)
        return torch.fake_quantize_per_tensor_affine(x, *how, *bounds)

    return forward
